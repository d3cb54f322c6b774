# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row kernels for GPUs: a team of threads a row, which is a part of a warp, a warp or a block.

Where each reduction is a plain sum, maximum, ... neighbouring threads take neighbouring columns, and what a walk has
read or computed is kept for later ones. Any other body may depend on the order of its operands (an argmax keeps the
first of equal elements), so each thread then takes a run of columns, and runs are combined in order.

Where rows are long and few, several blocks have parts of a row (`parts.py`), if one walk makes all results.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from shlo_disc.lowering.elements import Positions, uniform
from shlo_disc.lowering.kernels import op_cost
from shlo_disc.lowering.long_sums import BLOCK, SHORT, LongSums, in_blocks
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.lowering.row_kernel import Body, Computed, RowKernel, Values
from shlo_disc.lowering.rows import RowAnalysis, analyse_rows
from shlo_disc.lowering_gpu.block_loops import in_batches, when
from shlo_disc.lowering_gpu.block_reduction import across_team
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.index_math import below, times
from shlo_disc.lowering_gpu.kept_rows import BLOCKS, FEWEST, Kept, Slots, nothing_kept, worth_keeping
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.parts import Parts
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.lowering_gpu.row_division import Divisor, RowElements, divisions_of_rows
from shlo_disc.lowering_gpu.row_runs import Alike, RunForm, Runs, batch_of, begin_with_rows, forms_of_runs
from shlo_disc.lowering_gpu.teams import PART, Team, team_of_rows
from shlo_disc.shape_dialect.dialect.types import product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, scf
from shlo_disc.shape_dialect.ops.reducers import is_reorderable
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation


@dataclass(frozen=True)
class Share:
    """The runs of one width that are a thread's: how many, and the first column of one of them.

    slots: the place in shared memory where those of the block are kept, and how many of a thread.
    """

    runs: Runs
    count: ir.Value
    first_column: Callable[[ir.Value], ir.Value]
    slots: tuple[ir.Value, ir.Value]


