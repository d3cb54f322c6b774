# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs: neighbouring columns that a thread works on at once, so that it moves up to 16 bytes by one instruction.

Elements are computed one by one. What is asked of a tensor at one column of a run will be asked at all of them, so its
elements are read together when the first of them is asked for, and results are written together.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from shlo_disc.lowering.element_types import constant_like, element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Positions, uniform
from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.row_kernel import Computed
from shlo_disc.lowering.rows import RowAnalysis
from shlo_disc.lowering_gpu.index_math import is_multiple_of
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.dialect.types import bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, memref, vector
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE
from shlo_disc.shape_dialect.ops.code_size import total_code_size
from shlo_disc.shape_dialect.symbolic.facts import Relation

BYTES = 16
"""The most bytes that a thread moves by one instruction."""

WIDEST = 8
"""Columns of a run, at most."""

LONG = 64
"""Instructions for an element from which on memory waits for them: how it is read makes no difference."""

FEW = 4
"""Runs in a row from which on it pays to find out where they begin."""

BATCH_COLUMNS = 16
"""Columns of the runs that a thread reads at once: there are registers for them in four blocks of a processor."""

FEWEST = 4
"""Columns of a run, at least, where several are read at once, or begin elsewhere than rows: f64 takes the registers."""

LONGEST_BATCH = 512
"""Instructions of the runs that are read at once, at most."""

IN_PLACE = ELEMENTWISE | BROADCASTS | {"stablehlo.iota", "stablehlo.dynamic_iota"}
"""Ops that need their operands where they are themselves."""


@dataclass(frozen=True)
class RunForm:
    """The way in which rows are divided into runs of `width` columns.

    alike: the tensors of which a row lies behind the one before, and which all have as many columns in front of the
    first multiple of a run's bytes. Runs begin there, and columns in front of the first and behind the last one are
    taken one by one. Empty where runs begin with the row.
    """

    width: int
    alike: tuple[ir.Value, ...] = ()


