# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements on demand: the value of any tensor of a fusion at any position, emitted at the insertion point.

A kernel asks for the elements it writes; each op knows which elements of its operands they need (a transpose permutes
the position, a concatenate selects an operand), down to the loads. What was emitted once for a position is used again.
This is the elemental emitter of XLA, over lanes instead of scalars. `width` lanes are computed together; with a width
of 1 everything is scalar, which is how the GPU lowering uses it.

Out-of-range reads never happen: where only some lanes or only some outcomes are valid (`pad`, `concatenate`), the reads
below are masked or predicated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import (
    Element,
    constant_like,
    convert,
    element_of,
    from_memory,
    like,
    number_attribute,
)
from shlo_disc.lowering.elementwise import Elementwise, MathLibrary
from shlo_disc.lowering.multiples import SizeOf
from shlo_disc.lowering.positions import Position, PositionMath, index_constant
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import arith, ir, memref, scf, vector
from shlo_disc.shape_dialect.ops import ELEMENTWISE
from shlo_disc.shape_dialect.symbolic.facts import Facts

Positions = tuple[Position, ...]


@dataclass(frozen=True)
class Validity:
    """The lanes that may be read: `mask` per lane (None: all), `predicate` for all of them (None: true).

    `may_be_empty`: the mask may have no lane at all; that of a loop's tail has one.
    """

    mask: ir.Value | None = None
    predicate: ir.Value | None = None
    may_be_empty: bool = False


