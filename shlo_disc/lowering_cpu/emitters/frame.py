# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The frame of a CPU kernel: a function over memrefs, a range of work, and the sizes it uses.

func.func private @kernel(inputs..., outputs..., %begin: index, %end: index, sizes...)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from shlo_disc.lowering.element_types import Element, element_of, to_memory
from shlo_disc.lowering.elements import Elements, MathLibrary, Positions, are_side_by_side, splat_constant, uniform
from shlo_disc.lowering.frame import Frame, OneElement
from shlo_disc.lowering.index_rules import INDEX_RULES
from shlo_disc.lowering.kernel_module import KernelModule
from shlo_disc.lowering.kernels import KernelBuffers, delinearize
from shlo_disc.lowering.positions import Position, PositionMath, index_constant
from shlo_disc.lowering_cpu.emitters.few_columns import vectors_of_period, walk_periods
from shlo_disc.lowering_cpu.emitters.interruption import RUNTIME
from shlo_disc.lowering_cpu.emitters.loops import either, for_range, vectors
from shlo_disc.lowering_cpu.emitters.panels import PackedMatrix, columns_of_panels, packed_type
from shlo_disc.lowering_cpu.emitters.vector_elements import VectorElements
from shlo_disc.lowering_cpu.options import CpuOptions
from shlo_disc.shape_dialect.dialect.host import DYNAMIC_DIMS, RUNTIME_SIZE
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import arith, func, ir, memref, vector
from shlo_disc.shape_dialect.ops.code_size import total_code_size
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation

STREAM_BYTES = 24 << 20
"""Outputs from this size on leave the caches before anybody reads them: they are written past the caches."""

_LINE = 64

COMPUTING = 64
"""Instructions for a vector from which on memory waits for them: how results are written makes no difference."""

LONG = 384
"""Instructions for a vector from which on a kernel is written once, with calls of the longer functions."""

_BLOCK = 1024
"""Elements of a work item of a loop along one axis that has to begin at a multiple of the lanes."""

_LONG = 2
"""A long row is at least so many times the lanes worked on together."""


