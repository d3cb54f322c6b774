# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The frame of a CPU kernel: a function over memrefs, a range of work, and the sizes it uses.

    func.func private @kernel(inputs..., outputs..., %begin: index, %end: index, sizes...)

Sizes are arguments, added when the body first asks for them, so kernels over other symbols but with the same body are
one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from shlo_disc.codegen import CpuTarget
from shlo_disc.lowering.element_types import Element, element_of, to_memory
from shlo_disc.lowering.elements import Elements, MathLibrary, Positions, splat_constant
from shlo_disc.lowering.index_rules import INDEX_RULES
from shlo_disc.lowering.kernel_module import KernelModule
from shlo_disc.lowering.kernels import OutputBuffers
from shlo_disc.lowering.long_sums import in_blocks
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.mlir import arith, func, ir, memref, scf, vector
from shlo_disc.schedule import Schedule
from shlo_disc.shape_dialect.dialect.host import DYNAMIC_DIMS, Guard
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.transforms.code_size import total_code_size

STREAM_BYTES = 24 << 20
"""Outputs from this size on leave the caches before anybody reads them: they are written past the caches."""

_LINE = 64

COMPUTING = 64
"""Instructions for a vector from which on memory waits for them: how results are written makes no difference."""

LONG = 384
"""Instructions for a vector from which on a kernel is written once, with calls of the longer functions."""

_LONG = 2
"""A long row is at least so many times the lanes worked on together."""


@dataclass(frozen=True)
class CpuOptions:
    """What kernels need to know of the target: `vector_bits` of a register.

    unroll, long_unroll: the registers worked on together, and those in long rows. schedule: what is chosen for each
    kernel. features: LLVM's names of what the processor has beyond its architecture's base.
    """

    vector_bits: int = 512
    unroll: int = 2
    long_unroll: int = 2
    features: frozenset[str] = frozenset()
    is_x86: bool = True
    schedule: Schedule = field(default_factory=Schedule)

    @staticmethod
    def of(cpu: CpuTarget, schedule: Schedule | None = None) -> CpuOptions:
        """What kernels need to know of a processor, and what is chosen for them."""
        is_x86 = cpu.triple.startswith("x86_64")
        features = frozenset(cpu.features)
        return CpuOptions(cpu.vector_bits, features=features, is_x86=is_x86, schedule=schedule or Schedule())

    @property
    def registers(self) -> int:
        """The vector registers."""
        return 32 if self.vector_bits == 512 or not self.is_x86 else 16


