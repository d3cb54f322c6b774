# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reserves memory for kernels whose work on one result is split over several blocks of threads.

A reduction of many elements to few results has too few blocks for a device, and so has an attention of few queries over
many keys, or a cumulative op of few long lines. The elements, or the keys, are cut into parts, a block for each; blocks
leave what they find in scratch memory, where others find it. Into how many parts is an expression of the sizes: axis 0
of that memory, further results of the fusion, which is 0 where nothing is cut. So one kernel serves all sizes, and what
it computes depends on the sizes alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from shlo_disc.shape_dialect.build import constant
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import (
    Attention,
    Nonzero,
    Reduce,
    RowReduce,
    Scan,
    fusion_of,
    is_by_columns,
    is_fusion,
    set_fusion,
)
from shlo_disc.shape_dialect.dialect.problems import AttentionProblem
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.reducers import monoid_of
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.symbolic.limits import NoLimit
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, terminator_of
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.fusion.grouping_patterns import depends_on_reduction

Memory = list[tuple[Dims, ir.Type]]
"""The sizes and the element types of what a block leaves."""


@dataclass(frozen=True)
class Called:
    """A fusion, all calls of it by the program, and what is known of sizes."""

    function: func.FuncOp
    calls: tuple[func.CallOp, ...]
    is_called_by_fusions: bool
    facts: Facts


