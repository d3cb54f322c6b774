# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The epilogue of a product: the ops on its sums before they leave its kernel.

A kernel of products, of whichever kind, is told an `Epilogue`: it hands over sums that are neighbours in a row, and
where they are in the result, and the epilogue writes all that is made of them. The body is a loop's, over the elements
of the product's result, emitted as that of any loop is; it takes the sums as they would have been in memory, so that
nothing changes in its results. What it reads and writes is accessed 16 bytes at a time where addresses and rows allow
it, which is looked at in every launch.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import convert, element_of, round_to
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.loop_kernel import write_outputs
from shlo_disc.lowering.multiples import Multiples
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu.block_loops import counted, when
from shlo_disc.lowering_gpu.element_loop import ElementLoop, divided_position
from shlo_disc.lowering_gpu.hopper import map_type
from shlo_disc.lowering_gpu.index_math import below, is_multiple_of, times
from shlo_disc.lowering_gpu.kernel import GpuFrame, pointer_type
from shlo_disc.lowering_gpu.lane_math import LaneMath
from shlo_disc.lowering_gpu.lanes import ACCESS_BYTES, Lanes, Place, are_aligned
from shlo_disc.lowering_gpu.product_form import Matrix, ProductForm
from shlo_disc.shape_dialect.dialect import fusion as kinds
from shlo_disc.shape_dialect.dialect.types import bytes_of, dims_of
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, scf, vector
from shlo_disc.shape_dialect.symbolic.facts import Relation

# ---- the kernel -----------------------------------------------------------------------------------------------------


@dataclass
class EpilogueFrame(GpuFrame):
    """The kernel of a product of a form that does what the fusion of an epilogue does, which is `fusion`:

    gpu.func @kernel(maps..., lhs, rhs..., inputs but the sums..., outputs..., scratch memory of the product...,
                     numbers of the product..., sizes...)

    """

    form: ProductForm = field(kw_only=True)

    def open(self, module: gpu.GPUModuleOp, name: str) -> None:
        """Create the function at the end of `module`."""
        others = [value for value in self.tensors if value != self.sums]
        pointers = [pointer_type(element.memory()) for element in self.form.sides]
        pointers += [pointer_type(element_of(value.type).memory()) for value in others]
        pointers += [pointer_type(element.memory()) for element in self.form.memory]
        numbers = [ir.IndexType.get()] * self.form.numbers
        with ir.InsertionPoint(module.regions[0].blocks[0]):
            type_ = ir.FunctionType.get([*[map_type()] * self.maps, *pointers, *numbers], [])
            function = gpu.GPUFuncOp(type_, name, kernel=True, known_block_size=[self.threads, 1, 1])
        self.begin_function(function)
        given = list(self.entry.arguments)[: len(type_.inputs)]
        given = given[self.maps :]
        of_sides = len(self.form.sides)
        sides, arguments = given[:of_sides], given[of_sides:]
        with ir.InsertionPoint(self.entry):
            views = [self.view(p, v) for p, v in zip(arguments, others, strict=False)]
        count = len(self.inputs) - 1
        self.input_buffers, self.output_buffers = views[:count], views[count:]
        self.told = [*sides, arguments[count], *arguments[len(others) :]]

    @property
    def epilogue(self) -> kinds.Epilogue:
        """The epilogue that the fusion states."""
        what = kinds.fusion_of(self.fusion)
        if not isinstance(what, kinds.Epilogue):
            raise CompilerError(f"kernels: a fusion of kind {what.kind} follows no product")
        return what

    @property
    def sums(self) -> ir.Value:
        """The input that is the product's result, and has no buffer."""
        return self.inputs[self.epilogue.sums]

    def memory(self) -> dict[ir.Value, ir.Value]:
        """The buffers of the inputs that have one."""
        return dict(zip((v for v in self.inputs if v != self.sums), self.input_buffers, strict=True))


# ---- sums -----------------------------------------------------------------------------------------------------------


class Sums(Protocol):
    """Neighbours along a row, in the type of the sums."""

    def together(self) -> ir.Value:
        """All of them as a vector."""

    def one(self, number: ir.Value) -> ir.Value:
        """One of them."""


