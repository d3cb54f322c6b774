# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose result is transposed behind them: their operands are exchanged instead.

`w @ h` for a batch of vectors is `dot_general(w, h)`, whose result [features, batch] JAX transposes, before or after it
is cut into gates and added up. `dot_general(h, w)` has the batch first, as everything around it, and the weight on the
right, where it is packed once; a recurrence of such products is one kernel.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.build import broadcast, create, window
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir, rewrite, stablehlo
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, INDEX_MAPS, SLICES, index_map_of
from shlo_disc.shape_dialect.ops.index_maps import ONE, Coordinate
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import is_constant
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern

MOST_OPS = 64
"""Ops between a product and the transpose of what they make of it."""


def exchanged_operands(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """`transpose(f(dot_general(w, h)))` is `f(dot_general(h, w))`, with `f` of slices and elementwise ops."""
    if not _is_swap(op.operation) or not _can_be_transposed(op.operands[0], op.operation.block):
        return NO_MATCH
    with rewriter.ip, op.location:
        rewriter.replace_op(op, [_transposed(op.operands[0], {})])
    return None


def _is_swap(op: ir.Operation) -> bool:
    return op.name == "stablehlo.transpose" and integers(op.attributes["permutation"]) == [1, 0]


def _can_be_transposed(value: ir.Value, block: ir.Block) -> bool:
    """Tells whether a value comes of products of a weight, and everything on the way is read transposed alone."""
    pending, seen, products = [value], set[ir.Value](), 0
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        op = _op_of(value)
        if op is None or len(seen) > MOST_OPS:
            return False
        if _is_swap(op) or op.name in BROADCASTS or _is_splat_constant(op):
            continue
        users = [use.owner.operation for use in value.uses if not _is_swap(use.owner.operation)]
        if op.block != block or not _is_local(op) or not all(u.name in _LOCAL for u in users):
            return False
        products += op.name == "stablehlo.dot_general"
        pending += [*_operands(op), *(user.results[0] for user in users)]
    return products > 0


_LOCAL = ELEMENTWISE | {*SLICES}
"""Ops that can read their operand transposed."""


def _is_local(op: ir.Operation) -> bool:
    """Tells whether an op can be computed transposed from operands that are transposed or, of a product, are as is."""
    if op.name == "stablehlo.dot_general":
        return _has_weight_on_the_left(op)
    if op.name in SLICES:
        return _starts(op) is not None
    return op.name in ELEMENTWISE and all(dims_of(v) in ((), dims_of(op.results[0])) for v in op.operands)


def _operands(op: ir.Operation) -> list[ir.Value]:
    """The operands that have to be transposed."""
    if op.name == "stablehlo.dot_general":
        return []
    return [op.operands[0]] if op.name in SLICES else [v for v in op.operands if dims_of(v)]


def _transposed(value: ir.Value, built: dict[ir.Value, ir.Value]) -> ir.Value:
    """The value transposed, at the insertion point; `built` has those that are there."""
    if value not in built:
        op: ir.Operation = value.owner.operation  # type: ignore[union-attr]
        operands = [] if op.name in (*BROADCASTS, "stablehlo.transpose") else _operands(op)
        built[value] = _built(value, op, {v: _transposed(v, built) for v in operands})
    return built[value]


def _built(value: ir.Value, op: ir.Operation, operands: dict[ir.Value, ir.Value]) -> ir.Value:
    dims = dims_of(value)[::-1]
    type_ = tensor_type(dims, element_type_of(value))
    attributes = {name: op.attributes[name] for name in op.attributes}
    if _is_swap(op):
        return op.operands[0]
    if op.name in BROADCASTS:
        targets = integers(op.attributes["broadcast_dimensions"])
        return broadcast(op.operands[0], dims, [1 - axis for axis in targets])
    if is_constant(op):
        splat = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
        return create("constant", [], type_, {"value": ir.DenseElementsAttr.get_splat(type_, splat)})
    if op.name == "stablehlo.dot_general":
        numbers = stablehlo.DotDimensionNumbers(attributes[_NUMBERS])
        sides = [list(numbers.rhs_contracting_dimensions), list(numbers.lhs_contracting_dimensions)]
        attributes[_NUMBERS] = stablehlo.DotDimensionNumbers.get([], [], *sides)
        return create("dot_general", list(op.operands)[::-1], type_, attributes)
    if op.name in SLICES:
        return window(operands[op.operands[0]], (_starts(op) or ())[::-1], dims)
    given = [operands.get(v, v) for v in op.operands]
    return create(op.name.removeprefix("stablehlo."), given, type_, attributes)


_NUMBERS = "dot_dimension_numbers"


def _has_weight_on_the_left(op: ir.Operation) -> bool:
    """A product of two matrices, of which the left one comes from outside of the block and the right one does not."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes[_NUMBERS])
    if any(len(dims_of(v)) != 2 for v in op.operands) or len(numbers.lhs_contracting_dimensions) != 1:
        return False
    return _is_from_outside(op.operands[0], op.block) and not _is_from_outside(op.operands[1], op.block)


def _is_from_outside(value: ir.Value, block: ir.Block) -> bool:
    """Tells whether a value is an argument of the program, a constant, computed before a loop, or a part of such."""
    op = _op_of(value)
    if op is None:
        return value.owner != block or block.owner.operation.name == "func.func"
    if is_constant(op) or op.block != block:
        return True
    return op.name in INDEX_MAPS and all(_is_from_outside(v, block) for v in op.operands)


def _starts(op: ir.Operation) -> Dims | None:
    """The starts of a slice of neighbours that sizes alone place."""
    (read,) = index_map_of(op) or ()
    starts = [c.plus for c in read.at if isinstance(c, Coordinate) and c.stride == ONE and isinstance(c.plus, Expr)]
    return tuple(starts) if len(starts) == len(read.at) else None


def _op_of(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _is_splat_constant(op: ir.Operation) -> bool:
    return is_constant(op) and ir.DenseElementsAttr(op.attributes["value"]).is_splat


PATTERNS: list[tuple[str, Pattern]] = [("stablehlo.transpose", exchanged_operands)]