@dataclass(frozen=True)
class Work(Called, ABC):
    """A kernel whose work on one result may be split."""

    @property
    @abstractmethod
    def length(self) -> Expr:
        """The number of elements that are cut into parts."""

    @property
    @abstractmethod
    def least(self) -> int:
        """The least size of a part."""

    @property
    @abstractmethod
    def blocks(self) -> Expr:
        """The blocks that work where nothing is split."""

    @property
    @abstractmethod
    def memory(self) -> Memory:
        """The words that each block leaves of a part of all results."""

    @property
    def parts(self) -> Expr:
        """Into how many parts each result's work is cut; 0 where it is not."""
        wanted = policy().blocks // Expr.maximum(self.blocks, 1)
        parts = Expr.minimum(wanted, self.length // self.least)
        return parts * Expr.minimum(parts // 2, 1)


@dataclass(frozen=True)
class Reductions(Work):
    """A kernel of reductions."""

    @staticmethod
    def of(called: Called) -> Reductions:
        """Any kernel as one of reductions, as which it is examined."""
        return Reductions(**vars(called))

    @cached_property
    def ops(self) -> list[ir.OpView]:
        """Its reductions."""
        return [op for op in self.function.entry_block.operations if op.operation.name == "stablehlo.reduce"]

    @property
    def results(self) -> Dims:
        """The sizes of what the first one makes."""
        return dims_of(self.ops[0].results[0])

    @property
    def length(self) -> Expr:
        """The elements of a result."""
        dims = dims_of(self.ops[0].operands[0])
        return product(dims[axis] for axis in integers(self.ops[0].attributes["dimensions"]))

    @property
    def least(self) -> int:
        """The elements of a part, at least."""
        return policy().part_rows if is_by_columns(self.function) else policy().part_columns

    @property
    def blocks(self) -> Expr:
        """The blocks that work where nothing is split."""
        if not is_by_columns(self.function):
            return product(self.results)
        outer = min(integers(self.ops[0].attributes["dimensions"]))
        return product(self.results[:outer]) * ceildiv(product(self.results[outer:]), policy().tile_columns)

    @property
    def memory(self) -> Memory:
        """The values that the reductions make."""
        return [(self.results, _held(element_type_of(v))) for op in self.ops for v in op.results]


@dataclass(frozen=True)
class Keys(Work):
    """An attention whose rows come in pieces."""

    problem: AttentionProblem

    @staticmethod
    def of(called: Called) -> Keys | None:
        """A kernel as an attention, if it is one."""
        what = fusion_of(called.function)
        if not isinstance(what, Attention) or not what.online or what.problem is None:
            return None
        return Keys(**vars(called), problem=what.problem)

    @property
    def length(self) -> Expr:
        """The keys."""
        return self.problem.columns

    @property
    def least(self) -> int:
        """The keys of a part, at least."""
        return policy().part_keys

    @property
    def blocks(self) -> Expr:
        """A block for all rows of a matrix."""
        return product(axis.size for axis in self.problem.batch)

    @property
    def parts(self) -> Expr:
        """Nothing is cut where rows are not few."""
        return super().parts * Expr.minimum(policy().few_queries // Expr.maximum(self.problem.rows.size, 1), 1)

    @property
    def memory(self) -> Memory:
        """For each row its largest element, the sum of its weights, and what these weigh."""
        rows = self.blocks * self.problem.rows.size
        return [(dims, ir.F32Type.get()) for dims in ((rows,), (rows,), (rows, self.problem.width))]


@dataclass(frozen=True)
class Lines(Work):
    """A cumulative op."""

    op: ir.OpView
    axis: int

    @staticmethod
    def of(called: Called) -> Lines | None:
        """A kernel as a cumulative op, if it is one."""
        what = fusion_of(called.function)
        if not isinstance(what, Scan):
            return None
        ops = called.function.entry_block.operations
        op = next(op for op in ops if op.operation.name == "stablehlo.reduce_window")
        return Lines(**vars(called), op=op, axis=what.axis)

    @property
    def length(self) -> Expr:
        """The elements of a line."""
        return dims_of(self.op.results[0])[self.axis]

    @property
    def least(self) -> int:
        """The elements of a part, at least."""
        return policy().part_columns

    @property
    def blocks(self) -> Expr:
        """A block for each line."""
        return product(size for axis, size in enumerate(dims_of(self.op.results[0])) if axis != self.axis)

    @property
    def memory(self) -> Memory:
        """For each line what its elements are together; of a sum of floats what it lacks, too."""
        element = element_type_of(self.op.results[0])
        is_long = isinstance(element, ir.FloatType) and monoid_of(self.op.regions[0].blocks[0]) == "add"
        return [((self.blocks,), _held(element))] * (2 if is_long else 1)


@dataclass(frozen=True)
class Mask(Work):
    """The positions of the true elements of a mask."""

    op: ir.OpView

    @staticmethod
    def of(called: Called) -> Mask | None:
        """A kernel as one of positions, if it is one."""
        if not isinstance(fusion_of(called.function), Nonzero):
            return None
        ops = called.function.entry_block.operations
        return Mask(**vars(called), op=next(op for op in ops if op.operation.name == "disc.nonzero"))

    @property
    def length(self) -> Expr:
        """The elements."""
        return product(dims_of(self.op.operands[0]))

    @property
    def least(self) -> int:
        """The elements of a part, at least."""
        return policy().part_columns

    @property
    def blocks(self) -> Expr:
        """One."""
        return Expr.const(1)

    @property
    def memory(self) -> Memory:
        """The number of true elements."""
        return [((), ir.IntegerType.get_signless(64))]


PARTS: Pattern[Reductions] = Pattern(
    "parts-over-blocks", "several blocks work on a result, and the last one combines parts"
)
LINES: Pattern[Lines] = Pattern("lines-over-blocks", "several blocks have parts of a line of a cumulative op")
MASK: Pattern[Mask] = Pattern(
    "mask-over-blocks", "several blocks have parts of a mask, and write positions behind others'"
)
KEYS: Pattern[Keys] = Pattern("keys-over-blocks", "several blocks have parts of the keys of few queries")


@PARTS.requires("it reduces along rows or down columns, and the program alone calls it")
def _is_reduction(found: Reductions) -> bool:
    what = fusion_of(found.function)
    is_row = isinstance(what, RowReduce) and what.columns > 0 and not what.bounded
    return (is_row or is_by_columns(found.function)) and not found.is_called_by_fusions


@PARTS.requires("no reduction needs what another one makes")
def _needs_one_walk(found: Reductions) -> bool:
    members = {op.operation for op in found.function.entry_block.operations}
    return not any(depends_on_reduction(op.operation, members) for op in found.ops)


@PARTS.requires("the results are made of the reductions', and of nothing along which they go")
def _has_no_other_results(found: Reductions) -> bool:
    sizes = _wide(found.results)
    return all(_wide(dims_of(v)) == sizes for v in terminator_of(found.function.entry_block).operands)


def _is_called_by_the_program(found: Work) -> bool:
    return not found.is_called_by_fusions


KEYS.requires("the program alone calls it")(_is_called_by_the_program)
LINES.requires("the program alone calls it")(_is_called_by_the_program)
MASK.requires("the program alone calls it")(_is_called_by_the_program)


@LINES.requires("one value is combined, by an op that has a neutral element")
def _has_a_neutral_element(found: Lines) -> bool:
    return len(found.op.results) == 1 and monoid_of(found.op.regions[0].blocks[0]) is not None


@KEYS.requires("there may be few queries", lambda found: [Relation.le(found.problem.rows.size, policy().few_queries)])
def _may_have_few_queries(found: Keys) -> bool:
    return found.facts.prove(Relation.gt(found.problem.rows.size, policy().few_queries)) is not True


def _long(found: Work) -> list[Relation]:
    return [Relation.ge(found.length, 2 * found.least)]


def _may_be_long(found: Work) -> bool:
    return found.facts.prove(Relation.lt(found.length, 2 * found.least)) is not True


def _may_be_few(found: Work) -> bool:
    return found.facts.prove(Relation.gt(found.blocks * 2, policy().blocks)) is not True


def _has_room(found: Work) -> bool:
    try:
        for dims, _ in found.memory:
            found.facts.limits.largest(product((found.parts, *dims)))
    except NoLimit:
        return False
    return True


PARTS.requires("what is reduced may be long", lambda found: _long(found) if found.ops else [])(_may_be_long)
KEYS.requires("there may be many keys", _long)(_may_be_long)
LINES.requires("lines may be long", _long)(_may_be_long)
MASK.requires("the mask may be long", _long)(_may_be_long)
_ALL: tuple[Pattern[Any], ...] = (PARTS, KEYS, LINES, MASK)
for _pattern in _ALL:
    _pattern.requires("there may be fewer blocks than a device has at work")(_may_be_few)
    _pattern.requires("the memory for parts has a bound that is known before an iteration reads its sizes")(_has_room)


def reserve_partials(module: ir.Module, facts: Facts, decisions: Decisions) -> None:
    """Give the kernels of a fused module that may be split the results in which blocks leave their parts, in place."""
    if not policy().blocks:
        return
    functions = [op for op in module.body.operations if isinstance(op, func.FuncOp) and is_fusion(op)]
    called: dict[str, list[func.CallOp]] = {}
    for call in _calls_in(entry_block(module)):
        called.setdefault(callee_of(call), []).append(call)
    inside = {callee_of(call) for function in functions for call in _calls_in(function.entry_block)}
    for function in functions:
        name = function.name.value
        calls = tuple(called.get(name, ()))
        known = Called(function, calls, name in inside, facts)
        _split(PARTS, PARTS.match(Reductions.of, known), decisions)
        _split(KEYS, KEYS.match(Keys.of, known), decisions)
        _split(LINES, LINES.match(Lines.of, known), decisions)
        _split(MASK, MASK.match(Mask.of, known), decisions)


Found = TypeVar("Found", bound=Work)


def _split(pattern: Pattern[Found], found: Found | None, decisions: Decisions) -> None:
    if found is not None and found.calls and decisions.take(pattern.name, found.calls[0].operation):
        _reserve(found)


def _calls_in(block: ir.Block) -> Iterator[func.CallOp]:
    return (op for inner in all_blocks(block) for op in inner.operations if isinstance(op, func.CallOp))


def _wide(dims: Dims) -> Dims:
    return tuple(size for size in dims if size.constant != 1)


def _reserve(found: Work) -> None:
    function, what = found.function, fusion_of(found.function)
    last = terminator_of(function.entry_block)
    parts = found.facts.simplify(found.parts)
    with ir.InsertionPoint(last), last.location:
        partials = [constant(0, element, (parts, *dims)) for dims, element in found.memory]
        func.ReturnOp([*last.operands, *partials])
    last.operation.erase()
    types = [v.type for v in terminator_of(function.entry_block).operands]
    arguments = [a.type for a in function.entry_block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, types))
    if isinstance(what, Reduce | RowReduce | Attention | Scan | Nonzero):
        set_fusion(function, replace(what, partials=len(partials)))
    for call in found.calls:
        with ir.InsertionPoint(call), call.location:
            new = func.CallOp(function, list(call.operands))
        for name in call.attributes:
            new.attributes[name] = call.attributes[name]
        for old, result in zip(call.results, new.results, strict=False):
            old.replace_all_uses_with(result)
        call.operation.erase()


def _held(element: ir.Type) -> ir.Type:
    """The type in which a value is held between two elements of a reduction: floats of fewer bits as f32."""
    is_narrow = isinstance(element, ir.FloatType) and element.width < 32
    return ir.F32Type.get() if is_narrow else element
