# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small program for each pair of an op and an element type of the table of ops, to be run on GPUs.

`python -m tests.gpu.op_rows` says how many of the pairs are lowered.
"""

from __future__ import annotations

from collections.abc import Iterator

from shlo_disc.shape_dialect.ops import TABLE, OpDef
from tests.gpu import op_programs_of_lines as lines
from tests.gpu.op_program import Form, binary, real_of, unary, without_xla
from tests.gpu.op_programs_of_elements import (
    bitcast,
    clamp,
    compare,
    complex_of,
    convert,
    is_finite,
    mapped,
    part,
    select,
)
from tests.gpu.op_programs_of_movement import (
    MOVEMENT,
    composite_row,
    constant_row,
    custom_call_row,
    iota,
    size_row,
    update_row,
)

ROUGH = ("cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sine", "sqrt",
         "tan", "tanh")  # fmt: skip
EXACT = ("ceil", "floor", "round_nearest_afz", "round_nearest_even", "negate", "sign", "not", "count_leading_zeros",
         "popcnt")  # fmt: skip
ARITHMETIC = ("add", "maximum", "minimum", "subtract", "remainder", "and", "or", "xor", "shift_left",
              "shift_right_arithmetic", "shift_right_logical")  # fmt: skip

FORMS: dict[str, Form] = {
    **{op: unary(op, 64) for op in ROUGH},
    **{op: unary(op, 8 if op == "sign" else 0) for op in EXACT},
    "abs": unary("abs", 8, real_of),
    "is_finite": is_finite,
    "reduce_precision": unary("reduce_precision", 0, attributes=", format = e3m2"),
    **{op: binary(op) for op in ARITHMETIC},
    "multiply": binary("multiply", 8), "divide": binary("divide", 16), "atan2": binary("atan2", 64),
    "power": without_xla(binary("power", 2048), lambda t: t[0] in "iu"),
    "cbrt": without_xla(unary("cbrt", 64), lambda t: t.startswith("complex")),
    "clamp": clamp, "compare": compare, "convert": convert, "select": select, "bitcast_convert": bitcast,
    "complex": complex_of, "imag": part("imag"), "real": part("real"), "map": mapped,
    **MOVEMENT, "constant": constant_row, "composite": composite_row, "custom_call": custom_call_row,
    "dynamic_update_slice": update_row, "get_tuple_element": MOVEMENT["tuple"],
    "iota": iota("iota"), "dynamic_iota": iota("dynamic_iota"), "get_dimension_size": size_row,
    "sort": lines.sort, "@stablehlo.dynamic_top_k": lines.top_k,
    "@mhlo.topk": lines.stated_top_k, "@ApproxTopK": lines.approximate(False),
    "@stablehlo.dynamic_approx_top_k": lines.approximate(True),
    "reduce": lines.reduce, "reduce_window": lines.reduce_window,
    "@stablehlo.dynamic_reduce_window": lines.dynamic_reduce_window,
    "select_and_scatter": lines.select_and_scatter,
    "convolution": lines.convolution, "dynamic_conv": lines.dynamic_conv,
    **{f"batch_norm_{kind}": lines.batch_norm(kind) for kind in ("training", "inference", "grad")},
    **{op: lines.product(op) for op in ("dot_general", "dot", "einsum")}, "unary_einsum": lines.unary_einsum,
    "cholesky": lines.solved("cholesky"), "triangular_solve": lines.solved("triangular_solve"), "fft": lines.fft,
    "scatter": lines.scatter,
    "rng_bit_generator": lines.random_bits, "@stablehlo.dynamic_rng_bit_generator": lines.random_bits_of_sizes,
    "uniform_quantize": lines.quantized, "uniform_dequantize": lines.quantized,
    "after_all": lines.tokens, "create_token": lines.tokens,
    "collective_reduce": lines.alone(f'"stablehlo.collective_reduce"(%a0) <{{{lines.GROUP}}}> REGION'),
    "cross-replica-sum": lines.alone(f'"stablehlo.cross-replica-sum"(%a0) {{{lines.GROUP}}}'),
    "async_start": lines.asynchronous, "async_done": lines.asynchronous,
}  # fmt: skip
"""For each op of the table, without its dialect's name, the program that uses it on an element type."""


WITHOUT = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter",
           "partition_id", "replica_id")  # fmt: skip
"""Ops that vanish where one device runs a program; `test_collectives.py` has those of several GPUs."""


def row_of(op: str) -> OpDef:
    """The row of an op that is named without its dialect."""
    return TABLE[op if op in TABLE else f"stablehlo.{op}"]


def pairs() -> Iterator[tuple[str, str]]:
    """The ops and element types of the specification that are compiled, in the table's order."""
    for row in TABLE.values():
        for element in sorted(row.spec & row.dtypes) if row.lowering else ():
            yield row.name.removeprefix("stablehlo."), element


def main() -> None:
    """Print how many pairs are lowered for GPUs."""
    found = list(pairs())
    lowered = [(op, t) for op, t in found if t in row_of(op).on_gpus]
    share = 100 * len(lowered) / len(found)
    print(f"{len(lowered)} of {len(found)} pairs of an op and an element type ({share:.1f}%) are lowered for GPUs")


if __name__ == "__main__":
    main()