def forms_of_runs(frame: GpuFrame, analysis: RowAnalysis) -> tuple[RunForm, ...]:
    """The forms that a kernel has, of which it takes the first one where `begin_with_rows`, and else the last one.

    Rows that are known to be of whole runs begin at no multiple only where tensors do, which is too rare for a form.
    """
    tensors = _tensors(frame, analysis)
    sizes = [bytes_of(element_type_of(v)) for v in tensors]
    each, width = _along_rows(frame, analysis), min(WIDEST, BYTES // max(sizes, default=BYTES))
    if width == 1 or total_code_size(each) >= LONG:
        return (RunForm(1),)
    is_divided = frame.facts.prove(Relation.eq(analysis.columns[-1] % width, 0))
    most = frame.facts.range(product(analysis.columns))[1]
    is_short = is_divided is False and most is not None and most < FEW * width
    alike = tuple(v for v in tensors if _is_by_rows(v, analysis))
    if is_divided or is_short or not alike or width < FEWEST or not _are_in_place(each):
        return (RunForm(1),) if is_divided is False else (RunForm(width), RunForm(1))
    has_both = is_divided is None and len(alike) < len(tensors)
    return (RunForm(width), RunForm(width, alike)) if has_both else (RunForm(width, alike),)


def batch_of(frame: GpuFrame, analysis: RowAnalysis, width: int, depth: int) -> int:
    """The runs of a thread whose reads are on their way at once in the walk of a depth.

    More than one where they have few instructions, and take few registers.
    """
    each = _along_rows(frame, analysis)
    code = total_code_size(op for op in each if all(analysis.depth[v] == depth for v in op.results))
    batch = BATCH_COLUMNS // width if width >= FEWEST and _are_in_place(each) else 1
    while batch > 1 and batch * code * width > LONGEST_BATCH:
        batch //= 2
    return batch


def _along_rows(frame: GpuFrame, analysis: RowAnalysis) -> list[ir.OpView]:
    return [op for op in frame.fusion.entry_block.operations if any(map(analysis.is_full, op.results))]


def _are_in_place(ops: Sequence[ir.OpView]) -> bool:
    """Tells whether what ops read is where a thread stands; elements from elsewhere take more registers."""
    return all(op.operation.name in IN_PLACE for op in ops)


def begin_with_rows(frame: GpuFrame, analysis: RowAnalysis, width: int, has_alike: bool) -> ir.Value:
    """Tells whether rows are divided into runs, each of which lies in memory as a vector does; decided at run time."""
    zero = index_constant(0)
    found = arith.constant(ir.IntegerType.get_signless(1), 1)
    rests = [arith.remui(address_of(frame, v), index_constant(BYTES)) for v in _tensors(frame, analysis)]
    columns = analysis.columns[-1]
    if not frame.facts.divides(width, columns):
        others = f"{width} columns at a time, from a multiple of their bytes on" if has_alike else "a column at a time"
        frame.guard(f"{width} columns at a time", others, Relation.eq(columns % width, 0))
        rests.append(arith.remui(frame.size_of(columns), index_constant(width)))
    for rest in rests:
        found = arith.andi(found, arith.cmpi(arith.CmpIPredicate.eq, rest, zero))
    return found


def address_of(frame: GpuFrame, value: ir.Value) -> ir.Value:
    """The address of a tensor as an index."""
    pointers = dict(zip(frame.tensors, frame.entry.arguments, strict=False))
    return memref.extract_aligned_pointer_as_index(pointers[value])


def _is_by_rows(value: ir.Value, analysis: RowAnalysis) -> bool:
    """Tells whether a tensor has all rows, each behind the one before, of one axis of columns, the last one."""
    wide = [d for d in analysis.columns if d.constant != 1]
    whole = [d for d in (*analysis.rows, *analysis.columns) if d.constant != 1]
    return wide == [analysis.columns[-1]] and [d for d in dims_of(value) if d.constant != 1] == whole


def _tensors(frame: GpuFrame, analysis: RowAnalysis) -> list[ir.Value]:
    """The tensors that may be read or written in runs, each of which may come as several arguments."""
    outputs = [v for v in frame.outputs if analysis.is_full(v)]
    return [v for v in (*frame.inputs, *outputs) if _has_columns(v, analysis)]


def _has_columns(value: ir.Value, analysis: RowAnalysis) -> bool:
    """Tells whether the columns lie side by side in a tensor."""
    return dims_of(value)[-1:] == analysis.columns[-1:]


@dataclass(frozen=True)
class Alike:
    """The alignment of the rows of a form, found when a kernel starts.

    first: the number of elements from a multiple of a run's bytes to the first row, in one of the tensors, where only
    the remainder by `width` counts. are_alike: whether that is the same in all of them.
    """

    width: int
    first: ir.Value
    are_alike: ir.Value

    @staticmethod
    def of(frame: GpuFrame, form: RunForm) -> Alike:
        """The place where the rows of the tensors of a kernel begin."""
        places = [arith.divui(address_of(frame, v), index_constant(bytes_of(element_type_of(v)))) for v in form.alike]
        found = index_constant(0)
        for place in places[1:]:
            found = arith.ori(found, arith.xori(places[0], place))
        return Alike(form.width, _word(places[0]), is_multiple_of(found, form.width))

    def head(self, row: ir.Value, length: ir.Value, count: ir.Value) -> ir.Value:
        """The first of `count` columns of a row that a run begins at; all of them where runs are not alike.

        Parts of a row begin at multiples of a block's threads, which make no difference; nor do upper bits.
        """
        place = arith.addi(self.first, arith.muli(_word(row), _word(length)))
        ahead = arith.andi(arith.subi(constant_like(place, 0), place), constant_like(place, self.width - 1))
        return arith.select(self.are_alike, arith.minui(arith.index_castui(count.type, ahead), count), count)


def _word(value: ir.Value) -> ir.Value:
    """The lower half of an index."""
    return arith.index_cast(ir.IntegerType.get_signless(32), value)


class Runs:
    """The position of a thread: `places` are the columns of its run."""

    def __init__(self, frame: GpuFrame, analysis: RowAnalysis, form: RunForm):
        self.frame, self.analysis, self.form, self.width = frame, analysis, form, form.width
        self.places: list[Positions] = []
        self.buffers = dict(zip(frame.inputs, frame.input_buffers, strict=True)) if self.width > 1 else {}
        self.buffers = {v: buffer for v, buffer in self.buffers.items() if self._may_be_run(v)}

    def _may_be_run(self, value: ir.Value) -> bool:
        """Tells whether runs of a tensor are accesses of several elements."""
        return value in self.form.alike if self.form.alike else _has_columns(value, self.analysis)

    def stand(self, rows: Positions, first: ir.Value) -> None:
        """Go to the run that begins at a column of a row."""
        *outer, inner = uniform(delinearize(first, self.analysis.columns, self.frame.size_of))
        more = [Position(arith.addi(inner.base, index_constant(i))) for i in range(1, self.width)]
        self.places = [(*outer, place) for place in (inner, *more)]
        sizes = (*self.analysis.rows, *self.analysis.columns[:-1])
        self._outer = list(zip((*rows, *outer), sizes, strict=True))
        self._rows = [p for p, d in zip(rows, self.analysis.rows, strict=True) if d.constant != 1]
        self._block = ir.InsertionPoint.current.block
        self._read: dict[Hashable, ir.Value] = {}

    def read(self, value: ir.Value, positions: Positions) -> ir.Value | None:
        """The element of an input that stands in the run; None for one that stands elsewhere."""
        lane = next((i for i, place in enumerate(self.places) if place[-1] == positions[-1]), None)
        axes = [self._axis(p, d) for p, d in zip(positions[:-1], dims_of(value)[:-1], strict=True)]
        if lane is None or None in axes or not self._is_here(value, positions):
            return None
        key = (value, *axes)
        if key not in self._read:
            if ir.InsertionPoint.current.block != self._block:
                return None
            self._read[key] = self._load(value, [p.base for p in (*positions[:-1], self.places[0][-1])])
        return from_memory(vector.extract(self._read[key], [], [lane]), element_of(value.type))

    def _is_here(self, value: ir.Value, positions: Positions) -> bool:
        """Tells whether a run of a tensor lies in this row, if runs begin elsewhere in others."""
        wide = [p for p, d in zip(positions, dims_of(value), strict=True) if d.constant != 1]
        return not self.form.alike or wide[:-1] == self._rows

    def _axis(self, position: Position, size: object) -> int | None:
        """The axis of rows or columns that an index lies along, -1 for one along a size of 1; None if along none."""
        if size == 1:
            return -1
        return next((i for i, (p, d) in enumerate(self._outer) if p == position and d == size), None)

    def _load(self, value: ir.Value, indices: list[ir.Value]) -> ir.Value:
        type_ = ir.VectorType.get([self.width], element_of(value.type).memory())
        return vector.load(type_, self.buffers[value], indices, alignment=self._bytes(value))

    def write(self, columns: Sequence[Sequence[Computed]]) -> None:
        """Write results, of which there are several at each column."""
        for same in zip(*columns, strict=True):
            _, place, output, buffer = same[0]
            if self.width == 1 or not self._may_be_run(output) or not self._is_here(output, place):
                for value, place, *_ in same:
                    memref.store(to_memory(value, element_of(output.type)), buffer, [p.base for p in place])
                continue
            values = [to_memory(value, element_of(output.type)) for value, *_ in same]
            run = vector.from_elements(ir.VectorType.get([self.width], values[0].type), values)
            vector.store(run, buffer, [p.base for p in place], alignment=self._bytes(output))

    def _bytes(self, value: ir.Value) -> int:
        return self.width * bytes_of(element_type_of(value))
