# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pieces of arrays that products read where they lie, in place of copies.

A model whose layers run in a loop (`jax.lax.scan`) has the weights of all layers in one array, and takes those of one
out of it in each iteration. The elements lie side by side, so a matrix product, an attention and a library function
read them there: a `disc.piece` is a view of the array, as a reshape is, and no kernel. What computes where it begins
has a kernel of its own. Other kernels read through slices anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import (
    Attention,
    Convolution,
    Dot,
    Gemm,
    Library,
    Loop,
    fusion_of,
    set_fusion,
)
from shlo_disc.shape_dialect.dialect.parts import PART, Part, PartStart, part_attribute
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.views import PIECE, readers_of
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.memory.cuts import CUTS, Cut, cut_of

ALIGNMENT = 64
"""Bytes between pieces: values of the arena lie as far apart."""

MOST_STARTS = 16
"""Elements of a list of integers that say where a piece begins."""

TAKE_PIECE = Pattern["Pieces"]("piece", "a product reads a piece of an array where it lies")

Functions = Mapping[str, func.FuncOp]


class Pieces(NamedTuple):
    """A call of a kernel that cuts pieces, one for each result, and its ops that compute where these begin."""

    call: ir.Operation
    function: func.FuncOp
    cuts: list[Cut]
    others: list[ir.Operation]
    readers: list[func.FuncOp | None]

    @property
    def starts(self) -> list[ir.Value]:
        """The values that the pieces' beginnings are elements of, each once."""
        return list(dict.fromkeys(start.value for cut in self.cuts for start in cut.data))

    @property
    def computed(self) -> list[ir.Value]:
        """The starts that the kernel computes."""
        return [value for value in self.starts if not isinstance(value.owner, ir.Block)]


@TAKE_PIECE.requires("the elements of a piece lie side by side, and begin as far apart as buffers do")
def _are_dense(found: Pieces) -> bool:
    return all(cut.is_dense and all(_is_aligned(size) for size in cut.distances) for cut in found.cuts)


@TAKE_PIECE.requires("besides, a few integers are computed, signed ones of 32 or 64 bits where pieces begin at them")
def _begin_at_integers(found: Pieces) -> bool:
    small = [value for op in found.others for value in (*op.operands, *op.results)]
    alike = all(len({start.value.type for start in cut.data}) <= 1 for cut in found.cuts)
    begin = all(str(element_type_of(value)) in ("i32", "i64") for value in found.starts)
    return alike and begin and all(_is_small(value) for value in (*small, *found.starts))


@TAKE_PIECE.requires("products, attentions and library functions alone read pieces, in the block where they are cut")
def _are_for_products(found: Pieces) -> bool:
    return bool(found.readers) and all(reader is not None and _is_product(reader) for reader in found.readers)


def view_pieces(module: ir.Module, decisions: Decisions) -> None:
    """Put pieces in place of the kernels that copy them, in a fused module, on targets whose products read pieces."""
    if not policy().reads_pieces:
        return
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    starts: dict[str, func.FuncOp] = {}
    replaced: set[str] = set()
    for call in [op for block in all_blocks(entry_block(module)) for op in _calls(block)]:
        name = callee_of(call)
        found = TAKE_PIECE.match(lambda c: _candidate(c, functions), call)
        if found is None or not decisions.take(TAKE_PIECE.name, call):
            continue
        if found.computed and name not in starts:
            with ir.InsertionPoint(found.function):
                starts[name] = _function_of_starts(found)
        _replace(found, starts.get(name))
        replaced.add(name)
    called = {callee_of(op) for f in functions.values() for b in all_blocks(f.entry_block) for op in _calls(b)}
    for name in replaced - called:
        functions[name].operation.erase()


def _calls(block: ir.Block) -> list[ir.Operation]:
    return [op.operation for op in block.operations if op.operation.name == "func.call"]


