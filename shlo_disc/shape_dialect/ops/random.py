# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import OpDef, define, refuse
from shlo_disc.shape_dialect.ops.dynamic_forms import DynamicForm, StatedSizes, call
from shlo_disc.shape_dialect.ops.element_types import BOOL, FLOAT, INT
from shlo_disc.shape_dialect.ops.propagation import Propagation

_TESTS = "tests/run/test_ops_rng.py"
_BITS = INT | FLOAT

DYNAMIC = "stablehlo.dynamic_rng_bit_generator"
"""The target of the custom call that jax.export emits for a symbolic shape."""


def _infer_rng_bit_generator(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(op.operands[0]), dims_of(op.results[1])]


def _infer_dynamic_rng_bit_generator(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(op.operands[0]), p.sizes(op.operands[1])]


def _form_of_rng_bit_generator(s: StatedSizes, op: ir.OpView) -> list[ir.Value]:
    attributes = {
        "call_target_name": ir.StringAttr.get(DYNAMIC),
        "rng_algorithm": op.attributes["rng_algorithm"],
    }
    return call(op, [op.operands[0], s.sizes(s.dims(op.results[1]))], attributes)


_STATES = {"THREE_FRY": (2,), "PHILOX": (2, 3), "DEFAULT": (2, 3)}
"""The words of 64 bits that a state has."""


def _check_random_state(op: ir.OpView) -> str | None:
    if "rng_algorithm" not in op.attributes:
        return "it has no rng_algorithm"
    algorithm = str(op.attributes["rng_algorithm"]).split()[-1].rstrip(">")
    counts = next((n for name, n in _STATES.items() if name in algorithm), ())
    types = {str(v.type) for v in (op.operands[0], op.results[0]) if ir.RankedTensorType(v.type).has_static_shape}
    states = [f"tensor<{n}xui64>" for n in counts]
    return None if types and types <= set(states) else f"a state of {algorithm} is {' or '.join(states)}"


OPS = (
    *define(
        "expand", "rng_bit_generator", _BITS, check=_check_random_state, infer=_infer_rng_bit_generator,
        dynamic_form=DynamicForm(_form_of_rng_bit_generator, of_type=True), tests=_TESTS,
    ),
    OpDef(
        f"@{DYNAMIC}", "expand", _BITS, _BITS, check=_check_random_state,
        infer=_infer_dynamic_rng_bit_generator, tests=_TESTS,
    ),
    *refuse(
        "rng", BOOL | INT | FLOAT, "its state is hidden and differs from call to call", "use jax.random",
        size_operands=(2,),
    ),
)  # fmt: skip  # fmt: skip

__all__ = ["DYNAMIC", "OPS"]