@dataclass(frozen=True)
class ChosenSums:
    """Sums in registers, row by row, of which `width` neighbours are chosen by a number that is known at run time."""

    sums: Sequence[ir.Value]
    width: int
    number: ir.Value | None = None

    def at(self, number: ir.Value) -> ChosenSums:
        """The neighbours of a number."""
        return ChosenSums(self.sums, self.width, number)

    def together(self) -> ir.Value:
        """A vector of the neighbours."""
        type_ = ir.VectorType.get([self.width], self.sums[0].type)
        parts = range(0, len(self.sums), self.width)
        return _chosen([vector.from_elements(type_, self.sums[i : i + self.width]) for i in parts], self._number)

    def one(self, number: ir.Value) -> ir.Value:
        """One of the neighbours."""
        return _chosen(self.sums, arith.addi(times(self._number, self.width), number))

    @property
    def _number(self) -> ir.Value:
        if self.number is None:
            raise CompilerError("kernels: no sums were chosen")
        return self.number


def _chosen(values: Sequence[ir.Value], number: ir.Value) -> ir.Value:
    """The value of a number, by selects: registers have none."""
    found = values[0]
    for i, value in enumerate(values[1:], 1):
        found = arith.select(arith.cmpi(arith.CmpIPredicate.eq, number, index_constant(i)), value, found)
    return found


@dataclass(frozen=True)
class KeptSums:
    """Sums of a type of 32 bits in shared memory, which may be declared for smaller elements, in rows that are `pitch`
    sums apart."""

    memory: ir.Value
    type: ir.Type
    pitch: int
    width: int
    first: ir.Value | None = None

    def keep(self, pair: ir.Value, row: ir.Value, column: ir.Value) -> None:
        """Write two neighbours."""
        elements = vector.bitcast(ir.VectorType.get([2 * self._elements], self._element), pair)
        vector.store(elements, self.memory, [times(self._place(row, column), self._elements)], alignment=8)

    def at(self, row: ir.Value, column: ir.Value) -> KeptSums:
        """The neighbours from a place on."""
        return KeptSums(self.memory, self.type, self.pitch, self.width, self._place(row, column))

    def together(self) -> ir.Value:
        """A vector of the neighbours."""
        return self._read(self._first, self.width)

    def one(self, number: ir.Value) -> ir.Value:
        """One of the neighbours."""
        return vector.extract(self._read(arith.addi(self._first, number), 1), [], [0])

    def _read(self, place: ir.Value, count: int) -> ir.Value:
        type_, first = ir.VectorType.get([count * self._elements], self._element), times(place, self._elements)
        found = vector.load(type_, self.memory, [first], alignment=min(ACCESS_BYTES, 4 * count))
        return vector.bitcast(ir.VectorType.get([count], self.type), found)

    def _place(self, row: ir.Value, column: ir.Value) -> ir.Value:
        return arith.addi(times(row, self.pitch), column)

    @property
    def _element(self) -> ir.Type:
        return ir.MemRefType(self.memory.type).element_type

    @property
    def _elements(self) -> int:
        """The elements of memory that a sum takes."""
        return 4 // bytes_of(self._element)

    @property
    def _first(self) -> ir.Value:
        if self.first is None:
            raise CompilerError("kernels: sums were read from no place")
        return self.first


# ---- the epilogue ---------------------------------------------------------------------------------------------------


