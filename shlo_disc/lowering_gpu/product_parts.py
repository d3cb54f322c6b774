# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose depth is split over blocks: each adds up a part of a tile's products, and the last one adds the parts.

The parts of a tile are added in their order (`parts`), by the threads that have the sums in registers, so each thread
reads what threads of its number have left. What is in memory is in the order of registers: 16 bytes of a thread beside
those of its neighbours.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.block_loops import Values, chosen, in_batches, when
from shlo_disc.lowering_gpu.grid import THREADS, each_block, thread
from shlo_disc.lowering_gpu.index_math import parts as parts_of_size
from shlo_disc.lowering_gpu.index_math import plus, times
from shlo_disc.lowering_gpu.kernel import flat_view, shared_array
from shlo_disc.lowering_gpu.lanes import ACCESS_BYTES
from shlo_disc.lowering_gpu.parts import Tickets, item_and_part, word_type
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.lowering_gpu.product_form import Told
from shlo_disc.shape_dialect.dialect.fusion import results_of
from shlo_disc.shape_dialect.dialect.host import Guard
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of
from shlo_disc.shape_dialect.mlir import arith, func, gpu, ir, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.product_tiles import product_tiles, wanted_tiles
from shlo_disc.shape_dialect.utils.regions import terminator_of

_FLAG = 16
"""The number of the array of the block's memory that tells its threads whether it is the last one."""


_AHEAD = 128
"""Bytes of a thread's sums that are read before the first of them is used."""