@dataclass
class Elements:
    """The emitter. `memory` maps tensors to memrefs, `size_of` gives the SSA value of a size.

    `rules` has, for each op that is not elementwise, which elements of its operands it needs. `has_one_body`: loops
    over lanes are to hold their body once, for whole vectors and for the rest.
    """

    width: int
    facts: Facts
    size_of: SizeOf
    library: MathLibrary
    rules: Mapping[str, Callable[..., ir.Value]]
    memory: dict[ir.Value, ir.Value] = field(default_factory=dict)
    bound: dict[ir.Value, ir.Value] = field(default_factory=dict)
    cached: dict[ir.Value, Callable[[Positions], ir.Value | None]] = field(default_factory=dict)
    validity: Validity = field(default_factory=Validity)
    has_one_body: bool = False

    def __post_init__(self) -> None:
        self.math = PositionMath(self.width)
        self.elementwise = Elementwise(self.library)
        self._known: list[dict[object, ir.Value]] = [{}]
        self._places: dict[tuple[Positions, Validity], int] = {}

    # ---- scopes ---------------------------------------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[dict[object, ir.Value]]:
        """Values emitted inside are forgotten at the end: they live in a nested region."""
        self._known.append({})
        try:
            yield self._known[-1]
        finally:
            self._known.pop()

    @contextmanager
    def valid(
        self, mask: ir.Value | None = None, predicate: ir.Value | None = None, may_be_empty: bool = False
    ) -> Iterator[None]:
        """Reads inside happen only where `mask` (per lane) and `predicate` hold, too."""
        outer = self.validity
        combined_mask = _both(outer.mask, mask)
        empty = may_be_empty or outer.may_be_empty
        self.validity = Validity(combined_mask, _both(outer.predicate, predicate), empty)
        try:
            yield
        finally:
            self.validity = outer

    def emitted(self, value: ir.Value, positions: Positions) -> ir.Value | None:
        """The result of an earlier request of this value at these positions, if it is still in scope."""
        return self._found(value, self._place(positions))

    def _place(self, positions: Positions) -> int:
        """A number for positions and what may be read there, which is quicker to look up."""
        return self._places.setdefault((positions, self.validity), len(self._places))

    def _found(self, value: ir.Value, place: int) -> ir.Value | None:
        key = (value, place)
        for known in reversed(self._known):
            result = known.get(key)
            if result is not None:
                return result
        return None

    # ---- requests -------------------------------------------------------------------------------------------------

    def at(self, value: ir.Value, positions: Positions) -> ir.Value:
        """The element(s) of `value` at `positions`: a scalar when all lanes agree, else a vector of `width` lanes."""
        if value in self.bound:
            return self.bound[value]
        place = self._place(positions)
        known = self._found(value, place)
        if known is not None:
            return known
        result = self.cached[value](positions) if value in self.cached else None
        if result is None:
            result = self._load_or_compute(value, positions)
        self._known[-1][value, place] = result
        return result

    def _load_or_compute(self, value: ir.Value, positions: Positions) -> ir.Value:
        if value in self.memory:
            return self.load(self.memory[value], positions, element_of(value.type), dims_of(value))
        return self._compute(value, positions)

    def _compute(self, value: ir.Value, positions: Positions) -> ir.Value:
        owner = value.owner
        if isinstance(owner, ir.Block):
            raise CompilerError(f"lower: {value} reached a kernel and has neither a buffer nor an op")
        op = owner.operation.opview
        name = op.operation.name
        if name in ELEMENTWISE:
            place = self._place(positions)
            for inner in self._pending_chain(value, positions, place):
                maker = inner.owner.operation.opview  # type: ignore[union-attr]
                self._known[-1][inner, place] = self._elementwise(maker, positions)
            return self._elementwise(op, positions)
        rule = self.rules.get(name)
        if rule is None:
            raise CompilerError(f"lower: {name} reached a kernel and has no rule")
        return rule(self, op, value, positions)

    def _elementwise(self, op: ir.OpView, positions: Positions) -> ir.Value:
        return self.elementwise.emit(op, [self.at(v, positions if dims_of(v) else ()) for v in op.operands])

    def _pending_chain(self, value: ir.Value, positions: Positions, place: int) -> list[ir.Value]:
        """The elementwise values that `value` needs at the same positions and that are not there yet, operands first.

        Found with a stack of our own, so that a chain of any length is emitted without deep recursion.
        """
        order: list[ir.Value] = []
        entered: set[ir.Value] = set()
        stack = [(value, False)]
        while stack:
            current, is_done = stack.pop()
            if is_done:
                order.append(current)
                continue
            if current in entered:
                continue
            entered.add(current)
            stack.append((current, True))
            for operand in current.owner.operation.operands:  # type: ignore[union-attr]
                is_same_place = bool(dims_of(operand)) or not positions
                if is_same_place and self._is_pending(operand, place):
                    stack.append((operand, False))
        return order[:-1]

    def _is_pending(self, value: ir.Value, place: int) -> bool:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.name not in ELEMENTWISE:
            return False
        if value in self.bound or value in self.cached or value in self.memory:
            return False
        return self._found(value, place) is None

    def splat(self, value: ir.Value) -> ir.Value:
        """A scalar in every lane; vectors and one-lane kernels are left alone."""
        if self.width == 1 or isinstance(value.type, ir.VectorType):
            return value
        return vector.broadcast(ir.VectorType.get([self.width], value.type), value)

    def select(self, condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
        """`condition ? yes : no`, any of them scalar or vector."""
        if any(isinstance(v.type, ir.VectorType) for v in (condition, yes, no)):
            condition, yes, no = self.splat(condition), self.splat(yes), self.splat(no)
        return arith.select(condition, yes, no)

    def where(
        self, condition: ir.Value, yes: Callable[[], ir.Value], no: Callable[[], ir.Value], type_: ir.Type
    ) -> ir.Value:
        """`condition ? yes() : no()` of a type, each side reading only where its outcome is used."""
        inverse = arith.xori(condition, constant_like(condition, 1))
        with self.only_where(condition):
            first = yes()
        with self.only_where(inverse):
            second = no()
        return self.select(condition, first, second)

    def only_where(self, condition: ir.Value) -> AbstractContextManager[None]:
        """Reads inside happen only where `condition`, a scalar or one a lane, holds."""
        if isinstance(condition.type, ir.VectorType):
            return self.valid(mask=condition, may_be_empty=True)
        return self.valid(predicate=condition)

    # ---- memory ---------------------------------------------------------------------------------------------------

    def load(self, buffer: ir.Value, positions: Positions, element: Element, dims: Dims) -> ir.Value:
        """Read a memref: one scalar, one vector, or a gather, by how the lanes stand."""
        if all(p.is_uniform for p in positions):
            raw = self._load_scalar(buffer, [p.base for p in positions], element)
        elif are_side_by_side(buffer, positions):
            raw = self.load_vector(buffer, [p.base for p in positions], element)
        else:
            raw = self.gather(buffer, self.linear_offset(positions, dims), element, len(dims))
        return from_memory(raw, element)

    def _load_scalar(self, buffer: ir.Value, indices: list[ir.Value], element: Element) -> ir.Value:
        predicate = self.validity.predicate
        if self.validity.may_be_empty and self.validity.mask is not None:
            flag = ir.IntegerType.get_signless(1)
            some = vector.reduction(flag, vector.CombiningKind.OR, self.validity.mask)
            predicate = _both(predicate, some)
        if predicate is None:
            return memref.load(buffer, indices)
        loop = scf.IfOp(predicate, [element.memory()], has_else=True)
        with ir.InsertionPoint(loop.then_block):
            scf.yield_([memref.load(buffer, indices)])
        with ir.InsertionPoint(loop.else_block):
            scf.yield_([constant_of(element.memory())])
        return loop.results[0]

    def lane_mask(self) -> ir.Value | None:
        """The mask and the predicate as one mask, None when every lane is valid."""
        predicate = self.validity.predicate
        return _both(self.validity.mask, None if predicate is None else self.splat(predicate))

    def load_vector(self, buffer: ir.Value, indices: list[ir.Value], element: Element) -> ir.Value:
        """Read lanes that stand side by side, the first at some indices."""
        type_ = ir.VectorType.get([self.width], element.memory())
        mask = self.lane_mask()
        if mask is None:
            return vector.load(type_, buffer, indices)
        return vector.maskedload(type_, buffer, indices, mask, splat_constant(type_))

    def gather(self, buffer: ir.Value, offset: Position, element: Element, rank: int) -> ir.Value:
        """Read each lane at its own row-major offset."""
        type_ = ir.VectorType.get([self.width], element.memory())
        mask = self.lane_mask() or splat_constant(ir.VectorType.get([self.width], ir.IntegerType.get_signless(1)), 1)
        origin = [index_constant(0)] * rank
        return vector.gather(type_, buffer, origin, self.math.as_lanes(offset), mask, splat_constant(type_))

    def linear_offset(self, positions: Positions, dims: Dims) -> Position:
        """The row-major element offset of a position."""
        offset = positions[0]
        for position, dim in zip(positions[1:], dims[1:], strict=True):
            offset = self.math.add(self.math.scale(offset, self.size_of(dim), dim.constant), position)
        return offset

    # ---- sizes and integers -----------------------------------------------------------------------------------------

    def shape_element(self, value: ir.Value, position: int) -> Position:
        """Element `position` of an integer vector operand as a uniform position (sizes, starts, strides)."""
        op = value.owner
        if not isinstance(op, ir.Block) and op.operation.name == "disc.shape":
            from shlo_disc.shape_dialect.dialect.types import dims_of_attr

            return Position(self.size_of(dims_of_attr(op.attributes["dims"])[position]))
        element = self.at(value, (Position(index_constant(position)),))
        return self.as_index(element, element_of(value.type))

    def as_index(self, value: ir.Value, element: Element) -> Position:
        """An integer register value as a position."""
        index = ir.IndexType.get()
        cast = arith.index_castui if element.is_unsigned else arith.index_cast
        if isinstance(value.type, ir.VectorType):
            return Position(None, 0, cast(like(value, index), value))
        return Position(cast(index, value))

    def clamp(self, p: Position, high: ir.Value) -> Position:
        """`min(max(p, 0), high)`."""
        if p.is_uniform:
            return Position(arith.minsi(arith.maxsi(p.base, index_constant(0)), high))
        lanes = self.math.as_lanes(p)
        zero, top = (vector.broadcast(lanes.type, v) for v in (index_constant(0), high))
        return Position(None, 0, arith.minsi(arith.maxsi(lanes, zero), top))

    def position_value(self, p: Position, element: Element) -> ir.Value:
        """A position as an element (iota)."""
        integer = ir.IntegerType.get_signless(64)
        index = p.base if p.is_uniform else self.math.as_lanes(p)
        wide = arith.index_cast(like(index, integer), index)
        return convert(wide, Element("i64"), element)


def are_side_by_side(buffer: ir.Value, positions: Positions) -> bool:
    """Tells whether lanes, which are not all at one place, stand at successive elements of a buffer: along the last of
    its axes that is not of size 1."""
    sizes = ir.MemRefType(buffer.type).shape
    axis = max(a for a, p in enumerate(positions) if not p.is_uniform)
    outer, lane = positions[:axis], positions[axis]
    is_last = all(size == 1 for size in sizes[axis + 1 :])
    return is_last and lane.is_linear and all(p.is_uniform for p in outer)


def _both(a: ir.Value | None, b: ir.Value | None) -> ir.Value | None:
    if a is None or b is None:
        return a if b is None else b
    return arith.andi(a, b)


def constant_of(type_: ir.Type, number: int = 0) -> ir.Value:
    """A scalar constant of any element type."""
    return arith.constant(type_, number_attribute(type_, number))


def splat_constant(type_: ir.VectorType, number: int = 0) -> ir.Value:
    """A vector constant with one number in every lane."""
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, number_attribute(type_.element_type, number)))


def uniform(values: Sequence[ir.Value]) -> Positions:
    """Positions at which all lanes stand together."""
    return tuple(Position(v) for v in values)
