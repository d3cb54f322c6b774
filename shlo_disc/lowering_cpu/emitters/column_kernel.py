# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Column kernels: reductions along all but the last axis, such as the gradient of a bias, or means and variances.

A work item is a block of neighbouring columns. It walks down the rows with the accumulators of each column in
registers, so that every row is read in runs of whole cache lines, once for all reductions of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from shlo_disc.lowering.element_types import constant_like, element_of
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.index_rules.folds import nest
from shlo_disc.lowering.kernels import op_cost
from shlo_disc.lowering.long_sums import LongSums
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Accumulators, Combiner
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame, store
from shlo_disc.lowering_cpu.emitters.loops import for_range, over_lanes
from shlo_disc.lowering_cpu.emitters.vector_elements import VectorElements
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv

VECTORS, ACCUMULATORS = 4, 8
"""Vectors of columns that a block has, and those of accumulators, at most."""


def build_columns(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of blocks and the cost of one."""
    kernel = _Columns(frame)
    for_range(frame.begin, frame.end, kernel.block)
    return ceildiv(kernel.columns, kernel.length), kernel.cost * kernel.length * product(kernel.rows)


class _Columns:
    """The work on blocks of columns."""

    def __init__(self, frame: CpuFrame):
        self.frame = frame
        ops = list(frame.fusion.entry_block.operations)
        self.ops = [op for op in ops if op.operation.name == "stablehlo.reduce"]
        *self.rows, self.columns = dims_of(self.ops[0].operands[0])
        self.cost = max(1, sum(op_cost(op) for op in _walked(self.ops)))
        self.elements: VectorElements = frame.elements(frame.width())
        self.vectors = max(1, min(VECTORS, ACCUMULATORS // len(self.ops)))
        self.length = self.vectors * self.elements.width
        self.made: dict[tuple[ir.Value, Positions], ir.Value] = {}
        """Results of reductions at some places."""

    def block(self, number: ir.Value) -> None:
        """One block: all vectors of it side by side, or those that there are, one by one."""
        elements, step = self.elements, index_constant(self.elements.width)
        begin = arith.muli(number, index_constant(self.length))
        end = arith.minui(arith.addi(begin, index_constant(self.length)), self.frame.size_of(self.columns))
        is_whole = arith.cmpi(arith.CmpIPredicate.eq, arith.subi(end, begin), index_constant(self.length))
        choice = scf.IfOp(is_whole, [], has_else=True)
        with ir.InsertionPoint(choice.then_block), elements.scope():
            lanes = 1 if elements.width > 1 else 0
            first = [arith.addi(begin, arith.muli(index_constant(i), step)) for i in range(self.vectors)]
            self._walk([Position(place, lanes) for place in first])
            scf.yield_([])
        with ir.InsertionPoint(choice.else_block), elements.scope():
            over_lanes(elements, begin, end, False, [], lambda place, *_: self._walk([place]))
            scf.yield_([])

    def _walk(self, places: Sequence[Position]) -> list[ir.Value]:
        """Down the vectors at some places, and then what is made of their reductions; gives nothing on."""
        elements = self.elements
        combiners = [Combiner(op, elements.elementwise) for op in self.ops] * len(places)
        sums = LongSums(combiners)
        firsts = [[elements.splat(elements.at(v, ())) for v in _operands(op)[1]] for op in self.ops] * len(places)
        starts = [self._start(*pair) for pair in zip(combiners, firsts, strict=True)]
        at = [(op, place) for place in places for op in self.ops]

        def row(indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
            outer = tuple(Position(i) for i in indices)
            found: list[ir.Value] = []
            for (op, place), combiner, (own, long) in zip(at, combiners, sums.split(carried), strict=True):
                read = [elements.splat(elements.at(v, (*outer, place))) for v in _operands(op)[0]]
                found += [*combiner.combine(own, read), *long]
            return found

        sizes = [self.frame.size_of(d) for d in self.rows]
        carried = nest(elements, sizes, sums.start(starts), row, sums.fold if sums.any else None)
        for (op, place), combiner, first, total in zip(at, combiners, firsts, sums.finish(carried), strict=True):
            whole = combiner.combine(first, total) if _is_sum(combiner) else total
            for value, made in zip(op.results, combiner.rounded(whole), strict=True):
                self.made[value, (place,)] = made
        for place in places:
            self._store(place)
        return []

    @staticmethod
    def _start(combiner: Combiner, first: Accumulators) -> Accumulators:
        """First values of the accumulators; the first value of a sum is added in the end."""
        return [constant_like(first[0], 0.0)] if _is_sum(combiner) else first

    def _store(self, place: Position) -> None:
        """Write the results, which the reductions have made or which are computed from what they have made."""
        elements, outputs = self.elements, self.frame.outputs
        elements.cached = {value: partial(self._made, value) for op in self.ops for value in op.results}
        places = [self._place_in(output, place) for output in outputs]
        values = [elements.at(*pair) for pair in zip(outputs, places, strict=True)]
        elements.cached = {}
        for output, at, value, buffer in zip(outputs, places, values, self.frame.output_buffers, strict=True):
            store(buffer, value, at, element_of(output.type), elements)

    def _place_in(self, output: ir.Value, place: Position) -> Positions:
        """The position in a result, which has a size of 1 for some of the axes that are reduced."""
        dims = dims_of(output)
        axis = dims.index(self.columns)
        return tuple(place if a == axis else Position(index_constant(0)) for a in range(len(dims)))

    def _made(self, value: ir.Value, at: Positions) -> ir.Value | None:
        return self.made.get((value, at))


def _operands(op: ir.OpView) -> tuple[list[ir.Value], list[ir.Value]]:
    """The operands that a reduction reads, and those that it starts from."""
    operands, count = list(op.operands), len(op.results)
    return operands[:count], operands[count:]


def _is_sum(combiner: Combiner) -> bool:
    return LongSums([combiner]).any


def _walked(reductions: Sequence[ir.OpView]) -> list[ir.OpView]:
    """The ops that compute something for each row: reductions, and what they read."""
    found: dict[ir.Operation, ir.OpView] = {}
    pending = list(reductions)
    while pending:
        op = pending.pop()
        if op.operation not in found:
            found[op.operation] = op
            owners = (value.owner for value in op.operands)
            pending += [owner.opview for owner in owners if not isinstance(owner, ir.Block)]
    return list(found.values())