@dataclass
class Frame:
    """A kernel under construction, with the insertion point at the end of its entry block.

    code_size: the instructions for one vector, by which the number of its versions is bounded.
    """

    fusion: func.FuncOp
    facts: Facts
    options: CpuOptions
    library: MathLibrary
    code_size: int = 0
    results: OutputBuffers = OutputBuffers()
    sizes: list[Expr] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)

    def open(self, module: KernelModule, name: str) -> None:
        """Create the function."""
        block = self.fusion.entry_block
        terminator = block.operations[len(block.operations) - 1]
        self.inputs = list(block.arguments)
        self.outputs = list(terminator.operands)
        types = [memref_type(v) for v in [*self.inputs, *self.outputs]]
        index = ir.IndexType.get()
        with ir.InsertionPoint(module.body):
            type_ = ir.FunctionType.get([*types, index, index], [])
            self.function = func.FuncOp(name, type_, visibility="private")
        self.entry = self.function.add_entry_block()
        arguments = list(self.entry.arguments)
        count = len(self.inputs)
        self.input_buffers = arguments[:count]
        self.output_buffers = arguments[count:-2]
        self.begin, self.end = arguments[-2:]
        for value in [*self.inputs, *self.outputs]:
            for dim in dims_of(value):
                if dim.constant is None:
                    self._size_argument(dim)

    def close(self) -> None:
        """Fix the function's type, after the body is complete."""
        with ir.InsertionPoint(self.entry):
            func.ReturnOp([])
        types = [a.type for a in self.entry.arguments]
        self.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        dynamic = [d for v in (*self.inputs, *self.outputs) for d in dims_of(v) if d.constant is None]
        self.function.attributes[DYNAMIC_DIMS] = ir.DenseI64ArrayAttr.get([self.sizes.index(d) for d in dynamic])

    def _size_argument(self, size: Expr) -> ir.Value:
        if size not in self.sizes:
            self.sizes.append(size)
            self.entry.add_argument(ir.IndexType.get(), ir.Location.current)
        first = len(self.inputs) + len(self.outputs) + 2
        return self.entry.arguments[first + self.sizes.index(size)]

    def size_of(self, size: Expr) -> ir.Value:
        """The value of a size: a constant or an argument."""
        return index_constant(size.constant) if size.constant is not None else self._size_argument(size)

    def guard(self, variant: str, otherwise: str, *conditions: Relation, of_size: bool = False) -> None:
        """Note a choice that the kernel makes at run time; one between numbers is none."""
        found = Guard(variant, otherwise, conditions, of_size)
        if found not in self.guards and any(condition.symbols() for condition in conditions):
            self.guards.append(found)

    def is_whole(self, width: int, size: Expr) -> bool:
        """Whether a size is known to be a multiple of the vectors' width; where it is not, a masked one comes last."""
        if self.facts.divides(width, size):
            return True
        self.guard("whole vectors", "a masked last vector", Relation.eq(size % width, 0))
        return False

    def elements(self, width: int) -> Elements:
        """An emitter that reads this kernel's inputs."""
        memory = dict(zip(self.inputs, self.input_buffers, strict=True))
        found = Elements(width, self.facts, self.size_of, self.library, INDEX_RULES, memory)
        found.has_one_body = self.is_long
        return found

    @property
    def is_long(self) -> bool:
        """Whether the body is too long for several versions of it."""
        return self.code_size >= LONG

    @cached_property
    def is_computing(self) -> bool:
        """Whether an element takes longer to compute than to move."""
        return total_code_size(self.fusion.entry_block.operations) >= COMPUTING

    def streams(self) -> ir.Value | None:
        """Whether to write the outputs past the caches, decided at run time; None where it never pays.

        Whole cache lines have to be written, so rows are to be multiples of one, and so is where the work starts, and
        where the outputs do. Elements that are narrower in memory than in registers are not written so.
        """
        dims, size = dims_of(self.outputs[0]), _bytes_in_memory(self.outputs[0])
        alike = all(dims_of(v) == dims and _bytes_in_memory(v) == size for v in self.outputs)
        if not self.results.are_results or self.is_computing:
            return None
        if not alike or not dims or size < 4:
            return None
        longest = self.facts.range(product(dims) * size)[1]
        if longest is not None and longest < STREAM_BYTES:
            return None
        rows = [Relation.eq(dims[-1] * size % _LINE, 0)] if len(dims) > 1 else []
        large = Relation.ge(product(dims) * size, STREAM_BYTES)
        self.guard("past the caches", "through the caches", large, *rows, of_size=True)
        total = index_constant(size)
        for dim in dims:
            total = arith.muli(total, self.size_of(dim))
        is_large = arith.cmpi(arith.CmpIPredicate.uge, total, index_constant(STREAM_BYTES))
        step = self.size_of(dims[-1]) if len(dims) > 1 else self.begin
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

    def longest_width(self) -> int:
        """Lanes worked on together in long rows."""
        return self.width() // self.options.unroll * self.options.long_unroll

    def width(self) -> int:
        """Lanes worked on together: `unroll` registers of the widest element type, a power of two."""
        widest = 32
        for op in self.fusion.entry_block.operations:
            values = [] if op.operation.name == "disc.shape" else [*op.results]
            for value in [*values, *(v for v in op.operands if not _is_shape(v))]:
                if isinstance(value.type, ir.RankedTensorType) and dims_of(value):
                    widest = max(widest, element_of(value.type).width)
        return max(1, self.options.unroll * self.options.vector_bits // widest)


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


def either(condition: ir.Value | None, body: Callable[[bool], None]) -> None:
    """`body(True)` where the condition holds at run time, else `body(False)`."""
    if condition is None:
        body(False)
        return
    choice = scf.IfOp(condition, [], has_else=True)
    for block, outcome in ((choice.then_block, True), (choice.else_block, False)):
        with ir.InsertionPoint(block):
            body(outcome)
            scf.yield_([])


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
    if not _is_side_by_side(buffer, positions):
        _scatter(buffer, value, positions, mask, elements)
        return
    indices = [p.base for p in positions]
    if mask is None and streaming:
        vector.store(value, buffer, indices, nontemporal=True, alignment=_LINE)
    elif mask is None:
        vector.store(value, buffer, indices)
    else:
        vector.maskedstore(buffer, indices, mask, value)


def _is_side_by_side(buffer: ir.Value, positions: Positions) -> bool:
    """Whether the lanes stand at successive elements: along the last axis that is not of size 1."""
    sizes = ir.MemRefType(buffer.type).shape
    axis = max(a for a, p in enumerate(positions) if not p.is_uniform)
    outer, (lane, *rest) = positions[:axis], positions[axis:]
    is_last = all(sizes[a] == 1 for a in range(len(positions) - len(rest), len(positions)))
    return is_last and lane.lanes is None and lane.step == 1 and all(p.is_uniform for p in outer)


def _scatter(
    buffer: ir.Value, value: ir.Value, positions: Positions, mask: ir.Value | None, elements: Elements
) -> None:
    """Write each lane to its own row-major place."""
    offset = positions[0]
    for axis, size in list(enumerate(ir.MemRefType(buffer.type).shape))[1:]:
        constant = None if size == DYNAMIC else size
        stride = memref.dim(buffer, index_constant(axis)) if constant is None else index_constant(constant)
        offset = elements.math.add(elements.math.scale(offset, stride, constant), positions[axis])
    origin = [index_constant(0)] * len(positions)
    flags = mask or splat_constant(ir.VectorType.get([elements.width], ir.IntegerType.get_signless(1)), 1)
    vector.scatter(None, buffer, origin, elements.math.as_lanes(offset), flags, value)


def for_range(begin: ir.Value, end: ir.Value, body: Callable[[ir.Value], None], step: ir.Value | None = None) -> None:
    """A plain counted loop."""
    loop = scf.ForOp(begin, end, step or index_constant(1), [])
    with ir.InsertionPoint(loop.body):
        body(loop.induction_variable)
        scf.yield_([])


def over_lanes(
    elements: Elements,
    begin: ir.Value,
    end: ir.Value,
    divisible: bool,
    carried: list[ir.Value],
    body: Callable[[Position, list[ir.Value], ir.Value | None], list[ir.Value]],
    fold: Callable[[list[ir.Value]], list[ir.Value]] | None = None,
) -> list[ir.Value]:
    """Vectors over [begin, end), then one masked vector for the rest unless the length is a multiple of the width.

    `body(position, carried, mask)` returns the next carried values; with a mask it must leave masked lanes alone.
    Where it is to be written once (`Elements.has_one_body`), all vectors are masked. `fold(carried)` does between the
    blocks of a long loop (`long_sums`).
    """
    width = elements.width
    if elements.has_one_body and not divisible and width > 1:

        def masked(index: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            mask = _first_lanes(width, arith.subi(end, index))
            with elements.scope(), elements.valid(mask=mask):
                return body(Position(index, 1), values, mask)

        return in_blocks(begin, end, width, carried, masked, fold)
    rest = arith.remui(arith.subi(end, begin), index_constant(width))
    main_end = end if divisible or width == 1 else arith.subi(end, rest)
    lane_step = 1 if width > 1 else 0

    def whole(index: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        with elements.scope():
            return body(Position(index, lane_step), values, None)

    results = in_blocks(begin, main_end, width, carried, whole, fold)
    if divisible or width == 1:
        return results
    some = arith.cmpi(arith.CmpIPredicate.ugt, rest, index_constant(0))
    tail = scf.IfOp(some, [v.type for v in carried], has_else=bool(carried))
    with ir.InsertionPoint(tail.then_block), elements.scope():
        mask = _first_lanes(width, rest)
        with elements.valid(mask=mask):
            scf.yield_(body(Position(main_end, lane_step), results, mask))
    if carried:
        with ir.InsertionPoint(tail.else_block):
            scf.yield_(results)
    return list(tail.results)


def _first_lanes(width: int, count: ir.Value) -> ir.Value:
    """A mask of the first `count` lanes, of all where there are fewer."""
    return vector.create_mask(ir.VectorType.get([width], ir.IntegerType.get_signless(1)), [count])
