# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shape rules: the sizes of an op's results from its operands, and the equalities that the op implies.

One row an op in `RULES`. A rule returns the sizes of every result; what it learns on the way (an `add` proves its
operands' sizes equal, a `dot_general` its contracted sizes) goes to `Propagation.equal`, which is how facts flow
backwards to the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from shlo_disc.errors import ProgramError
from shlo_disc.mlir import ir, stablehlo
from shlo_disc.shape_dialect.expr import Expr, ceildiv
from shlo_disc.shape_dialect.facts import Facts, Relation
from shlo_disc.shape_dialect.locations import source_line
from shlo_disc.shape_dialect.op_sets import ELEMENTWISE
from shlo_disc.shape_dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.values import SymbolicValues


class DataDependentSize(Exception):
    """A size depends on the elements of a tensor, not on sizes."""


@dataclass
class Propagation:
    """The state of one walk: the facts, the symbolic values, and the relations that ops imply, with their origin."""

    facts: Facts
    values: SymbolicValues
    implied: list[tuple[Relation, str]] = field(default_factory=list)

    def equal(self, a: Expr, b: Expr, op: ir.OpView) -> None:
        """Record that a valid program has a == b here. Raises ProgramError when that can never hold."""
        self.require(Relation.eq(a, b), op, f"the sizes {a} and {b} must be equal and never are")

    def require(self, relation: Relation, op: ir.OpView, otherwise: str = "") -> None:
        """Record that a valid program has this relation here. Raises ProgramError when it can never hold."""
        proved = self.facts.prove(relation)
        if proved is True:
            return
        where = f"{op.operation.name} at {source_line(op.location)}"
        if proved is False:
            raise ProgramError(f"{where}: {otherwise or f'{relation} must hold and never does'}")
        self.facts.add(relation)
        self.implied.append((relation, where))

    def fits(self, parts: Iterable[Expr], wholes: Iterable[Expr], op: ir.OpView) -> None:
        """Record that every window is no larger than what it lies in."""
        for part, whole in zip(parts, wholes, strict=True):
            self.require(Relation.ge(whole, part), op)

    def sizes(self, value: ir.Value) -> Dims:
        """The elements of a shape operand. Raises DataDependentSize when they are data."""
        elements = self.values.get(value)
        if elements is None:
            raise DataDependentSize
        return elements


Rule = Callable[[Propagation, ir.OpView], list[Dims]]


def integers(attribute: ir.Attribute) -> list[int]:
    """The elements of an `array<i64: ...>` attribute."""
    return list(ir.DenseI64ArrayAttr(attribute))


def _same(positions: Sequence[int]) -> Rule:
    """All the operands at `positions` and every result have one shape; rank-0 operands elsewhere broadcast."""

    def rule(p: Propagation, op: ir.OpView) -> list[Dims]:
        chosen = [dims_of(op.operands[i]) for i in (positions or range(len(op.operands)))]
        for other in chosen[1:]:
            for a, b in zip(chosen[0], other, strict=True):
                p.equal(a, b, op)
        dims = tuple(min(column, key=lambda e: e.constant is None) for column in zip(*chosen, strict=True))
        return [dims for _ in op.results]

    return rule


def _select(p: Propagation, op: ir.OpView) -> list[Dims]:
    scalar_predicate = not dims_of(op.operands[0])
    return _same((1, 2) if scalar_predicate else (0, 1, 2))(p, op)


def _clamp(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _same([i for i in range(3) if i == 1 or dims_of(op.operands[i])])(p, op)


def _static(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(r) for r in op.results]


def _sizes_of_operand(position: int) -> Rule:
    return lambda p, op: [p.sizes(op.operands[position])]


def _transpose(p: Propagation, op: ir.OpView) -> list[Dims]:
    source = dims_of(op.operands[0])
    return [tuple(source[i] for i in integers(op.attributes["permutation"]))]


def _reshape(p: Propagation, op: ir.OpView) -> list[Dims]:
    result = dims_of(op.results[0])
    p.equal(product(dims_of(op.operands[0])), product(result), op)
    return [result]


def _dynamic_reshape(p: Propagation, op: ir.OpView) -> list[Dims]:
    result = p.sizes(op.operands[1])
    p.equal(product(dims_of(op.operands[0])), product(result), op)
    return [result]


def _slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    names = ("start_indices", "limit_indices", "strides")
    starts, limits, strides = (integers(op.attributes[n]) for n in names)
    p.fits((Expr.const(n) for n in limits), dims_of(op.operands[0]), op)
    bounds = zip(starts, limits, strides, strict=True)
    return [tuple(ceildiv(Expr.const(limit - start), stride) for start, limit, stride in bounds)]


def _real_dynamic_slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    strides = p.sizes(op.operands[3])
    for stride in strides:
        p.require(Relation.ge(stride, 1), op)
    starts = p.values.get(op.operands[1])
    if starts is None:
        extents = _extents_from_data(p, op)
    else:
        limits = p.sizes(op.operands[2])
        extents = tuple(limit - start for start, limit in zip(starts, limits, strict=True))
        for start, extent in zip(starts, extents, strict=True):
            p.require(Relation.ge(start, 0), op)
            p.require(Relation.ge(extent, 0), op)
        p.fits(limits, dims_of(op.operands[0]), op)
    return [tuple(ceildiv(extent, stride) for extent, stride in zip(extents, strides, strict=True))]


def _extents_from_data(p: Propagation, op: ir.OpView) -> Dims:
    """The `sizes` of a slice from `start` to `start + sizes`, where `start` is data (jax.lax.dynamic_slice)."""
    start, limit = op.operands[1], op.operands[2]
    addition = limit.owner
    if isinstance(addition, ir.Block) or addition.operation.name != "stablehlo.add":
        raise DataDependentSize
    operands = list(addition.operands)
    if start not in operands:
        raise DataDependentSize
    operands.remove(start)
    extents = p.sizes(operands[0])
    for extent in extents:
        p.require(Relation.ge(extent, 0), op)
    p.fits(extents, dims_of(op.operands[0]), op)
    return extents


def _dynamic_slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    sizes = tuple(Expr.const(s) for s in integers(op.attributes["slice_sizes"]))
    p.fits(sizes, dims_of(op.operands[0]), op)
    return [sizes]


def _dynamic_update_slice(p: Propagation, op: ir.OpView) -> list[Dims]:
    whole = dims_of(op.operands[0])
    p.fits(dims_of(op.operands[1]), whole, op)
    return [whole]


def _dynamic_broadcast(p: Propagation, op: ir.OpView) -> list[Dims]:
    result = p.sizes(op.operands[1])
    for size, target in zip(dims_of(op.operands[0]), integers(op.attributes["broadcast_dimensions"]), strict=True):
        if size.constant != 1 and p.facts.prove(Relation.eq(size, result[target])) is not True:
            # Either factor vanishes: the size is 1 and stretched, or it is the result's.
            p.require(Relation.eq((size - 1) * (size - result[target]), 0), op)
    return [result]


def _concatenate(p: Propagation, op: ir.OpView) -> list[Dims]:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    shapes = [dims_of(v) for v in op.operands]
    for other in shapes[1:]:
        for i, (a, b) in enumerate(zip(shapes[0], other, strict=True)):
            if i != axis:
                p.equal(a, b, op)
    total = sum((s[axis] for s in shapes), Expr.const(0))
    return [shapes[0][:axis] + (total,) + shapes[0][axis + 1 :]]


def padded_size(size: Expr, low: Expr, high: Expr, interior: Expr) -> Expr:
    """The size after StableHLO `pad`."""
    inner = size if interior.constant == 0 else size + interior * Expr.maximum(size - 1, 0)
    return low + inner + high


def _pad(p: Propagation, op: ir.OpView) -> list[Dims]:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    amounts = [[Expr.const(i) for i in integers(op.attributes[n])] for n in names]
    return [tuple(padded_size(*column) for column in zip(dims_of(op.operands[0]), *amounts, strict=True))]


def _dynamic_pad(p: Propagation, op: ir.OpView) -> list[Dims]:
    amounts = [p.sizes(op.operands[i]) for i in (2, 3, 4)]
    return [tuple(padded_size(*column) for column in zip(dims_of(op.operands[0]), *amounts, strict=True))]


def _reduce(p: Propagation, op: ir.OpView) -> list[Dims]:
    removed = set(integers(op.attributes["dimensions"]))
    inputs = [dims_of(v) for v in list(op.operands)[: len(op.operands) // 2]]
    for other in inputs[1:]:
        for a, b in zip(inputs[0], other, strict=True):
            p.equal(a, b, op)
    return [tuple(d for i, d in enumerate(inputs[0]) if i not in removed) for _ in op.results]


def _dot_general(p: Propagation, op: ir.OpView) -> list[Dims]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs, rhs = dims_of(op.operands[0]), dims_of(op.operands[1])
    lhs_batch, rhs_batch = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    lhs_contracting, rhs_contracting = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    for i, j in [*zip(lhs_batch, rhs_batch, strict=True), *zip(lhs_contracting, rhs_contracting, strict=True)]:
        p.equal(lhs[i], rhs[j], op)
    lhs_free = [lhs[i] for i in range(len(lhs)) if i not in {*lhs_batch, *lhs_contracting}]
    rhs_free = [rhs[j] for j in range(len(rhs)) if j not in {*rhs_batch, *rhs_contracting}]
    return [(*(lhs[i] for i in lhs_batch), *lhs_free, *rhs_free)]


def gather_dims(indices: Dims, slice_sizes: Dims, numbers: stablehlo.GatherDimensionNumbers) -> Dims:
    """The result sizes of a gather."""
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    offsets = [size for i, size in enumerate(slice_sizes) if i not in dropped]
    batch = [size for i, size in enumerate(indices) if i != numbers.index_vector_dim]
    rank = len(offsets) + len(batch)
    offset_dims = set(numbers.offset_dims)
    offset_sizes, batch_sizes = iter(offsets), iter(batch)
    return tuple(next(offset_sizes) if i in offset_dims else next(batch_sizes) for i in range(rank))


def _gather(p: Propagation, op: ir.OpView) -> list[Dims]:
    sizes = tuple(Expr.const(s) for s in integers(op.attributes["slice_sizes"]))
    p.fits(sizes, dims_of(op.operands[0]), op)
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    return [gather_dims(dims_of(op.operands[1]), sizes, numbers)]


def _dynamic_gather(p: Propagation, op: ir.OpView) -> list[Dims]:
    sizes = p.sizes(op.operands[2])
    p.fits(sizes, dims_of(op.operands[0]), op)
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    return [gather_dims(dims_of(op.operands[1]), sizes, numbers)]


def _bitcast_convert(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(op.operands[0])]


RULES: dict[str, Rule] = {
    **{name: _same(()) for name in ELEMENTWISE},
    "disc.shape": _static,
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.broadcast_in_dim": _static,
    "stablehlo.clamp": _clamp,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _static,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_broadcast_in_dim": _dynamic_broadcast,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_iota": _sizes_of_operand(0),
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": _dynamic_reshape,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.get_dimension_size": _static,
    "stablehlo.iota": _static,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reduce": _reduce,
    "stablehlo.reshape": _reshape,
    "stablehlo.scatter": lambda p, op: [dims_of(v) for v in list(op.operands)[: len(op.results)]],
    "stablehlo.reverse": _same(()),
    "stablehlo.select": _select,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
