# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Direct convolution: a tile of neighbouring result pixels by a block of output features is held in registers.

The convolution is in canonical form (see `transforms/expand/convolution.py`). Every step of the innermost loop reads
one vector of weights for each register of the block and one input element for each pixel of the tile: an implicit
product of [pixels, window * features] by [window * features, output features], of which no operand is copied. Where
each feature has a window of its own (depthwise), vectors of features of the input take the elements' place.
Register blocking after Goto and van de Geijn (2008), as Georganas et al. (2018) have it for convolutions.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.lowering.element_types import Element, convert, element_of, from_memory, round_to, to_memory
from shlo_disc.lowering.elements import splat_constant
from shlo_disc.lowering.index_rules import nest
from shlo_disc.lowering.index_rules.folds import accumulator_of, multiply_add, zero_of
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.loops import for_range
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, memref, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.utils.convolution import Convolution, convolution_of, is_depthwise

MOST_PIXELS = 8
"""Pixels of a tile; each takes a register for its address."""


@dataclass(frozen=True)
class ConvolutionTile:
    """`pixels` of the result by `vectors` of `lanes` output features."""

    pixels: int
    vectors: int
    lanes: int

    @property
    def features(self) -> int:
        """The output features of a block."""
        return self.vectors * self.lanes


def choose_tile(features: int | None, lanes: int, vector_bits: int) -> ConvolutionTile:
    """The widest block that wastes few lanes, and as many pixels as the other registers hold."""
    registers, most = (24, 4) if vector_bits >= 512 else (12, 2)
    size = 1024 if features is None else features
    vectors = min(range(most, 0, -1), key=lambda v: -(-size // (v * lanes)) * (v + 1))
    return ConvolutionTile(min(MOST_PIXELS, registers // vectors), vectors, lanes)


def build_convolution(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of work items and the cost of one."""
    kernel = ConvolutionKernel(frame)
    for_range(frame.begin, frame.end, kernel.item)
    return kernel.items, kernel.cost


class ConvolutionKernel:
    """One work item is one tile: the tiles of a block of features follow each other, so that its weights stay near."""

    def __init__(self, frame: CpuFrame):
        operations = frame.fusion.entry_block.operations
        self.op = next(o for o in operations if o.operation.name == "stablehlo.convolution")
        self.conv: Convolution = convolution_of(self.op)
        self.frame = frame
        self.lhs, self.rhs = (dims_of(v) for v in self.op.operands)
        self.result = dims_of(self.op.results[0])
        self.element = element_of(self.op.operands[0].type)
        self.target = element_of(self.op.results[0].type)
        self.accumulator = accumulator_of(self.element, self.target)
        self.is_depthwise = is_depthwise(self.op)
        self.groups = Expr.const(1) if self.is_depthwise else self.conv.feature_groups
        self.features = self.rhs[-1] if self.is_depthwise else self.conv.outputs_of_group(self.rhs[-1])
        lanes = max(1, frame.options.vector_bits // max(8, self.accumulator.width))
        self.tile = choose_tile(self.features.constant, lanes, frame.options.vector_bits)
        inputs = dict(zip(frame.inputs, frame.input_buffers, strict=True))
        self.input, self.weights = (_flat(inputs[v]) for v in self.op.operands)
        self.output = _flat(frame.output_buffers[0])
        self.pixels = product(self.result[:-1])
        self.tiles = ceildiv(self.pixels, self.tile.pixels)
        self.blocks = ceildiv(self.features, self.tile.features)

    @property
    def items(self) -> Expr:
        """The number of tiles."""
        return self.tiles * self.blocks * self.groups

    @property
    def cost(self) -> Expr:
        """The multiply-adds of a tile, in vectors."""
        return self.tile.pixels * self.tile.vectors * product(self.rhs[:-1])

    def item(self, linear: ir.Value) -> None:
        """One tile."""
        size_of = self.frame.size_of
        tiles, blocks = size_of(self.tiles), size_of(self.blocks)
        number, rest = arith.remui(linear, tiles), arith.divui(linear, tiles)
        block, group = arith.remui(rest, blocks), arith.divui(rest, blocks)
        first = arith.muli(block, self._index(self.tile.features))
        left = arith.subi(size_of(self.features), first)
        column = arith.addi(arith.muli(group, size_of(self.features)), first)
        pixel = arith.muli(number, self._index(self.tile.pixels))
        channel = column if self.is_depthwise else arith.muli(group, size_of(self.rhs[-2]))
        places = [arith.addi(p, channel) for p in self._places(pixel)]

        def version(masks: list[ir.Value] | None) -> None:
            self._store(pixel, column, self._sums(places, column, masks), masks)

        if self.frame.facts.divides(self.tile.features, self.features):
            version(None)
            return
        is_whole = arith.cmpi(arith.CmpIPredicate.uge, left, self._index(self.tile.features))
        guard = scf.IfOp(is_whole, [], has_else=True)
        with ir.InsertionPoint(guard.then_block):
            version(None)
            scf.yield_([])
        with ir.InsertionPoint(guard.else_block):
            version([self._mask(left, number) for number in range(self.tile.vectors)])
            scf.yield_([])

    def _mask(self, left: ir.Value, number: int) -> ir.Value:
        """The mask of the lanes of register `number` of the last block that are features."""
        rest = arith.maxsi(arith.subi(left, self._index(number * self.tile.lanes)), self._index(0))
        return vector.create_mask(ir.VectorType.get([self.tile.lanes], ir.IntegerType.get_signless(1)), [rest])

    def _index(self, value: int) -> ir.Value:
        return self.frame.size_of(Expr.const(value))

    # ---- pixels -----------------------------------------------------------------------------------------------------

    def _places(self, pixel: ir.Value) -> list[ir.Value]:
        """The offset in the input of each pixel's window. Pixels past the end repeat the last one."""
        size_of = self.frame.size_of
        counts = [size_of(d) for d in self.result[:-1]]
        strides = [size_of(s) for s in self._steps()]
        indices: list[ir.Value] = []
        rest = pixel
        for count in reversed(counts[1:]):
            indices.insert(0, arith.remui(rest, count))
            rest = arith.divui(rest, count)
        indices.insert(0, rest)
        last = arith.subi(size_of(self.pixels), self._index(1))
        places = [self._offset(indices, strides)]
        for number in range(1, self.tile.pixels):
            advanced = self._next(indices, counts)
            before = arith.addi(pixel, self._index(number - 1))
            is_inside = arith.cmpi(arith.CmpIPredicate.ult, before, last)
            indices = [arith.select(is_inside, a, i) for a, i in zip(advanced, indices, strict=True)]
            places.append(self._offset(indices, strides))
        return places

    def _steps(self) -> Dims:
        """By how much the offset in the input grows with the batch and each spatial index of the result."""
        steps = [product(self.lhs[axis + 1 :]) for axis in range(len(self.lhs) - 1)]
        return tuple(step * stride for step, stride in zip(steps, (1, *self.conv.strides), strict=True))

    @staticmethod
    def _offset(indices: list[ir.Value], strides: list[ir.Value]) -> ir.Value:
        offset = arith.muli(indices[0], strides[0])
        for index, stride in zip(indices[1:], strides[1:], strict=True):
            offset = arith.addi(offset, arith.muli(index, stride))
        return offset

    def _next(self, indices: list[ir.Value], counts: list[ir.Value]) -> list[ir.Value]:
        """The row-major successor of an index."""
        carry = self._index(1)
        result: list[ir.Value] = []
        for index, count in zip(reversed(indices[1:]), reversed(counts[1:]), strict=True):
            moved = arith.addi(index, carry)
            wraps = arith.cmpi(arith.CmpIPredicate.eq, moved, count)
            result.insert(0, arith.select(wraps, self._index(0), moved))
            carry = arith.select(wraps, self._index(1), self._index(0))
        return [arith.addi(indices[0], carry), *result]

    # ---- sums -------------------------------------------------------------------------------------------------------

    def _loops(self) -> tuple[list[Expr], list[Expr]]:
        """The loops over the window and the features, and by how much each moves through the input.

        The innermost spatial loop and that over the features are one where they walk through memory without a gap.
        """
        steps = [product(self.lhs[axis + 1 :]) for axis in range(1, len(self.lhs))]
        steps = [s * d for s, d in zip(steps, (*self.conv.rhs_dilation, 1), strict=True)]
        sizes = list(self.rhs[:-1])
        if self.conv.feature_groups == 1 and self.conv.rank and self.conv.rhs_dilation[-1] == 1:
            sizes[-2:], steps[-2:] = [sizes[-2] * sizes[-1]], [steps[-1]]
        return sizes, steps

    def _sums(self, places: list[ir.Value], column: ir.Value, masks: list[ir.Value] | None) -> list[ir.Value]:
        """The tile's sums, pixel by pixel."""
        tile, size_of = self.tile, self.frame.size_of
        sizes, steps = self._loops()
        moves = [size_of(s) for s in steps]
        row = size_of(self.rhs[-1])
        extents = [size_of(s) for s in sizes]
        zero = vector.broadcast(self._vector(self.accumulator.register()), zero_of(self.accumulator))

        def body(indices: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            tap = indices[0]
            for index, extent in zip(indices[1:], extents[1:], strict=True):
                tap = arith.addi(arith.muli(tap, extent), index)
            weight = arith.addi(arith.muli(tap, row), column)
            offset = self._offset(indices, moves)
            factors = self._vectors(self.weights, weight, masks)
            result: list[ir.Value] = []
            for number, place in enumerate(places):
                values = self._values(arith.addi(place, offset), masks)
                own = sums[number * tile.vectors : (number + 1) * tile.vectors]
                terms = zip(values, factors, own, strict=True)
                result += [multiply_add(v, f, s, self.accumulator) for v, f, s in terms]
            return result

        elements = self.frame.elements(1)
        return nest(elements, extents, [zero] * (tile.pixels * tile.vectors), body)

    def _values(self, offset: ir.Value, masks: list[ir.Value] | None) -> list[ir.Value]:
        """The values that the weights of a block are multiplied by: one element, or one for each feature."""
        if self.is_depthwise:
            return self._vectors(self.input, offset, masks)
        value = self._wide(from_memory(memref.load(self.input, [offset]), self.element))
        return [vector.broadcast(self._vector(self.accumulator.register()), value)] * self.tile.vectors

    def _vectors(self, source: ir.Value, offset: ir.Value, masks: list[ir.Value] | None) -> list[ir.Value]:
        """A block of neighbouring elements."""
        type_ = self._vector(self.element.memory())
        result: list[ir.Value] = []
        for number in range(self.tile.vectors):
            place = arith.addi(offset, self._index(number * self.tile.lanes))
            if masks is None:
                raw = vector.load(type_, source, [place])
            else:
                raw = vector.maskedload(type_, source, [place], masks[number], splat_constant(type_))
            result.append(self._wide(from_memory(raw, self.element)))
        return result

    def _wide(self, value: ir.Value) -> ir.Value:
        """A factor as what sums are held in."""
        held = Element("f32") if self.element.is_half else self.element
        return value if held == self.accumulator else convert(value, held, self.accumulator)

    def _vector(self, element: ir.Type) -> ir.VectorType:
        return ir.VectorType.get([self.tile.lanes], element)

    def _store(self, pixel: ir.Value, column: ir.Value, sums: list[ir.Value], masks: list[ir.Value] | None) -> None:
        """Write the tile, but for pixels past the end."""
        size_of = self.frame.size_of
        for number in range(self.tile.pixels):
            here = arith.addi(pixel, self._index(number))
            is_pixel = arith.cmpi(arith.CmpIPredicate.ult, here, size_of(self.pixels))
            guard = scf.IfOp(is_pixel, [])
            with ir.InsertionPoint(guard.then_block):
                start = arith.addi(arith.muli(here, size_of(self.rhs[-1])), column)
                for v in range(self.tile.vectors):
                    value = convert(sums[number * self.tile.vectors + v], self.accumulator, self.target)
                    stored = to_memory(round_to(value, self.target), self.target)
                    place = arith.addi(start, self._index(v * self.tile.lanes))
                    if masks is None:
                        vector.store(stored, self.output, [place])
                    else:
                        vector.maskedstore(self.output, [place], masks[v], stored)
                scf.yield_([])


def _flat(buffer: ir.Value) -> ir.Value:
    """A contiguous memref as one of rank 1."""
    type_ = ir.MemRefType(buffer.type)
    flat = ir.MemRefType.get([DYNAMIC], type_.element_type)
    size = arith.constant(ir.IndexType.get(), (1 << 62) - 1)
    return memref.reinterpret_cast(flat, buffer, [], [size], [], [0], [DYNAMIC], [1])
