# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrences on GPUs: one persistent kernel for all iterations, each block with rows of its own from start to end.

Rows do not depend on each other, so blocks never wait for blocks, and nothing is launched between two iterations (as in
Diamos et al., "Persistent RNNs", 2016, but for small weights, which each block reads from the caches in every
iteration). What an iteration keeps of its rows is in shared memory; states are in the results' memory. The threads of
a block share out the elements of each step, with a barrier behind it. Few rows are spread over blocks first, and only
more of them share what a block reads of the weights.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import Element, convert, element_of, round_to
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.index_rules.folds import accumulator_of, multiply_add, widen, zero_of
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.recurrence_kernel import RecurrenceKernel, loops_of, row_cost
from shlo_disc.lowering.recurrence_schedule import schedule
from shlo_disc.lowering_gpu.block_loops import counted, each_item, when
from shlo_disc.lowering_gpu.grid import each_block
from shlo_disc.lowering_gpu.index_math import below, divided, parts, plus, times
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.product_form import indices_of
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf
from shlo_disc.shape_dialect.ops.recurrences import LoopOfRows, row_dims
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv

MOST_ROWS = 8
"""Rows that a block works on together, at most."""

HEIGHT = 4
"""Rows that a thread multiplies with a column it has read, where there are several."""

BLOCKS = 128
"""So many blocks share out the rows, before any of them has more than one."""

SHARED_BYTES = 40 << 10
"""Shared memory of a block, unless one row takes more."""

STATIC_BYTES = 48 << 10
"""The most shared memory that a kernel may declare."""


def build_recurrence(frame: GpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns how many blocks have work, and the cost of what one does."""
    kernels = [BlockRecurrence(frame, found) for found in loops_of(frame.fusion)]
    most = _allocate(frame, kernels)
    total, cost = Expr.const(0), Expr.const(1)
    ranges: list[tuple[Expr, Expr]] = []
    for kernel in kernels:
        rows = kernel.found.rows
        each = Expr.maximum(1, Expr.minimum(most, ceildiv(rows, BLOCKS)))
        ranges.append((total, each))
        total = total + ceildiv(rows, each)
        cost = Expr.maximum(cost, each * row_cost(kernel.found))

    def item(number: ir.Value) -> None:
        for i, (kernel, (before, each)) in enumerate(zip(kernels, ranges, strict=True)):
            after = ranges[i + 1][0] if i + 1 < len(ranges) else total
            own = arith.subi(number, frame.size_of(before))
            is_own = below(own, frame.size_of(after - before))
            when(is_own, functools.partial(kernel.rows, own, frame.size_of(each)))

    each_block(frame.size_of(total), item)
    return total, cost


class BlockRecurrence(RecurrenceKernel):
    """One loop, whose rows' elements are shared out to the threads of a block."""

    frame: GpuFrame

    def __init__(self, frame: GpuFrame, found: LoopOfRows):
        super().__init__(frame, found, schedule(found), frame.elements())

    def rows(self, number: ir.Value, each: ir.Value) -> None:
        """The rows of a block's number."""
        first = arith.muli(number, each)
        with self.elements.scope():
            self.chunk(first, arith.minui(arith.addi(first, each), self.frame.size_of(self.found.rows)))

    def synchronize(self) -> None:
        """All threads of the block have come here."""
        gpu.barrier()

    def nest(self, dims: Dims, axis: int, body: Callable[[Positions], None]) -> None:
        """Neighbouring threads take neighbours along the last size."""
        sizes = [self._count() if i == axis else self.frame.size_of(d) for i, d in enumerate(dims)]

        def element(number: ir.Value) -> None:
            indices = indices_of(number, sizes)
            indices[axis] = arith.addi(self.first, indices[axis])
            with self.elements.scope():
                body(tuple(map(Position, indices)))

        each_item(functools.reduce(arith.muli, sizes), element)

    def multiply(self, dot: ir.OpView, target: ir.Value) -> None:
        """A thread multiplies one row, or several ones, with a column."""
        is_one = arith.cmpi(arith.CmpIPredicate.eq, self._count(), index_constant(1))
        choice = scf.IfOp(is_one, [], has_else=True)
        for block, height in ((choice.then_block, 1), (choice.else_block, HEIGHT)):
            with ir.InsertionPoint(block):
                self._multiply(dot, target, height)
                scf.yield_([])

    def _count(self) -> ir.Value:
        return arith.subi(self.past, self.first)

    def _multiply(self, dot: ir.OpView, target: ir.Value, height: int) -> None:
        lhs, rhs = dot.operands
        depth, columns = (self.frame.size_of(d) for d in dims_of(rhs))
        width = dims_of(rhs)[1].constant or 1
        element, result = element_of(lhs.type), element_of(dot.result.type)
        sums = accumulator_of(element, result)
        last = arith.subi(self.past, index_constant(1))

        def item(number: ir.Value) -> None:
            column, group = divided(number, width)
            begin = times(group, height)
            rows = [arith.minui(arith.addi(self.first, plus(begin, i)), last) for i in range(height)]

            def step(k: ir.Value, totals: list[ir.Value]) -> list[ir.Value]:
                with self.elements.scope():
                    weight = self._factor(rhs, (k, column), totals[0], sums)
                    factors = [self._factor(lhs, (row, k), totals[0], sums) for row in rows]
                return [multiply_add(f, weight, t, sums) for f, t in zip(factors, totals, strict=True)]

            totals = counted(index_constant(0), depth, index_constant(1), [zero_of(sums)] * height, step)
            for i, total in enumerate(totals):
                place = plus(begin, i)
                value = round_to(convert(total, sums, result), result)
                at = (Position(place), Position(column))
                store = functools.partial(self._store, target, value, at, dot.result)
                when(below(place, self._count()), store)

        each_item(arith.muli(parts(self._count(), height), columns), item)

    def _factor(self, value: ir.Value, place: Sequence[ir.Value], total: ir.Value, sums: Element) -> ir.Value:
        """An element, in the type of the sums."""
        found = self.elements.at(value, tuple(map(Position, place)))
        return widen(self.elements, found, element_of(value.type), sums, total)


def _allocate(frame: GpuFrame, kernels: Sequence[BlockRecurrence]) -> int:
    """Make the scratch memory, which loops use in turns; returns how many rows it holds.

    Larger elements come first, so that all lie at multiples of their size.
    """
    row = max(kernel.row_bytes() for kernel in kernels)
    if row > STATIC_BYTES:
        raise CompilerError(f"kernels: a row of a recurrence takes {row} bytes of shared memory")
    most = max(1, min(MOST_ROWS, SHARED_BYTES // max(row, 1)))
    memory = frame.shared_memory(max(1, most * row), ir.IntegerType.get_signless(8))
    space = ir.MemRefType(memory.type).memory_space
    for kernel in kernels:
        places: dict[ir.Value, int] = {}
        end = 0
        for value, axis in sorted(kernel.scratch_values().items(), key=lambda item: -_bytes(item[0])):
            places[value] = end
            end += most * (product(row_dims(value, axis)).constant or 0) * _bytes(value)

        def part(value: ir.Value, sizes: list[int], places: dict[ir.Value, int] = places) -> ir.Value:
            type_ = ir.MemRefType.get(sizes, element_of(value.type).memory(), memory_space=space)
            return memref.ViewOp(type_, memory, index_constant(places[value]), []).result

        kernel.allocate(most, part)
    return most


def _bytes(value: ir.Value) -> int:
    return bytes_of(element_type_of(value))
