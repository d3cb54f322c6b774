# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reserves memory for kernels whose work on one result is split over several blocks of threads.

A reduction of many elements to few results has too few blocks for a device, and so has an attention of few queries over
many keys, a cumulative op of few long lines, or a product of a small result. The elements, the keys, or what the
product sums over, its depth, are cut into parts, a block for each; blocks leave what they find in scratch memory, where
others find it. Into how many parts is an expression of the sizes: axis 0 of that memory, further results of the fusion,
which is 0 where nothing is cut. So one kernel serves all sizes, and what it computes depends on the sizes alone. A sort
has scratch memory in any case: on its fusion stands into how many parts lines are cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from shlo_disc.shape_dialect.build import constant
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import (
    SPLIT,
    Gemm,
    RowReduce,
    Sort,
    fusion_of,
    is_by_columns,
    is_fusion,
    set_fusion,
)
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.reducers import monoid_of
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.symbolic.limits import NoLimit
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, terminator_of
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.fusion.grouping_patterns import depends_on_reduction
from shlo_disc.transforms.fusion.split_work import Best, Called, Depth, Keys, Lines, Mask, Reductions, Sorted, Work

PARTS: Pattern[Reductions] = Pattern(
    "parts-over-blocks", "several blocks work on a result, and the last one combines parts"
)
LINES: Pattern[Lines] = Pattern("lines-over-blocks", "several blocks have parts of a line of a cumulative op")
MASK: Pattern[Mask] = Pattern(
    "mask-over-blocks", "several blocks have parts of a mask, and write positions behind others'"
)
KEYS: Pattern[Keys] = Pattern("keys-over-blocks", "several blocks have parts of the keys of few queries")
BEST: Pattern[Best] = Pattern("best-over-blocks", "several blocks have parts of a line whose first elements are found")
SORTS: Pattern[Sorted] = Pattern("runs-over-blocks", "several blocks sort parts of a line, and merge runs of them")
DEPTH: Pattern[Depth] = Pattern("depth-over-blocks", "several blocks have parts of the depth of a product")


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
BEST.requires("the program alone calls it")(_is_called_by_the_program)
SORTS.requires("the program alone calls it")(_is_called_by_the_program)


@DEPTH.requires("nothing but the program, and fusions of a product with an epilogue, call it")
def _is_called_as_a_product(found: Depth) -> bool:
    return all(isinstance(fusion_of(caller), Gemm) for caller in found.callers)


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
    return found.facts.prove(Relation.gt(found.blocks * 2, found.wanted)) is not True


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
BEST.requires("lines may be long", _long)(_may_be_long)
SORTS.requires("lines may be long", _long)(_may_be_long)
DEPTH.requires("the depth may be large", _long)(_may_be_long)
_ALL: tuple[Pattern[Any], ...] = (PARTS, KEYS, LINES, MASK, BEST, SORTS, DEPTH)
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
    callers: dict[str, list[func.FuncOp]] = {}
    for function in functions:
        for name in {callee_of(call) for call in _calls_in(function.entry_block)}:
            callers.setdefault(name, []).append(function)
    for function in functions:
        name = function.name.value
        inside = tuple(callers.get(name, ()))
        known = Called(function, tuple(called.get(name, ())), bool(inside), facts)
        _split(PARTS, PARTS.match(Reductions.of, known), decisions)
        _split(KEYS, KEYS.match(Keys.of, known), decisions)
        _split(LINES, LINES.match(Lines.of, known), decisions)
        _split(MASK, MASK.match(Mask.of, known), decisions)
        _split(BEST, BEST.match(Best.of, known), decisions)
        _split_sort(SORTS.match(Sorted.of, known), decisions)
        _split_depth(DEPTH.match(partial(Depth.of, callers=inside), known), called, decisions)


Found = TypeVar("Found", bound=Work)


def _split(pattern: Pattern[Found], found: Found | None, decisions: Decisions) -> None:
    if found is not None and found.calls and decisions.take(pattern.name, found.calls[0].operation):
        for call, new in zip(found.calls, _reserve(found, found.calls), strict=True):
            _replace(call, new)


def _split_sort(found: Sorted | None, decisions: Decisions) -> None:
    """A sort has its scratch memory already: note into how many parts lines are cut."""
    if found is not None and found.calls and decisions.take(SORTS.name, found.calls[0].operation):
        what = fusion_of(found.function)
        if isinstance(what, Sort):
            set_fusion(found.function, replace(what, parts=found.facts.simplify(found.parts)))


def _split_depth(found: Depth | None, called: dict[str, list[func.CallOp]], decisions: Decisions) -> None:
    """As others, in the fusions that call the product as well: the scratch memory is a result of theirs."""
    if found is None:
        return
    gemms = {caller.name.value: called.get(caller.name.value, []) for caller in found.callers}
    first = next((call for calls in (list(found.calls), *gemms.values()) for call in calls), None)
    if first is None or not decisions.take(DEPTH.name, first.operation):
        return
    for call, new in zip(found.calls, _reserve(found, found.calls), strict=True):
        _replace(call, new)
    for caller in found.callers:
        for inner in [c for c in _calls_in(caller.entry_block) if callee_of(c) == found.function.name.value]:
            new = _called_again(found.function, inner)
            memory = new.results[len(inner.results)]
            _replace(inner, new)
            _return_more(caller, [memory])
        again = [(call, _called_again(caller, call)) for call in gemms[caller.name.value]]
        for call, new in again:
            _replace(call, new)
        called[caller.name.value] = [new for _, new in again]


def _calls_in(block: ir.Block) -> Iterator[func.CallOp]:
    return (op for inner in all_blocks(block) for op in inner.operations if isinstance(op, func.CallOp))


def _wide(dims: Dims) -> Dims:
    return tuple(size for size in dims if size.constant != 1)


def _reserve(found: Work, calls: Sequence[func.CallOp]) -> list[func.CallOp]:
    """Give a kernel its further results. Returns calls of it behind those given."""
    function = found.function
    last = terminator_of(function.entry_block)
    parts = found.facts.simplify(found.parts)
    with ir.InsertionPoint(last), last.location:
        partials = [constant(0, element, (parts, *dims)) for dims, element in found.memory]
    _return_more(function, partials)
    return [_called_again(function, call) for call in calls]


def _return_more(function: func.FuncOp, partials: Sequence[ir.Value]) -> None:
    """Let a fusion return scratch memory besides."""
    last, what = terminator_of(function.entry_block), fusion_of(function)
    with ir.InsertionPoint(last), last.location:
        func.ReturnOp([*last.operands, *partials])
    last.operation.erase()
    types = [v.type for v in terminator_of(function.entry_block).operands]
    arguments = [a.type for a in function.entry_block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, types))
    if isinstance(what, SPLIT):
        set_fusion(function, replace(what, partials=what.partials + len(partials)))


def _called_again(function: func.FuncOp, call: func.CallOp) -> func.CallOp:
    """A call before one of the same function, whose results are more now."""
    with ir.InsertionPoint(call), call.location:
        new = func.CallOp(function, list(call.operands))
    for name in call.attributes:
        new.attributes[name] = call.attributes[name]
    return new


def _replace(call: func.CallOp, new: func.CallOp) -> None:
    for old, result in zip(call.results, new.results, strict=False):
        old.replace_all_uses_with(result)
    call.operation.erase()
