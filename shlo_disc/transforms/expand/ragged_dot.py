# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups become calls of the native runtime or, for a target without them, products of masked operands."""

from __future__ import annotations

from typing import Any

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.custom_calls import RAGGED_DOT
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.lapack_sizes import parameters_of
from shlo_disc.shape_dialect.ops.ragged import PARAMETERS, RaggedDot, ragged_dot_of
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.expand.library_call import library_call

_BYTES_OF_GROUP = 16
"""Bytes of workspace: the first row and the first block of a group, as in runtime/native/kernels/ragged_dot.cpp."""


def _ragged_dot(op: ir.OpView) -> bool:
    if ir.StringAttr(op.attributes["call_target_name"]).value != RAGGED_DOT:
        return False
    operands, result = list(op.operands)[:3], op.results[0]
    vector_bits = policy().vector_bits
    if not vector_bits:
        result.replace_all_uses_with(_masked(ragged_dot_of(op), operands, result.type))
        return True
    given = parameters_of(op)
    parameters = {name: ir.IntegerAttr(given[name]).value for name in PARAMETERS}
    for number, name in enumerate(("lhs_flipped", "rhs_flipped")):
        while (flipped := _flipped(operands[number])) is not None:
            operands[number], parameters[name] = flipped, 1 - parameters[name]
    workspace = _BYTES_OF_GROUP * (dims_of(operands[2])[0] + 1)
    parameters["vector_bits"] = vector_bits
    (found,) = library_call(RAGGED_DOT.split(".")[1], operands, [result.type], parameters, workspace)
    result.replace_all_uses_with(found)
    return True


def _flipped(value: ir.Value) -> ir.Value | None:
    """The matrices of which `value` are the transposes, if it is that."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "stablehlo.transpose":
        return None
    order = integers(value.owner.attributes["permutation"])
    last = len(order) - 1
    return value.owner.operands[0] if order == [*range(last - 1), last, last - 1] else None


def _masked(found: RaggedDot, operands: list[ir.Value], result: ir.Type) -> ir.Value:
    """One product over all groups of rows that are 0 outside of their group."""
    lhs, rhs, sizes = operands
    groups, dims = dims_of(sizes)[0], dims_of(lhs)
    element = element_type_of(lhs)
    mask = build.broadcast(_membership(sizes, dims[found.rows]), (groups, *dims), [0, found.rows + 1])
    repeated = build.broadcast(lhs, (groups, *dims), [1, 2])
    own = build.select(mask, repeated, build.constant(0, element, (groups, *dims)))
    lhs_terms, rhs_terms = found.lhs_terms + 1, found.terms
    if found.contracts:
        batch, contracting = ([0], [0]), ([lhs_terms], [rhs_terms + 1])
        rhs = build.broadcast(rhs, (groups, *dims_of(rhs)), [1, 2])
    else:
        batch, contracting = ([], []), ([lhs_terms, 0], [rhs_terms, 0])
    numbers = stablehlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=batch[0], rhs_batching_dimensions=batch[1],
        lhs_contracting_dimensions=contracting[0], rhs_contracting_dimensions=contracting[1],
    )  # fmt: skip
    attributes: dict[str, Any] = {"dot_dimension_numbers": numbers}
    return build.create("dot_general", [own, rhs], result, attributes)


def _membership(sizes: ir.Value, rows: Expr) -> ir.Value:
    """For each group, whether each row belongs to it."""
    (groups,) = dims_of(sizes)
    element = element_type_of(sizes)
    zero = build.constant(0, element, (groups,))
    own = build.maximum(sizes, zero)
    square = (groups, groups)
    is_before = build.compare("LE", build.iota(square, element, 1), build.iota(square, element, 0))
    until = build.select(is_before, build.broadcast(own, square, [1]), build.constant(0, element, square))
    ends = build.reduce(until, [1], "add", 0)
    row = build.iota((groups, rows), element, 1)
    first, past = (build.broadcast(v, (groups, rows), [0]) for v in (build.subtract(ends, own), ends))
    return build.and_(build.compare("LE", first, row), build.compare("LT", row, past))


EXPANSIONS = [("stablehlo.custom_call", _ragged_dot)]