class TeamRows(RowKernel):
    """The work of a team on one row after another, in runs of a form."""

    frame: GpuFrame
    elements: RowElements

    def __init__(self, frame: GpuFrame, analysis: RowAnalysis, team: Team, slots: Slots, parts: Parts, form: RunForm):
        super().__init__(frame, analysis, frame.elements_of(RowElements))
        self.divisions = divisions_of_rows(analysis)
        self.team, self.slots, self.parts, self.width = team, slots, parts, form.width
        self.goes_on: ir.Value | None = None
        self.runs, self.columns = Runs(frame, analysis, form), Runs(frame, analysis, RunForm(1))
        self.alike = Alike.of(frame, form) if form.alike else None
        self.results: list[list[Computed]] = []

    def group(self, number: ir.Value) -> None:
        """The rows that the teams of a block work on side by side. A row that there is not has no columns."""
        self.linear = linear = self.team.row(number)
        self.is_row, self.goes_on = None, None
        self.first, self.count = self.parts.share(product(self.analysis.columns), THREADS)
        if not self.team.is_block:
            self.is_row = arith.cmpi(arith.CmpIPredicate.ult, linear, self.frame.size_of(product(self.analysis.rows)))
            self.count = arith.select(self.is_row, self.count, index_constant(0))
        self.slots.begin_row()
        self.elements.divisors.clear()
        self.row(linear)
        if THREADS in self.team.sizes and sum(map(len, self.analysis.reduces.values())) == 1:
            # Where there are more, each has its barrier between the other's reads in this row and writes in the next.
            gpu.barrier()

    # ---- walks ------------------------------------------------------------------------------------------------------

    def walk(self, carried: Values, body: Body, fold: Callable[[Values], Values] | None, in_order: bool) -> Values:
        """This thread's share of the columns: first those for which it has room to keep something, then the others."""
        self._invert_divisors()
        for number, share in enumerate([self._runs_in_order()] if in_order else self._runs_side_by_side()):
            if number and fold is not None:
                carried = fold(carried)
            carried = self._walk(share, carried, body, fold)
        self.slots.end_walk()
        return carried

    def _walk(self, share: Share, carried: Values, body: Body, fold: Callable[[Values], Values] | None) -> Values:
        """Runs of one width, first those that slots are for."""
        begin, (_, room) = index_constant(0), share.slots
        if self.slots.buffers:
            count, run = arith.minui(share.count, room), partial(self._run, share, body, True)
            width = share.runs.width
            batch = min(batch_of(self.frame, self.analysis, width, self.depth), self.slots.each // width)
            if batch > 1:
                carried = in_batches(count, batch, carried, run)
            else:
                carried = in_blocks(begin, count, 1, carried, run, None)
            begin = room
        if not self.slots.buffers or may_be_longer(self.frame, self.team.length, self.slots.each * THREADS):
            if fold is not None and self.slots.buffers:
                carried = fold(carried)
            block = max(1, BLOCK // share.runs.width)
            carried = in_blocks(begin, share.count, 1, carried, partial(self._run, share, body, False), fold, block)
        return carried

    def _invert_divisors(self) -> None:
        """The reciprocals of divisors that are known in this walk, once a row and before its loops."""
        divisors = self.elements.divisors
        for op in self.divisions:
            quotient, divisor = op.results[0], op.operands[1]
            if quotient not in divisors and self.analysis.depth.get(divisor, 0) <= self.depth:
                first = uniform([index_constant(0)] * len(self.analysis.columns))
                divisors[quotient] = Divisor.of(self.elements.at(divisor, self.place(divisor, first)))

    def _run(self, share: Share, body: Body, is_kept: bool, number: ir.Value, carried: Values) -> Values:
        """One run of columns."""
        elements, slots, runs = self.elements, self.slots, share.runs
        with elements.scope():
            runs.stand(self.rows, share.first_column(number))
            elements.cached = {v: partial(runs.read, v) for v in runs.buffers}
            if is_kept:
                slots.stand(share.slots[0], number, [partial(self._place_at, columns) for columns in runs.places])
                elements.cached |= {v: partial(slots.read, v) for v in slots.held()}
            for columns in runs.places:
                carried = body(columns, carried, None)
            if is_kept:
                slots.write(elements, self.depth)
            runs.write(self.results)
        elements.cached, self.results = {}, []
        return carried

    def _place_at(self, columns: Positions, value: ir.Value) -> Positions:
        return self.place(value, columns)

    def _runs_side_by_side(self) -> list[Share]:
        """Neighbouring threads take neighbouring runs, and then neighbouring columns of those that are in no run."""
        zero, width, each = index_constant(0), self.width, self.slots.each
        if self.alike is None:
            of_row = self._dealt(self.runs, arith.divui(self.count, index_constant(width)), lambda n: times(n, width))
            return [of_row(zero, index_constant(each // width))]
        head = self.alike.head(self.linear, self.frame.size_of(product(self.analysis.columns)), self.count)
        number = arith.divui(arith.subi(self.count, head), index_constant(width))
        in_runs = times(number, width)
        runs = self._dealt(self.runs, number, lambda n: arith.addi(head, times(n, width)))
        rest = self._dealt(
            self.columns,
            arith.subi(self.count, in_runs),
            lambda n: arith.addi(n, arith.select(below(n, head), zero, in_runs)),
        )
        behind, few, all_ = (index_constant(n) for n in (each * THREADS, self.slots.more, each))
        is_alike = self.alike.are_alike
        slots = arith.select(is_alike, behind, zero), arith.select(is_alike, few, all_)
        return [runs(zero, index_constant(each // width)), rest(*slots)]

    def _dealt(
        self, runs: Runs, number: ir.Value, place: Callable[[ir.Value], ir.Value]
    ) -> Callable[[ir.Value, ir.Value], Share]:
        """This thread's share of so many runs, of which number n begins at `place(n)` in this part of the row: given
        the first slot and the number of a thread's slots."""
        shift, lane = self.team.shift, self.team.lane
        rest = arith.subi(arith.subi(arith.shli(index_constant(1), shift), index_constant(1)), lane)
        count = arith.shrui(arith.addi(number, rest), shift)

        def first_column(n: ir.Value) -> ir.Value:
            return self._column(place(arith.addi(arith.shli(n, shift), lane)))

        return lambda first, room: Share(runs, count, first_column, (first, room))

    def _runs_in_order(self) -> Share:
        """Each thread takes the columns behind those of the thread before."""
        shift = self.team.shift
        rest = arith.subi(arith.shli(index_constant(1), shift), index_constant(1))
        length = arith.shrui(arith.addi(self.count, rest), shift)
        begin = arith.minui(arith.muli(self.team.lane, length), self.count)
        count = arith.minui(length, arith.subi(self.count, begin))
        slots = index_constant(0), index_constant(self.slots.each)
        return Share(self.runs, count, lambda n: self._column(arith.addi(begin, n)), slots)

    def _column(self, place: ir.Value) -> ir.Value:
        """The column at a place in this part of the row."""
        return place if self.parts.is_split is None else arith.addi(self.first, place)

    def across(self, combiner: Combiner, found: Values) -> Values:
        """The combination of all threads of the team."""
        return across_team(self.frame, self.team, combiner, found)

    def of_parts(
        self, combiners: Sequence[Combiner], starts: Sequence[Values], totals: Sequence[Values]
    ) -> Sequence[Values]:
        """The values of all parts, in the block that is the last one to have its part; `goes_on` tells which is."""
        at = [place.base for place in self.rows]
        firsts = list(itertools.accumulate(map(len, totals), initial=0))

        def leave() -> None:
            for values, first in zip(totals, firsts, strict=False):
                when(self._is_first(), partial(self.parts.store, values, at, first))

        def gather() -> Values:
            found: Values = []
            for combiner, start, first in zip(combiners, starts, firsts, strict=False):
                own = self.parts.combined(start, at, combiner.combine_partials, thread(), THREADS, first=first)
                found += self.across(combiner, own)
            return found

        values, self.goes_on = self.parts.of_all([v for total in totals for v in total], leave, gather)
        return [values[first:end] for first, end in itertools.pairwise(firsts)]

    def long_sums(self, combiners: Sequence[Combiner]) -> LongSums:
        """A thread's share of a row may be long."""
        return LongSums(combiners, may_be_long=may_be_longer(self.frame, self.team.length, SHORT * THREADS))

    # ---- results ----------------------------------------------------------------------------------------------------

    def write_walk(self) -> None:
        """The first thread of a team writes what there is one of in a row."""
        full, of_row = self.outputs(is_full=True), self.outputs(is_full=False)

        def body(columns: Positions, *_: object) -> Values:
            self.results.append(self.compute(full, columns))
            return []

        if full:
            self.walk([], body, None, False)
        if of_row:
            if full or self._may_take_over([value for value, _ in of_row]):
                # Other threads may not have read yet what these take the place of.
                gpu.barrier()
            with ir.InsertionPoint(scf.IfOp(self._is_first(), []).then_block), self.elements.scope():
                self.store(self.compute(of_row, ()))
                scf.yield_([])

    def _may_take_over(self, outputs: Sequence[ir.Value]) -> bool:
        """Tells whether outputs may lie where an input does, which has to be of the same type."""
        return any(value.type == output.type for value in self.frame.inputs for output in outputs)

    def _is_first(self) -> ir.Value:
        is_first = arith.cmpi(arith.CmpIPredicate.eq, self.team.lane, index_constant(0))
        for condition in (self.is_row, self.goes_on):
            is_first = is_first if condition is None else arith.andi(is_first, condition)
        return is_first


def may_be_longer(frame: GpuFrame, length: Expr, bound: int) -> bool:
    """Tells whether it is not known that a size is at most so much."""
    return frame.facts.prove(Relation.le(length, bound)) is not True


def build_rows(frame: GpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns how many blocks have work, and the cost of what one does."""
    analysis = analyse_rows(frame.fusion)
    length, total = product(analysis.columns), product(analysis.rows)
    in_order = not all(map(is_reorderable, _reduces(analysis)))
    kept = nothing_kept() if in_order else worth_keeping(frame.fusion, analysis)
    team = team_of_rows(frame, length, WARP * kept.each)
    forms = (RunForm(1),) if in_order else forms_of_runs(frame, analysis)
    slots = Slots(frame, kept, _room(frame, kept, length), _slots_of_ends(forms[-1]))
    if kept.types:
        word = ir.IntegerType.get_signless(32)
        frame.function.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(word, BLOCKS)
    if kept.types and may_be_longer(frame, length, slots.each * THREADS):
        fits = Relation.le(length, slots.each * THREADS)
        frame.guard("rows kept in shared memory", "the ends of rows read again", fits)

    parts = Parts(frame)
    parts.guard(length, GPU_POLICY.part_columns, total)

    def rows(form: RunForm) -> None:
        kernel = TeamRows(frame, analysis, team, slots, parts, form)
        parts.each(team.groups(frame.size_of(total)), kernel.group)

    if len(forms) == 1:
        rows(*forms)
    else:
        choice = scf.IfOp(begin_with_rows(frame, analysis, forms[0].width, bool(forms[1].alike)), [], has_else=True)
        for block, form in zip((choice.then_block, choice.else_block), forms, strict=True):
            with ir.InsertionPoint(block):
                rows(form)
                scf.yield_([])
    cost = sum(op_cost(op) for op in frame.fusion.entry_block.operations)
    return team.blocks(total) * parts.count, max(1, cost) * length


def _reduces(analysis: RowAnalysis) -> list[ir.OpView]:
    return [op for ops in analysis.reduces.values() for op in ops]


def _slots_of_ends(form: RunForm) -> int:
    """The columns of a thread in front of the first run and behind the last one, at most, in the smallest teams."""
    return -(-2 * (form.width - 1) // PART) if form.alike else 0


def _room(frame: GpuFrame, kept: Kept, length: Expr) -> int:
    """The number of elements of each value that a thread keeps: no more than it may have, in a warp or larger team."""
    longest = frame.facts.range(length)[1]
    if longest is None or longest > WARP * kept.each:
        return kept.each
    return -(-max(1, longest) // (WARP * FEWEST)) * FEWEST
