# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Merging of two neighbouring sorted runs by a whole block of threads, through the memory of the block.

A cut (d, i) is where the first d elements of the merged run come from: i of the first run, d - i of the second. It is
found by bisection ("merge path", after Green, McColl and Bader, "GPU merge path: a GPU merging algorithm"). All cuts of
a piece are looked for at once, each by one thread. Only then are they kept in order, from the middle of the run down:
each lies between the two that halves before it have. For an order they do so anyway; what is no strict weak order gives
some permutation.

The block loads elements of both runs, each thread merges a few of them by their slots, and the block writes them: all
accesses to the memory of the device are to neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shlo_disc.lowering.line_sort import LineSort, Rows, ceil_log2
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.block_loops import Values, as_long_as, counted, each_item, when
from shlo_disc.lowering_gpu.grid import THREADS, thread
from shlo_disc.lowering_gpu.index_math import below
from shlo_disc.lowering_gpu.parts import word_type
from shlo_disc.lowering_gpu.sort_tile import SortTile
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref

Source = Callable[[ir.Value], Values]
"""Gives the elements of every operand at a place of a run."""


def cut_of_runs(sorter: LineSort, d: ir.Value, lengths: Values, left: Source, right: Source) -> ir.Value:
    """The cut at `d` of two runs of these lengths: of equal elements those of the first run come first."""
    one = _number(d, 1)

    def bisect(bounds: Values) -> Values:
        least, most = bounds
        i = arith.shrui(arith.addi(least, most), one)
        j = arith.subi(arith.subi(d, i), one)
        right_is_first = sorter.is_before(right(j), left(i))
        return [
            arith.select(right_is_first, least, arith.addi(i, one)),
            arith.select(right_is_first, i, most),
        ]

    least, most = arith.maxsi(_number(d, 0), arith.subi(d, lengths[1])), arith.minui(d, lengths[0])
    return as_long_as([least, most], lambda bounds: below(*bounds), bisect)[0]


@dataclass
class Halves:
    """A piece of a merged run, which is halved `levels` times until that piece is left; both are words."""

    piece: ir.Value
    levels: ir.Value

    def middle(self, level: ir.Value) -> ir.Value:
        """The first piece of the second half, of the two that are there at a level."""
        one, rest = arith.constant(word_type(), 1), arith.subi(self.levels, level)
        start = arith.shli(arith.shrui(self.piece, rest), rest)
        return arith.addi(start, arith.shli(one, arith.subi(rest, one)))

    def cuts(self, whole: Values, cut: Callable[[ir.Value, ir.Value], Values]) -> tuple[Values, Values]:
        """The cuts around the piece; `cut(level, middle)` is that before a second half, `whole` that of all."""

        def halve(level: ir.Value, carried: Values) -> Values:
            low, high, middle = carried[:2], carried[2:], self.middle(level)
            at = _between(cut(level, middle), low, high)
            is_left = below(self.piece, middle)
            return [arith.select(is_left, a, b) for a, b in zip([*low, *at], [*at, *high], strict=True)]

        none, begin, step = _number(whole[0], 0), _number(self.levels, 0), _number(self.levels, 1)
        found = counted(begin, self.levels, step, [none, none, *whole], halve)
        return found[:2], found[2:]


def _between(cut: Values, low: Values, high: Values) -> Values:
    """A cut such that both of its shares are between those of two others."""
    d, i = cut
    least = arith.maxsi(low[1], arith.subi(d, arith.subi(high[0], high[1])))
    most = arith.minsi(high[1], arith.subi(d, arith.subi(low[0], low[1])))
    return [d, arith.minsi(arith.maxsi(i, least), most)]


