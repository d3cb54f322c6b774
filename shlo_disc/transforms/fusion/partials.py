# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reserves memory for kernels whose work on one result is split over several blocks of threads.

A reduction of many elements to few results has too few blocks for a device. Its elements are cut into parts, a block
for each; blocks leave what they find in scratch memory, and the last of them combines it. Into how many parts is an
expression of the sizes: axis 0 of that memory, further results of the fusion, which is 0 where nothing is cut. So one
kernel serves all sizes, and what it computes depends on the sizes alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from shlo_disc.shape_dialect.build import constant
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import Reduce, RowReduce, fusion_of, is_by_columns, is_fusion, set_fusion
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.symbolic.limits import NoLimit
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, terminator_of
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.fusion.grouping_patterns import depends_on_reduction


@dataclass(frozen=True)
class Work:
    """A kernel of reductions, all calls of it, and what is known of sizes."""

    function: func.FuncOp
    calls: tuple[func.CallOp, ...]
    is_called_by_fusions: bool
    facts: Facts

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
    def parts(self) -> Expr:
        """Into how many the elements of a result are cut; 0 where they are not."""
        wanted = policy().blocks // Expr.maximum(self.blocks, 1)
        parts = Expr.minimum(wanted, self.length // self.least)
        return parts * Expr.minimum(parts // 2, 1)


PARTS: Pattern[Work] = Pattern("parts-over-blocks", "several blocks work on a result, and the last one combines parts")


@PARTS.requires("it reduces along rows or down columns, and the program alone calls it")
def _is_reduction(found: Work) -> bool:
    what = fusion_of(found.function)
    is_row = isinstance(what, RowReduce) and what.columns > 0 and not what.bounded
    return (is_row or is_by_columns(found.function)) and not found.is_called_by_fusions


@PARTS.requires("no reduction needs what another one makes")
def _needs_one_walk(found: Work) -> bool:
    members = {op.operation for op in found.function.entry_block.operations}
    return not any(depends_on_reduction(op.operation, members) for op in found.ops)


@PARTS.requires("the results are made of the reductions', and of nothing along which they go")
def _has_no_other_results(found: Work) -> bool:
    sizes = _wide(found.results)
    return all(_wide(dims_of(v)) == sizes for v in terminator_of(found.function.entry_block).operands)


@PARTS.requires(
    "what is reduced may be long", lambda found: [Relation.ge(found.length, 2 * found.least)] if found.ops else []
)
def _may_be_long(found: Work) -> bool:
    return found.facts.prove(Relation.lt(found.length, 2 * found.least)) is not True


@PARTS.requires("there may be fewer blocks than a device has at work")
def _may_be_few(found: Work) -> bool:
    return found.facts.prove(Relation.gt(found.blocks * 2, policy().blocks)) is not True


@PARTS.requires("the memory for parts has a bound that is known before an iteration reads its sizes")
def _has_room(found: Work) -> bool:
    try:
        found.facts.limits.largest(product((found.parts, *found.results)))
    except NoLimit:
        return False
    return True


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
        found = PARTS.match(lambda w: w, Work(function, calls, name in inside, facts))
        if found is not None and calls and decisions.take(PARTS.name, calls[0].operation):
            _reserve(found)


def _calls_in(block: ir.Block) -> Iterator[func.CallOp]:
    return (op for inner in all_blocks(block) for op in inner.operations if isinstance(op, func.CallOp))


def _wide(dims: Dims) -> Dims:
    return tuple(size for size in dims if size.constant != 1)


def _reserve(found: Work) -> None:
    function, what = found.function, fusion_of(found.function)
    last = terminator_of(function.entry_block)
    dims = (found.facts.simplify(found.parts), *found.results)
    with ir.InsertionPoint(last), last.location:
        partials = [constant(0, _held(element_type_of(v)), dims) for op in found.ops for v in op.results]
        func.ReturnOp([*last.operands, *partials])
    last.operation.erase()
    types = [v.type for v in terminator_of(function.entry_block).operands]
    arguments = [a.type for a in function.entry_block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, types))
    if isinstance(what, Reduce | RowReduce):
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