class DepthParts:
    """The parts of the depth of each tile of a product; one, all of it, where the form is not split.

    part, is_split: the block's part of a tile, and whether there are several; inside of `each`. whole: tells whether
    blocks have all of the depth, where that is known at run time.
    """

    part: ir.Value
    is_split: ir.Value | None = None
    whole: ir.Value | None = None

    def __init__(self, function: gpu.GPUFuncOp, told: Told):
        self.told = told
        *_, self.depth = told.lhs.sizes
        if told.parts is not None:
            self.count = arith.maxui(told.parts, index_constant(1))
            self.whole = arith.cmpi(arith.CmpIPredicate.ule, told.parts, index_constant(1))
            self.tickets, self.flag = Tickets.of(function), shared_array(function, _FLAG, 1, word_type())

    def each(self, tiles: ir.Value, body: Callable[[ir.Value], None]) -> None:
        """`body(tile)` for all parts of tiles below `tiles`, one block a part at a time."""
        if self.told.parts is None:
            each_block(tiles, body)
            return
        self.tiles = tiles

        def one(number: ir.Value) -> None:
            self.tile, self.part, self.is_split = item_and_part(number, self.count)
            body(self.tile)

        each_block(arith.muli(tiles, self.count), one)
        self.is_split = None

    def share(self, step: int) -> tuple[ir.Value, ir.Value]:
        """The first element of the block's part of the depth, and the one behind its last. Parts begin at multiples of
        `step`; the last ones may have none."""
        if self.is_split is None:
            return index_constant(0), self.depth
        steps = arith.divui(arith.addi(parts_of_size(self.depth, step), plus(self.count, -1)), self.count)
        begin = arith.minui(arith.muli(self.part, times(steps, step)), self.depth)
        return begin, arith.minui(arith.addi(begin, times(steps, step)), self.depth)

    def finish(self, sums: Values, use: Callable[[Values], None]) -> None:
        """`use` the sums of all of the depth, by the block that has them last. All threads of the block get here."""
        if self.is_split is None or self.told.memory is None:
            use(sums)
            return
        registers = _Registers(sums, self.told.memory, arith.muli(self.tiles, self.count))
        truth = ir.IntegerType.get_signless(1)
        yes, types = arith.constant(truth, 1), [v.type for v in sums]

        def of_parts() -> Values:
            registers.leave(sums, self._place(self.part))
            is_last = self._is_last()
            return [is_last, *chosen(is_last, types, lambda: self._added(registers), lambda: sums)]

        goes_on, *total = chosen(self.is_split, [truth, *types], of_parts, lambda: [yes, *sums])
        when(goes_on, lambda: use(total))

    def _place(self, part: ir.Value) -> ir.Value:
        return arith.addi(arith.muli(part, self.tiles), self.tile)

    def _is_last(self) -> ir.Value:
        gpu.barrier()  # before it, all threads of the block have left their sums
        return self.tickets.is_last(self.tile, self.count, self.flag)

    def _added(self, registers: _Registers) -> Values:
        """The sums of all parts, in their order; those of several are on their way at once."""

        def one(part: ir.Value, carried: Values) -> Values:
            return registers.added(carried, self._place(part))

        return in_batches(self.count, _AHEAD // registers.bytes, registers.zeros(), one)


class _Registers:
    """The sums of the threads of a block, scalars or vectors, in memory: for each place those of a tile."""

    def __init__(self, sums: Sequence[ir.Value], memory: ir.Value, places: ir.Value):
        self.types = [v.type for v in sums]
        first = self.types[0]
        self.element = ir.VectorType(first).element_type if isinstance(first, ir.VectorType) else first
        self.lanes = ACCESS_BYTES // bytes_of(self.element)
        self.piece = ir.VectorType.get([self.lanes], self.element)
        of_thread = len(self._scalars(sums))
        self.of_place, self.bytes = THREADS * of_thread, bytes_of(self.element) * of_thread
        self.view = flat_view(memory, times(places, self.of_place))

    def leave(self, sums: Sequence[ir.Value], place: ir.Value) -> None:
        """Store the thread's sums at a place."""
        for number, piece in enumerate(self._pieces(sums)):
            vector.store(piece, self.view, [self._at(place, number)], alignment=ACCESS_BYTES)

    def added(self, sums: Sequence[ir.Value], place: ir.Value) -> Values:
        """Sums plus those that the thread of this number has left at a place."""
        pieces = self._pieces(sums)
        left = [
            vector.load(self.piece, self.view, [self._at(place, number)], alignment=ACCESS_BYTES)
            for number in range(len(pieces))
        ]
        add = arith.addi if isinstance(self.element, ir.IntegerType) else arith.addf
        return self._values([add(a, b) for a, b in zip(pieces, left, strict=True)])

    def zeros(self) -> Values:
        """Sums of nothing."""
        return [splat_constant(t) if isinstance(t, ir.VectorType) else _zero(t) for t in self.types]

    def _at(self, place: ir.Value, number: int) -> ir.Value:
        own = times(plus(thread(), number * THREADS), self.lanes)
        return arith.addi(times(place, self.of_place), own)

    def _scalars(self, sums: Sequence[ir.Value]) -> Values:
        """The sums one by one."""
        found: Values = []
        for value in sums:
            if not isinstance(value.type, ir.VectorType):
                found.append(value)
                continue
            rows, columns = ir.VectorType(value.type).shape
            found += [vector.extract(value, [], [i, j]) for i in range(rows) for j in range(columns)]
        return found

    def _pieces(self, sums: Sequence[ir.Value]) -> Values:
        scalars = self._scalars(sums)
        groups = range(0, len(scalars), self.lanes)
        return [vector.from_elements(self.piece, scalars[i : i + self.lanes]) for i in groups]

    def _values(self, pieces: Sequence[ir.Value]) -> Values:
        """Pieces as the sums of the thread."""
        scalars = iter([vector.extract(piece, [], [i]) for piece in pieces for i in range(self.lanes)])

        def value(type_: ir.Type) -> ir.Value:
            if not isinstance(type_, ir.VectorType):
                return next(scalars)
            return vector.from_elements(type_, [next(scalars) for _ in range(math.prod(ir.VectorType(type_).shape))])

        return list(map(value, self.types))


def _zero(type_: ir.Type) -> ir.Value:
    return arith.constant(type_, 0 if isinstance(type_, ir.IntegerType) else 0.0)


# ---- what a kernel is told, and its blocks ---------------------------------------------------------------------------


def numbers_of(problem: MatrixProduct, fusion: func.FuncOp) -> Dims:
    """The first sizes of the kernel of a product that a fusion is."""
    return (*problem.numbers, *(dims[0] for dims in _memory_of(fusion)))


def blocks_of(problem: MatrixProduct, fusion: func.FuncOp) -> Expr:
    """The blocks of the kernel: one for each part of a square tile. Where rows are few, half of them have no work."""
    tiles = product_tiles(problem, GPU_POLICY)
    return functools.reduce(lambda blocks, dims: blocks * Expr.maximum(dims[0], 1), _memory_of(fusion), tiles)


def depth_guards(problem: MatrixProduct, fusion: func.FuncOp) -> tuple[Guard, ...]:
    """The choice of the kernel between parts and all of the depth, where it depends on sizes."""
    is_long = Relation.ge(problem.k.size, 2 * GPU_POLICY.part_depth)
    tiles, wanted = product_tiles(problem, GPU_POLICY), wanted_tiles(problem, GPU_POLICY)
    conditions = (is_long, Relation.le(tiles * 2, wanted))
    if not _memory_of(fusion) or not any(condition.symbols() for condition in conditions):
        return ()
    return (Guard("several blocks for each tile", "one block for each tile", conditions),)


def _memory_of(fusion: func.FuncOp) -> list[Dims]:
    """The sizes of the scratch memory."""
    returned = list(terminator_of(fusion.entry_block).operands)
    return [dims_of(v) for v in returned[len(results_of(fusion)) :]]


__all__ = ["DepthParts", "blocks_of", "depth_guards", "numbers_of"]
