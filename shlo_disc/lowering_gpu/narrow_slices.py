# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices of a narrow weight in the memory of a block: bytes in several stages, which are on their way while others are
multiplied, and the elements of one of them, which all stages share.

Each thread has one piece of the bytes of a slice. It copies the piece asynchronously and, when it is there, writes its
elements. Where pieces cannot begin at multiples of 16 bytes, elements are read from the weight one by one instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import Element, constant_like, round_to, to_memory
from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.block_loops import each_item, either
from shlo_disc.lowering_gpu.grid import THREADS, thread
from shlo_disc.lowering_gpu.index_math import below, divided, plus, times
from shlo_disc.lowering_gpu.narrow_weight import F32, NarrowWeight, Parameter, WeightElements
from shlo_disc.lowering_gpu.narrow_words import byte_words, fits_pairs, floats_of, is_exact, pairs_of
from shlo_disc.shape_dialect.dialect.types import bytes_of
from shlo_disc.shape_dialect.mlir import arith, ir, memref, vector

WHOLE = 16
"""Bytes of the largest piece, of which rows of bytes are multiples where threads have pieces."""


@dataclass(frozen=True)
class BytesOfSlice:
    """The bytes of `depth` rows and some columns of a weight, in the order in which they lie in memory."""

    weight: NarrowWeight
    depth: int
    columns: int

    @property
    def rows(self) -> int:
        """Rows of bytes."""
        return self.depth // 2 if self.weight.half == 1 else self.depth

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.rows * self.columns

    @property
    def near(self) -> int:
        """The number of neighbours in memory."""
        return self.rows if self.weight.by_columns else self.columns

    @property
    def piece(self) -> int:
        """The bytes of a thread."""
        return min(WHOLE, self.size // THREADS)

    @property
    def of_piece(self) -> int:
        """The elements of a piece along the depth, where neighbours are."""
        return self.piece * (2 if self.weight.half == 1 else 1)

    @property
    def are_pieces(self) -> bool:
        """Tells whether all pieces begin at multiples of their bytes, and have one group and one half of bytes each."""
        weight = self.weight
        of_row = weight.byte_rows if weight.by_columns else weight.columns
        is_one_half = weight.half <= 1 or weight.byte_rows % self.depth == 0
        is_one_group = not weight.by_columns or weight.group == weight.rows or weight.group % self.of_piece == 0
        return of_row % WHOLE == 0 and is_one_half and is_one_group

    def has_rows_of(self, told: Parameter) -> bool:
        """Tells whether the parameters of a piece of a row are neighbours, which begin at a multiple of their bytes if
        all of them do."""
        return not self.weight.by_columns and told.of_column == 1 and told.of_group % WHOLE == 0

    def pointers_of(self, elements: WeightElements) -> list[ir.Value]:
        """The buffers that have to begin at multiples of `WHOLE` bytes."""
        if not self.are_pieces:
            return []
        tensors = self.weight.tensors
        return [elements.pointer, *(elements.pointers[name] for name in tensors if self.has_rows_of(tensors[name]))]


class Target(Protocol):
    """The place of elements: rows of shared memory, along the depth or along the columns."""

    @property
    def start(self) -> int:
        """The first of its elements."""

    @property
    def row(self) -> int:
        """From one row to the next."""

    def in_order(self, axis: ir.Value, depth: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The index of a row, and the one in it."""


class NarrowSlices:
    """The slices of a tile's columns from `first_column` on, up to `end` of the depth, by all threads of a block.

    memory: that of elements, in which `target` lies, and that of bytes, which has a slice for each stage. by_pieces:
    threads have pieces, which is for all tiles of a kernel.
    """

    def __init__(
        self,
        elements: WeightElements,
        slice_: BytesOfSlice,
        memory: tuple[ir.Value, ir.Value],
        target: Target,
        element: Element,
        place: tuple[ir.Value, ir.Value],
        by_pieces: bool,
    ):
        self.elements, self.weight, self.slice, self.target = elements, elements.weight, slice_, target
        self.element = element
        self.shared, self.stages = memory
        self.first_column, self.end = place
        self.by_pieces = by_pieces
        self.known = self._known()

    def fetch(self, first_depth: ir.Value, stage: ir.Value) -> None:
        """Begin to copy the bytes of the slice from a row of the weight on."""
        if not self.by_pieces:
            return
        row, column = self._own()
        first, _ = self.weight.in_bytes(first_depth)
        at = self.weight.bytes_at(arith.addi(first, row), arith.addi(self.first_column, column))
        is_there, zero, piece = self._is_there(first_depth, row, column), index_constant(0), self.slice.piece
        at, present = arith.select(is_there, at, zero), arith.select(is_there, index_constant(piece), zero)
        nvgpu.copy_async(self.stages, self._place(stage), self.elements.bytes, at, piece, present)

    def write(self, first_depth: ir.Value, stage: ir.Value) -> None:
        """Write the elements of a slice, whose bytes this thread has in a stage; zeros where there are none."""
        if not self.by_pieces:
            self._write_one_by_one(first_depth)
            return
        row, column = self._own()
        place = column, self._depth(row)
        either(
            self._is_there(first_depth, row, column),
            lambda: self._store(self._elements(first_depth, place, stage), place),
            lambda: self._store([self._zeros()] * self._runs, place),
        )

    # ---- the piece of a thread --------------------------------------------------------------------------------------

    @property
    def _runs(self) -> int:
        """Neighbours in shared memory that the elements of a piece are: a row of bytes has two rows of the weight."""
        return 2 if self.weight.half == 1 and not self.weight.by_columns else 1

    @property
    def _of_run(self) -> int:
        """The elements of each."""
        return self.slice.of_piece if self.weight.by_columns else self.slice.piece

    def _own(self) -> tuple[ir.Value, ir.Value]:
        """The row of bytes and the column in the slice at which the piece begins."""
        near, far = divided(times(thread(), self.slice.piece), self.slice.near)
        return (near, far) if self.weight.by_columns else (far, near)

    def _depth(self, row: ir.Value) -> ir.Value:
        """The first row of the slice in a row of bytes."""
        return times(row, 2) if self.weight.half == 1 else row

    def _is_there(self, first_depth: ir.Value, row: ir.Value, column: ir.Value) -> ir.Value:
        """Tells whether the weight, and the block's part of it, have the piece."""
        is_deep = below(arith.addi(first_depth, self._depth(row)), self.end)
        columns = index_constant(self.weight.columns)
        return arith.andi(is_deep, below(arith.addi(self.first_column, column), columns))

    def _place(self, stage: ir.Value) -> ir.Value:
        """The place of the piece in the memory of bytes."""
        return arith.addi(times(stage, self.slice.size), times(thread(), self.slice.piece))

    def _elements(self, first_depth: ir.Value, place: tuple[ir.Value, ir.Value], stage: ir.Value) -> list[ir.Value]:
        """The elements of each run, as they lie in memory."""
        column, depth = arith.addi(self.first_column, place[0]), arith.addi(first_depth, place[1])
        weight, piece = self.weight, self.slice.piece
        bytes_ = ir.VectorType.get([piece], ir.IntegerType.get_signless(8))
        loaded = vector.load(bytes_, self.stages, [self._place(stage)], alignment=piece)
        whole = vector.bitcast(ir.VectorType.get([piece // 4], ir.IntegerType.get_signless(32)), loaded)
        words = [vector.extract(whole, [], [i]) for i in range(piece // 4)]
        halves = byte_words(words, weight.code, weight.half, weight.in_bytes(first_depth)[1])
        runs = [halves] if self._runs == 1 else [[[both[half]] for both in halves] for half in range(2)]
        known = self.known or {name: self._parameters(name, depth, column) for name in weight.tensors}
        return [self._made(run, known) for run in runs]

    def _made(self, words: list[list[ir.Value]], known: Mapping[str, ir.Value]) -> ir.Value:
        """The elements of a run of byte words."""
        weight, zero = self.weight, self.weight.zero.number
        if self.by_pairs:
            return self.elements.scaled(pairs_of(words, weight.code, self.element, zero), known.__getitem__)
        is_taken = is_exact(weight.code, zero)
        floats = floats_of(words, weight.code, zero if is_taken else 0)
        value = vector.from_elements(self._type(F32), floats)
        if zero and not is_taken:
            value = arith.subf(value, constant_like(value, zero))
        value = round_to(self.elements.scaled(value, known.__getitem__), weight.rounding)
        return to_memory(value, self.element)

    @property
    def by_pairs(self) -> bool:
        """Tells whether elements are made by pairs of 16 bits: the product with a scale of 16 bits is rounded once."""
        weight, scale = self.weight, self.weight.scale
        is_scaled_so = scale.element is None and scale.number == 1
        is_scaled_so |= scale.element == weight.rounding == self.element
        return (
            weight.zero.element is None and is_scaled_so and fits_pairs(weight.code, self.element, weight.zero.number)
        )

    def _known(self) -> dict[str, ir.Value]:
        """The parameters of the thread's piece where all slices have the same."""
        if not self.by_pieces or self.weight.group != self.weight.rows:
            return {}
        _, column = self._own()
        last = self.weight.columns - (1 if self.weight.by_columns else self._of_run)
        column = arith.minui(arith.addi(self.first_column, column), index_constant(last))
        return {name: self._parameters(name, index_constant(0), column) for name in self.weight.tensors}

    def _parameters(self, name: str, depth: ir.Value, column: ir.Value) -> ir.Value:
        """The scales or zero points of a run: those of pairs as they are in memory, others as f32."""
        told = self.weight.tensors[name]
        if told.element is None:
            raise CompilerError("kernels: a number has no place in memory")
        type_ = ir.VectorType.get([self._of_run], told.element.memory())
        place, memory = self.elements.place_of(name, depth, column), self.elements.memory[name]
        if self.weight.by_columns or not told.of_column:
            found = vector.broadcast(type_, memref.load(memory, [place]))
        elif self.slice.has_rows_of(told):
            alignment = min(WHOLE, self._of_run * bytes_of(type_.element_type))
            found = vector.load(type_, memory, [place], alignment=alignment)
        else:
            step = told.of_column
            found = vector.from_elements(
                type_, [memref.load(memory, [plus(place, i * step)]) for i in range(self._of_run)]
            )
        return found if self.by_pairs else self.elements.as_f32(name, found)

    def _store(self, runs: list[ir.Value], place: tuple[ir.Value, ir.Value]) -> None:
        column, depth = place
        alignment = min(WHOLE, self._of_run * bytes_of(self.element.memory()))
        for number, run in enumerate(runs):
            at = self._target_place(column, plus(depth, number))
            vector.store(run, self.shared, [at], alignment=alignment)

    def _zeros(self) -> ir.Value:
        return splat_constant(ir.VectorType.get([self._of_run], self.element.memory()))

    def _type(self, element: Element) -> ir.VectorType:
        return ir.VectorType.get([self._of_run], element.register())

    def _target_place(self, column: ir.Value, depth: ir.Value) -> ir.Value:
        outer, inner = self.target.in_order(column, depth)
        return plus(arith.addi(times(outer, self.target.row), inner), self.target.start)

    # ---- one by one -------------------------------------------------------------------------------------------------

    def _write_one_by_one(self, first_depth: ir.Value) -> None:
        """Neighbours in memory by neighbours among the threads."""
        by_columns = self.weight.by_columns
        last_row, last_column = (index_constant(n - 1) for n in (self.weight.rows, self.weight.columns))

        def one(number: ir.Value) -> None:
            near, far = divided(number, self.slice.depth if by_columns else self.slice.columns)
            depth, column = (near, far) if by_columns else (far, near)
            k, n = arith.addi(first_depth, depth), arith.addi(self.first_column, column)
            value = self.elements.at(arith.minui(k, last_row), arith.minui(n, last_column))
            value = arith.select(below(k, self.end), value, constant_like(value, 0))
            memref.store(to_memory(value, self.element), self.shared, [self._target_place(column, depth)])

        each_item(index_constant(self.slice.depth * self.slice.columns), one)


__all__ = ["BytesOfSlice", "NarrowSlices"]