class Epilogue(ElementLoop):
    """The ops of a kernel on sums, at the insertion point at the kernel's beginning.

    result: where sums stand in the result of the product; its memory is not used. most: as many neighbours of a row as
    the kernel has side by side, a power of two. width: so many it is to hand over at a time, of columns that begin at a
    multiple of them.
    """

    def __init__(self, frame: EpilogueFrame, result: Matrix, most: int):
        super().__init__(frame, dims_of(frame.outputs[0]), self._write, frame.shared_memory)
        self.own, self.result = frame, result
        self.row_size = frame.epilogue.row
        self.has_rows = len(self.axes) > 1 and self.axes[-1] == self.row_size
        self.width = self._width(most)
        self.narrow = self._narrow()
        self.is_wide = self._may_be_wide() if self.width > 1 else None

    def take(self, batch: Sequence[ir.Value], row: ir.Value, column: ir.Value, sums: Sums) -> None:
        """Do it with `width` sums from a row and a column of a matrix of the batch, as far as the result has them."""
        *_, m, n = self.result.sizes
        when(below(row, m), functools.partial(self._in_row, (*batch, row), column, n, sums))

    def _in_row(self, row: Sequence[ir.Value], column: ir.Value, n: ir.Value, sums: Sums) -> None:
        def one(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            at = arith.addi(column, number)
            when(below(at, n), lambda: self._emit(1, row, at, sums.one(number)))
            return []

        def apart() -> None:
            counted(index_constant(0), index_constant(self.width), index_constant(1), [], one)

        if self.is_wide is None:
            apart()
            return
        choice = scf.IfOp(self.is_wide, [], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            when(below(column, n), lambda: self._emit(self.width, row, column, sums.together()))
            scf.yield_([])
        with ir.InsertionPoint(choice.else_block):
            apart()
            scf.yield_([])

    def _emit(self, width: int, row: Sequence[ir.Value], column: ir.Value, value: ir.Value) -> None:
        """The body, for `width` elements."""
        whole = self.axes[-1:] if width > 1 and self.has_rows else ()
        multiples = Multiples(width, self.frame.facts, whole)
        division = LaneMath(width, self.narrow, multiples)
        elements = Lanes.over(self.frame, self.own.memory(), division)
        linear = self.result.place((*row, column))
        multiples.note(linear, column)
        with elements.scope():
            elements.bound[self.own.sums] = self._as_stored(value)
            elements.place = self._place_of(elements, division, row, column, linear)
            self.body(elements, self._positions(elements.place), False)

    def _as_stored(self, sums: ir.Value) -> ir.Value:
        """Sums as they are read from a result of the product."""
        form = self.own.form
        return round_to(convert(sums, form.sums, form.result), form.result)

    def _write(self, elements: Elements, positions: Positions, streaming: bool) -> None:
        write_outputs(self.frame, elements, positions, self.domain, streaming)

    # ---- places -----------------------------------------------------------------------------------------------------

    def _place_of(
        self, elements: Lanes, division: LaneMath, row: Sequence[ir.Value], column: ir.Value, linear: ir.Value
    ) -> Place:
        """The position of elements: by the row and the column where the loop has them as axes, else by division."""
        if not self.has_rows:
            return self._place(elements, division, linear)
        step = int(elements.width > 1)
        number = row[0]
        for index, size in zip(row[1:], self.result.sizes[1:], strict=False):
            number = arith.addi(arith.muli(number, size), index)
        positions, leading = divided_position(Position(number), self.axes[:-1], elements, division)
        last, all_before = Position(column, step), Position(linear, step)
        return Place(self.axes, (*positions, last), (*leading, all_before))

    @property
    def _is_divided(self) -> bool:
        """As for any loop, but a row and a column are known."""
        return len(self.axes) > (2 if self.has_rows else 1)

    # ---- accesses ---------------------------------------------------------------------------------------------------

    def _width(self, most: int) -> int:
        """Neighbours of a row that are neighbours in memory, as far as it is worth it."""
        if not self.has_rows and len(self.axes) != 1:
            return 1
        width, size = min(self.lanes, most), self.row_size.constant
        while size is not None and size > 1 and size % width:
            width //= 2
        return width

    def _may_be_wide(self) -> ir.Value:
        """Tells whether memory can be accessed by as many elements: all addresses, and rows, are of whole pieces."""
        if self.row_size.constant is None:
            guarded = Relation.eq(self.row_size % self.width, 0)
            self.frame.guard(f"{self.width} lanes", "1 lane", guarded)
        return arith.andi(are_aligned(self.frame), is_multiple_of(self.result.sizes[-1], self.width))


__all__ = ["ChosenSums", "Epilogue", "EpilogueFrame", "KeptSums", "Sums"]