@dataclass
class BlockMerge:
    """Two neighbouring runs of the rows of `source`, from `begin` to `middle` and from there to `end`."""

    tile: SortTile
    source: Rows
    begin: ir.Value
    middle: ir.Value
    end: ir.Value

    @property
    def _whole(self) -> Values:
        """The cut behind all elements."""
        return [arith.subi(self.end, self.begin), arith.subi(self.middle, self.begin)]

    def write(self, target: Rows) -> None:
        """Merge all. All threads of the block must get here, and behind a barrier go on."""
        zero = index_constant(0)
        self._merge(target, [zero, zero], self._whole)

    def write_piece(self, target: Rows, places: ir.Value, halves: Halves, size: ir.Value) -> None:
        """Merge a piece of `size` elements, as all before it have. All threads of the block must get here.

        places: memory of the block for a number of 64 bits for each level of halves.
        """
        wide, levels, whole = ir.IntegerType.get_signless(64), index_of(halves.levels), self._whole

        def place_of(piece: ir.Value) -> ir.Value:
            return arith.minui(arith.muli(index_of(piece), size), whole[0])

        def look(level: ir.Value, _: Values) -> Values:
            lengths, d = [whole[1], arith.subi(self.end, self.middle)], place_of(halves.middle(word_of(level)))
            found = cut_of_runs(self.tile.sorter, d, lengths, self._from(self.begin), self._from(self.middle))
            memref.store(arith.index_cast(wide, found), places, [level])
            return []

        def found(level: ir.Value, middle: ir.Value) -> Values:
            place = memref.load(places, [index_of(level)])
            return [place_of(middle), arith.index_cast(ir.IndexType.get(), place)]

        counted(thread(), levels, index_constant(THREADS), [], look)
        gpu.barrier()
        self._merge(target, *halves.cuts(whole, found))

    def _from(self, start: ir.Value) -> Source:
        return lambda i: self.tile.sorter.load(self.source, arith.addi(start, i))

    def _merge(self, target: Rows, low: Values, high: Values) -> None:
        """Merge what is between two cuts, as many elements at once as the tile has room for from either run."""
        width = index_constant(self.tile.width)

        def step(d: ir.Value, carried: Values) -> Values:
            (i,) = carried
            rest, of_left = arith.subi(high[0], d), arith.subi(high[1], i)
            count, *lengths = (arith.minui(width, n) for n in (rest, of_left, arith.subi(rest, of_left)))
            self._load(index_constant(0), arith.addi(self.begin, i), lengths[0])
            self._load(width, arith.addi(self.middle, arith.subi(d, i)), lengths[1])
            gpu.barrier()
            taken = merge_tile(self.tile, [word_of(n) for n in lengths], word_of(count))
            gpu.barrier()
            self._store(target, arith.addi(self.begin, d), count)
            gpu.barrier()
            return [arith.addi(i, index_of(taken))]

        counted(low[0], high[0], width, [low[1]], step)

    def _load(self, slot: ir.Value, start: ir.Value, count: ir.Value) -> None:
        def load(i: ir.Value) -> None:
            elements = self.tile.sorter.load(self.source, arith.addi(start, i))
            self.tile.sorter.store(self.tile.slots, arith.addi(slot, i), elements)

        each_item(count, load)

    def _store(self, target: Rows, begin: ir.Value, count: ir.Value) -> None:
        def store(i: ir.Value) -> None:
            elements = self.tile.at(index_of(memref.load(self.tile.order, [i])))
            self.tile.sorter.store(target, arith.addi(begin, i), elements)

        each_item(count, store)


def merge_tile(tile: SortTile, lengths: Values, count: ir.Value) -> ir.Value:
    """Put the slots of the first `count` elements of two runs in order; gives how many of them are of the first run.

    The runs have these lengths, and begin at the first slot and in the middle of all. `count` is at least 1.
    """
    own, each = word_of(thread()), _number(count, max(1, tile.width // THREADS))
    pieces = arith.divui(arith.addi(count, arith.subi(each, _number(each, 1))), each)
    is_there = below(own, pieces)

    def place_of(piece: ir.Value) -> ir.Value:
        return arith.minui(arith.muli(piece, each), count)

    def left(i: ir.Value) -> Values:
        return tile.at(index_of(i))

    def right(j: ir.Value) -> Values:
        return tile.at(index_of(arith.addi(j, _number(j, tile.width))))

    def look() -> None:
        d = place_of(arith.addi(own, _number(own, 1)))
        memref.store(cut_of_runs(tile.sorter, d, lengths, left, right), tile.cuts, [thread()])

    def found(piece: ir.Value) -> Values:
        """The cut before a piece, which is not the first, or behind all."""
        last = arith.subi(arith.minui(piece, pieces), _number(piece, 1))
        return [place_of(piece), memref.load(tile.cuts, [index_of(last)])]

    def merge() -> None:
        halves = Halves(own, word_of(ceil_log2(index_of(pieces))))
        _merge_slots(tile, *halves.cuts(whole, lambda _, middle: found(middle)))

    when(is_there, look)
    gpu.barrier()
    whole = found(pieces)
    when(is_there, merge)
    return whole[1]


def _merge_slots(tile: SortTile, low: Values, high: Values) -> None:
    """Put the slots between two cuts in order, without branches on the elements.

    Both heads are loaded at every step; that of a run at its end is in some slot, and not taken.
    """
    one, second, last = (_number(high[0], number) for number in (1, tile.width, 2 * tile.width - 1))
    right_end = arith.addi(second, arith.subi(high[0], high[1]))

    def step(d: ir.Value, heads: Values) -> Values:
        i, j = heads
        left, right = (tile.at(index_of(slot)) for slot in (i, arith.minui(j, last)))
        is_empty = arith.cmpi(arith.CmpIPredicate.uge, i, high[1])
        is_right = arith.ori(is_empty, arith.andi(below(j, right_end), tile.sorter.is_before(right, left)))
        memref.store(arith.select(is_right, j, i), tile.order, [index_of(d)])
        moved = arith.extui(word_type(), is_right)
        return [arith.addi(i, arith.subi(one, moved)), arith.addi(j, moved)]

    heads = [low[1], arith.addi(second, arith.subi(low[0], low[1]))]
    counted(low[0], high[0], one, heads, step)


def _number(like: ir.Value, number: int) -> ir.Value:
    return arith.constant(like.type, number)


def word_of(value: ir.Value) -> ir.Value:
    """An index that is small, as a word."""
    return arith.index_cast(word_type(), value)


def index_of(word: ir.Value) -> ir.Value:
    """A word as an index."""
    return arith.index_castui(ir.IndexType.get(), word)