@dataclass
class CpuFrame(Frame):
    """A kernel for CPUs: a function over memrefs, and a range of its work.

    code_size: the instructions for one vector, by which the number of its versions is bounded.
    """

    options: CpuOptions
    library: MathLibrary
    code_size: int = 0
    buffers: KernelBuffers = KernelBuffers()
    panels: dict[ir.Value, PackedMatrix] = field(default_factory=dict, init=False)
    """The packed forms of inputs that may have no buffer, by the buffer."""

    def open(self, module: KernelModule, name: str) -> None:
        """Create the function."""
        index = ir.IndexType.get()
        with ir.InsertionPoint(module.body):
            forms = [packed_type(self.inputs[number], self.options) for number in self.buffers.panels]
            packed = [type_ for type_, *_ in forms]
            type_ = ir.FunctionType.get([*map(memref_type, self.tensors), *packed, index, index], [])
            function = func.FuncOp(name, type_, visibility="private")
        self.begin_function(function)
        count = len(self.tensors)
        *buffers, self.begin, self.end = list(self.entry.arguments)[: count + len(forms) + 2]
        self.input_buffers, self.output_buffers = buffers[: len(self.inputs)], buffers[len(self.inputs) : count]
        for number, buffer, (_, element, together) in zip(self.buffers.panels, buffers[count:], forms, strict=True):
            columns = self.size_of(columns_of_panels(number))
            self.panels[self.input_buffers[number]] = PackedMatrix(buffer, columns, element, together)

    def close(self) -> None:
        """Fix the function's type, after the body is complete."""
        with ir.InsertionPoint(self.entry):
            func.ReturnOp([])
        self.end_function()
        dynamic = [self.sizes.index(dim) for dim in self.dynamic_dims()]
        self.function.attributes[DYNAMIC_DIMS] = ir.DenseI64ArrayAttr.get(dynamic)
        if RUNTIME in self.sizes:
            place = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.sizes.index(RUNTIME))
            self.function.attributes[RUNTIME_SIZE] = place

    def is_whole(self, width: int, size: Expr) -> bool:
        """Tells whether a size is a known multiple of the vector width; otherwise a masked vector comes last."""
        if self.facts.divides(width, size):
            return True
        self.guard("whole vectors", "a masked last vector", Relation.eq(size % width, 0))
        return False

    def elements(self, width: int) -> VectorElements:
        """An emitter that reads this kernel's inputs."""
        memory = dict(zip(self.inputs, self.input_buffers, strict=True))
        found = VectorElements(width, self.facts, self.size_of, self.library, INDEX_RULES, memory)
        found.has_one_body = self.is_long
        found.panels = self.panels
        return found

    @property
    def is_long(self) -> bool:
        """Tells whether the body is too long for several versions of it."""
        return self.code_size >= LONG

    @cached_property
    def is_computing(self) -> bool:
        """Tells whether an element takes longer to compute than to move."""
        return total_code_size(self.fusion.entry_block.operations) >= COMPUTING

    def streams(self, domain: Dims) -> ir.Value | None:
        """Tells whether to write the outputs past the caches, decided at run time; None where it never pays.

        domain: that of a loop or of rows, of as many elements as the outputs.
        Whole cache lines have to be written, so rows are to be multiples of one, and so is where the work starts, and
        where the outputs do. Elements that are narrower in memory than in registers are not written so.
        """
        dims, size = dims_of(self.outputs[0]), _bytes_in_memory(self.outputs[0])
        alike = all(dims_of(v) == dims and _bytes_in_memory(v) == size for v in self.outputs)
        if not self.buffers.are_results or self.is_computing:
            return None
        if not alike or not dims or size < 4:
            return None
        longest = self.facts.range(product(dims) * size)[1]
        if longest is not None and longest < STREAM_BYTES:
            return None
        rows = [Relation.eq(domain[-1] * size % _LINE, 0)] if len(domain) > 1 else []
        large = Relation.ge(product(dims) * size, STREAM_BYTES)
        self.guard("past the caches", "through the caches", large, *rows, of_size=True)
        total = index_constant(size)
        for dim in dims:
            total = arith.muli(total, self.size_of(dim))
        is_large = arith.cmpi(arith.CmpIPredicate.uge, total, index_constant(STREAM_BYTES))
        step = self.size_of(domain[-1]) if len(domain) > 1 else self.begin
        starts = [arith.muli(step, index_constant(size)), *map(_address, self.output_buffers)]
        for start in starts:
            rest = arith.remui(start, index_constant(_LINE))
            is_large = arith.andi(is_large, arith.cmpi(arith.CmpIPredicate.eq, rest, index_constant(0)))
        return is_large

    def by_length(self, length: Expr, body: Callable[[int], None], is_all: bool = False) -> None:
        """`body(lanes)`: more of them together where rows are long, which is known or decided at run time.

        is_all: there is one row. A short one is soon done, and is not worth a version where that is long.
        """
        few, many = self.width(), self.longest_width()
        least, most = self.facts.range(length)
        bound = _LONG * many
        if self.facts.divides(many, length) or (least is not None and least >= bound):
            body(many)
        elif many == few or (most is not None and most < bound):
            body(few)
        elif self.is_long or (is_all and self.is_computing):
            body(many)
        else:
            self.guard(f"{many} lanes", f"{few} lanes", Relation.ge(length, bound))
            is_long = arith.cmpi(arith.CmpIPredicate.uge, self.size_of(length), index_constant(bound))
            either(is_long, lambda long: body(many if long else few))

    def each_element(self, domain: Dims, body: OneElement) -> tuple[Expr, Expr]:
        """Vectors along the last axis that is not of size 1, with the axis before where that is shorter than a vector.

        Work is divided over the elements of one axis, else over the rows of the leading axes.
        """
        wide = tuple(d for d in domain if d.constant != 1)
        together = 0 if self.is_long else vectors_of_period(wide, self.lanes)
        short = wide[2:] if together else self._short_axes(wide)
        merged = (*wide[: -len(short) - 1], product(wide[-len(short) - 1 :])) if short else wide

        def at(elements: Elements, positions: Positions, streaming: bool) -> None:
            body(elements, _spread(_split(positions, short, elements.math), domain), streaming)

        if together:
            return self._periods(wide, together, at)
        if not merged:
            elements = self.elements(1)
            for_range(self.begin, self.end, lambda _: at(elements, (), False))
            return Expr.const(1), Expr.const(1)
        streams = self.streams(merged)
        if len(merged) > 1:
            self.by_length(merged[-1], lambda lanes: self._rows(self.elements(lanes), merged, at, streams))
            return product(merged[:-1]), merged[-1]
        block = _BLOCK if short else 1
        self.by_length(
            merged[0], lambda lanes: self._one_row(self.elements(lanes), merged[0], block, at, streams), True
        )
        return ceildiv(merged[0], block), Expr.const(block)

    def _short_axes(self, domain: Dims) -> Dims:
        """The last axes that are shorter than a vector together, and divide it."""
        lanes, count = self.lanes, 0
        while count < len(domain) - 1:
            together = product(domain[-count - 1 :]).constant
            if not together or together >= lanes or lanes % together:
                break
            count += 1
        return domain[len(domain) - count :]

    def _periods(self, domain: Dims, together: int, body: OneElement) -> tuple[Expr, Expr]:
        """Rows of a few elements; work items are blocks of rows that are whole vectors together."""
        columns = product(domain[1:]).constant or 1
        period = together * self.lanes
        block = _BLOCK // period * period // columns
        begin, end = (arith.muli(place, index_constant(block)) for place in (self.begin, self.end))
        end = arith.minui(end, self.size_of(domain[0]))
        walk_periods(self.elements(self.lanes), together, columns, begin, end, body)
        return ceildiv(domain[0], block), Expr.const(block * columns)

    def _one_row(
        self, elements: VectorElements, length: Expr, block: int, body: OneElement, streams: ir.Value | None
    ) -> None:
        """One axis, whose work items are blocks of elements; blocks begin at a multiple of the lanes."""
        begin, end = self.begin, self.end
        if block > 1:
            begin, end = (arith.muli(place, index_constant(block)) for place in (begin, end))
            end = arith.minui(end, self.size_of(length))

        def all_vectors(streaming: bool) -> None:
            with elements.scope():
                vectors(elements, (), begin, end, False, lambda e, at: body(e, at, streaming), self.lanes)

        either(streams, all_vectors)

    def _rows(self, elements: VectorElements, domain: Dims, body: OneElement, streams: ir.Value | None) -> None:
        inner = domain[-1]

        def row(linear: ir.Value) -> None:
            with elements.scope():
                outer = uniform(delinearize(linear, domain[:-1], self.size_of))
                divisible = self.is_whole(elements.width, inner)
                end = self.size_of(inner)

                def row_vectors(streaming: bool) -> None:
                    with elements.scope():
                        one = lambda e, at: body(e, at, streaming)  # noqa: E731
                        vectors(elements, outer, index_constant(0), end, divisible, one, self.lanes)

                either(streams, row_vectors)

        for_range(self.begin, self.end, row)

    def store(
        self, buffer: ir.Value, value: ir.Value, at: Positions, output: ir.Value, elements: Elements, streaming: bool
    ) -> None:
        """As `store`."""
        store(buffer, value, at, element_of(output.type), elements, streaming)

    def longest_width(self) -> int:
        """Lanes worked on together in long rows."""
        return self.width() // self.options.unroll * self.options.long_unroll

    def width(self) -> int:
        """Lanes worked on together: `unroll` registers of the widest element type, a power of two."""
        return self.options.unroll * self.lanes

    @property
    def lanes(self) -> int:
        """Lanes of a register of the widest element type."""
        return max(1, self.options.vector_bits // self._widest)

    @cached_property
    def _widest(self) -> int:
        """The bits of the widest element that the kernel computes with."""
        types: set[ir.Type] = set()
        for op in self.fusion.entry_block.operations:
            types.update(v.type for v in op.operands if not _is_shape(v))
            if op.operation.name != "disc.shape":
                types.update(v.type for v in op.results)
        tensors = (type_ for type_ in types if isinstance(type_, ir.RankedTensorType) and dims_of(type_))
        return max([32, *(element_of(type_).width for type_ in tensors)])


def _split(positions: Positions, short: Dims, math: PositionMath) -> Positions:
    """Positions along the last axes, of some sizes, which a loop takes together with the axis before."""
    if not short:
        return positions
    *outer, place = positions
    found: list[Position] = []
    for size in reversed(short):
        place, rest = math.divmod(place, index_constant(size.constant or 1))
        found.insert(0, rest)
    return (*outer, place, *found)


def _spread(positions: Positions, domain: Dims) -> Positions:
    """Positions along all axes of a domain, of which some have a size of 1."""
    places = iter(positions)
    return tuple(Position(index_constant(0)) if d.constant == 1 else next(places) for d in domain)


def _is_shape(value: ir.Value) -> bool:
    """A list of sizes, which is read one scalar at a time."""
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "disc.shape"


def _address(buffer: ir.Value) -> ir.Value:
    return memref.ExtractAlignedPointerAsIndexOp(buffer).result


def _bytes_in_memory(value: ir.Value) -> int:
    return bytes_of(element_type_of(value))


def memref_type(value: ir.Value) -> ir.MemRefType:
    """A contiguous memref for a tensor."""
    shape = [DYNAMIC if d.constant is None else d.constant for d in dims_of(value)]
    return ir.MemRefType.get(shape, element_of(value.type).memory())


def store(
    buffer: ir.Value,
    value: ir.Value,
    positions: Positions,
    element: Element,
    elements: Elements,
    streaming: bool = False,
) -> None:
    """Write the element(s) at `positions`: as one vector where the lanes stand side by side, else lane by lane.

    With `streaming`, whole vectors start at a cache line and go past the caches.
    """
    value = to_memory(value, element)
    if all(p.is_uniform for p in positions):
        memref.store(value, buffer, [p.base for p in positions])
        return
    value = elements.splat(value)
    mask = elements.lane_mask()
    if not are_side_by_side(buffer, positions):
        _store_apart(buffer, value, positions, mask, elements, streaming)
        return
    _store_vector(buffer, value, [p.base for p in positions], mask, streaming)


def _store_apart(
    buffer: ir.Value,
    value: ir.Value,
    positions: Positions,
    mask: ir.Value | None,
    elements: Elements,
    streaming: bool,
) -> None:
    """Write each lane to its own row-major place; places in a row are one vector after all."""
    offset = positions[0]
    for axis, size in list(enumerate(ir.MemRefType(buffer.type).shape))[1:]:
        constant = None if size == DYNAMIC else size
        stride = memref.dim(buffer, index_constant(axis)) if constant is None else index_constant(constant)
        offset = elements.math.add(elements.math.scale(offset, stride, constant), positions[axis])
    origin = [index_constant(0)] * len(positions)
    if offset.is_linear:
        _store_vector(buffer, value, [*origin[1:], offset.base], mask, streaming)
        return
    flags = mask or splat_constant(ir.VectorType.get([elements.width], ir.IntegerType.get_signless(1)), 1)
    vector.scatter(None, buffer, origin, elements.math.as_lanes(offset), flags, value)


def _store_vector(
    buffer: ir.Value, value: ir.Value, indices: Sequence[ir.Value], mask: ir.Value | None, streaming: bool
) -> None:
    if mask is None and streaming:
        vector.store(value, buffer, indices, nontemporal=True, alignment=_LINE)
    elif mask is None:
        vector.store(value, buffer, indices)
    else:
        vector.maskedstore(buffer, indices, mask, value)