def _candidate(call: ir.Operation, functions: Functions) -> Pieces | None:
    function = functions[callee_of(call)]
    if not isinstance(fusion_of(function), Loop):
        return None
    *ops, last = (op.operation for op in function.entry_block.operations)
    slices = [op for op in ops if op.name in CUTS]
    cuts = [cut for op in slices if (cut := cut_of(op)) is not None]
    made = [value.owner.operation for value in last.operands if not isinstance(value.owner, ir.Block)]
    if not slices or len(cuts) < len(slices) or made != slices:
        return None
    if not all(isinstance(cut.source.owner, ir.Block) for cut in cuts):
        return None
    others = _makers(function.entry_block, {start.value for cut in cuts for start in cut.data})
    readers = [reader for result in call.results for reader, _ in readers_of(result)]
    is_call = [reader.name == "func.call" and reader.block == call.block for reader in readers]
    called = [functions[callee_of(r)] if calls else None for r, calls in zip(readers, is_call, strict=True)]
    return Pieces(call, function, cuts, others, called)


def _makers(block: ir.Block, values: set[ir.Value]) -> list[ir.Operation]:
    """The ops of a block by which values are computed, in their order."""
    found: list[ir.Operation] = []
    for op in reversed(list(block.operations)):
        if not values.isdisjoint(op.results):
            found.insert(0, op.operation)
            values = values.union(op.operands)
    return found


def _is_product(function: func.FuncOp) -> bool:
    what = fusion_of(function)
    has_product = isinstance(what, Dot | Convolution) and what.product is not None
    return has_product or isinstance(what, Gemm | Attention | Library)


def _is_small(value: ir.Value) -> bool:
    count = product(dims_of(value)).constant
    return len(dims_of(value)) <= 1 and count is not None and count <= MOST_STARTS


def _is_aligned(size: Expr) -> bool:
    """Tells whether a size is a multiple of the alignment, whatever the symbols are."""
    return all(factor % ALIGNMENT == 0 for factor, _ in size.terms)


# ---- the pieces ------------------------------------------------------------------------------------------------------


def _function_of_starts(found: Pieces) -> func.FuncOp:
    """A kernel that computes where pieces begin, at the insertion point."""
    arguments = _arguments_of(found.others)
    type_ = ir.FunctionType.get([a.type for a in arguments], [value.type for value in found.computed])
    function = func.FuncOp(f"{found.function.name.value}_starts", type_, visibility="private")
    values = dict(zip(arguments, function.add_entry_block().arguments, strict=True))
    with ir.InsertionPoint(function.entry_block):
        for op in found.others:
            clone = op.clone()
            for number, operand in enumerate(op.operands):
                clone.operands[number] = values[operand]
            values.update(zip(op.results, clone.results, strict=True))
        func.ReturnOp([values[value] for value in found.computed])
    set_fusion(function, Loop())
    return function


def _arguments_of(ops: list[ir.Operation]) -> list[ir.Value]:
    read = dict.fromkeys(value for op in ops for value in op.operands if isinstance(value.owner, ir.Block))
    return list(read)


def _replace(found: Pieces, starts: func.FuncOp | None) -> None:
    """Put the pieces before the call, and take it away."""
    values = dict(zip(found.function.entry_block.arguments, found.call.operands, strict=True))
    with ir.InsertionPoint(found.call), found.call.location:
        if starts is not None:
            call = func.CallOp(starts, [values[value] for value in _arguments_of(found.others)])
            values.update(zip(found.computed, call.results, strict=True))
        for result, cut in zip(found.call.results, found.cuts, strict=True):
            operands = [values[cut.source], *(values[start.value] for start in cut.data)]
            attributes = {PART: part_attribute(_part(cut))}
            piece = ir.Operation.create(PIECE, [result.type], operands, attributes)
            result.replace_all_uses_with(piece.results[0])
    found.call.erase()


def _part(cut: Cut) -> Part:
    starts = (
        PartStart(ir.IntegerType(element_type_of(start.value)).width, start.element, start.most, start.step * cut.width)
        for start in cut.data
    )
    return Part(cut.offset * cut.width, tuple(starts))


__all__ = ["view_pieces"]
