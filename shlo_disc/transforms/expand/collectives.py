# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of several participants become calls of the runtime's, one an operand.

Elements that are combined are floats of 32 or 64 bits, integers of 32 or 64 bits or complex numbers; others are
converted before, and back when all have been combined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.shape_dialect.build import convert
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.collectives import (
    REDUCTIONS,
    combined_type,
    counts_of,
    groups_of,
    module_of,
    reduction_of,
    runs_on_all,
)
from shlo_disc.transforms.expand.flat_collectives import FLAT
from shlo_disc.transforms.expand.library_call import library_call


def _reduction(op: ir.OpView, target: str, axes: dict[str, int]) -> bool:
    parameters = {"reduction": REDUCTIONS[reduction_of(op) or ""], **axes}
    for operand, result in zip(op.operands, op.results, strict=True):
        own = element_type_of(result)
        value = convert(operand, combined_type(own))
        (combined,) = _call(op, target, [value], [tensor_type(dims_of(result), combined_type(own))], parameters)
        result.replace_all_uses_with(convert(combined, own))
    return True


def _call(
    op: ir.OpView, target: str, operands: Sequence[ir.Value], results: Sequence[ir.Type], parameters: dict[str, int]
) -> list[ir.Value]:
    return library_call(f"collective_{target}", operands, results, parameters, Expr.const(0), groups_of(op))


def _movement(op: ir.OpView, target: str, axes: dict[str, int]) -> bool:
    for operand, result in zip(op.operands, op.results, strict=True):
        (moved,) = _call(op, target, [operand], [result.type], axes)
        result.replace_all_uses_with(moved)
    return True


def _participant(op: ir.OpView) -> bool:
    counts = counts_of(module_of(op))
    is_partition = op.operation.name == "stablehlo.partition_id"
    parameters = {
        "divisor": 1 if is_partition else counts.partitions,
        "modulus": counts.partitions if is_partition else counts.replicas,
    }
    (number,) = library_call("collective_participant", [], [op.results[0].type], parameters, Expr.const(0))
    op.results[0].replace_all_uses_with(number)
    return True


def _expansion(build: Callable[..., bool], target: str = "", **axes: str) -> Callable[[ir.OpView], bool]:
    """`axes`: parameters of the call, and the attributes that they come from."""

    def expansion(op: ir.OpView) -> bool:
        if not runs_on_all(op):
            return False
        if not target:
            return build(op)
        numbers = {name: ir.IntegerAttr(op.attributes[source]).value for name, source in axes.items()}
        if policy().flat_collectives and target in FLAT:
            found = FLAT[target](op, **numbers)
            for old, new in zip(op.results, found, strict=True):
                old.replace_all_uses_with(new)
            return True
        return build(op, target, numbers)

    return expansion


EXPANSIONS = [
    ("stablehlo.all_gather", _expansion(_movement, "all_gather", axis="all_gather_dim")),
    ("stablehlo.all_reduce", _expansion(_reduction, "all_reduce")),
    ("stablehlo.all_to_all", _expansion(_movement, "all_to_all", split="split_dimension", axis="concat_dimension")),
    ("stablehlo.collective_broadcast", _expansion(_movement, "broadcast")),
    ("stablehlo.collective_permute", _expansion(_movement, "permute")),
    ("stablehlo.partition_id", _expansion(_participant)),
    ("stablehlo.reduce_scatter", _expansion(_reduction, "reduce_scatter", axis="scatter_dimension")),
    ("stablehlo.replica_id", _expansion(_participant)),
]
