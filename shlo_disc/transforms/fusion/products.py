# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with what follows them, and with their neighbours: fusions of fusions, of kind "product".

A product takes along the kernel that alone reads its result: a loop over the same elements, which then reads tiles of
sums before they leave the cache and needs no buffer in between, or a row reduction whose rows are the product's, which
then takes up rows as they are finished. After that, products of one left-hand side (the query, key and value of an
attention) become one, so that its rows are packed once and the threads meet once.

The body of such a fusion calls the fusions it is made of. A loop that reads sums has the kind "epilogue" and says which
argument they are and how long a row is; a row reduction says which result has room for them. Where none has their type,
they are one more result of the fusion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.annotate import entry_block
from shlo_disc.shape_dialect.dialect import integer_attr
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.regions import all_blocks, terminator_of
from shlo_disc.shape_dialect.types import dims_attr, dims_of, product
from shlo_disc.transforms.convolutions import is_fixed, is_product
from shlo_disc.transforms.fusion.access import defining_op, is_free
from shlo_disc.transforms.fusion.budget import Budget
from shlo_disc.transforms.fusion.convolution_product import match_convolution
from shlo_disc.transforms.fusion.matrix_product import MatrixProduct, match_product
from shlo_disc.transforms.views import VIEWS, root, view

PRODUCT = "product"
"""The kind of a fusion of products with their epilogues."""

EPILOGUE = "epilogue"
"""The kind of a loop that reads tiles of sums."""

SUMS = "disc.sums"
"""Of an epilogue: the argument that is the product's result. Of a row reduction: the result with room for it, or -1."""

ROW = "disc.row"
"""Of an epilogue: the number of elements of a row of the product."""

MOST_PRODUCTS = 8
"""Products of one left-hand side that are worked on together, as in runtime/native/gemm.h."""


@dataclass
class _Member:
    """A product's call, and that of its epilogue."""

    call: ir.OpView
    product: MatrixProduct
    follower: ir.OpView | None = None
    needs_room: bool = False
    """Whether no result has room for the sums."""

    @property
    def last(self) -> ir.OpView:
        """The call whose results are the member's."""
        return self.call if self.follower is None else self.follower

    @property
    def left(self) -> ir.Value:
        """The left-hand side."""
        return self.call.operands[self.product.lhs]

    @property
    def is_convolution(self) -> bool:
        """The rows of the left-hand side are windows."""
        return self.product.m.lhs.constant == self.product.k.lhs.constant == 0

    def outer_operands(self) -> Iterator[ir.Value]:
        """What comes from outside."""
        yield from self.call.operands
        if self.follower is not None:
            yield from (v for v in self.follower.operands if root(v) != self.call.results[0])


def fuse_products(module: ir.Module, budget: Budget) -> None:
    """Fuse products of a fused module with what follows them, in place, as often as the budget allows."""
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    for block in list(all_blocks(entry_block(module))):
        _Block(module, block, functions, budget).run()


class _Block:
    """One block of calls."""

    def __init__(self, module: ir.Module, block: ir.Block, functions: Mapping[str, func.FuncOp], budget: Budget):
        self.module = module
        self.block = block
        self.functions = functions
        self.budget = budget
        self.taken: list[ir.OpView] = []
        self.positions = {op.operation: i for i, op in enumerate(block.operations)}

    def run(self) -> None:
        """Find the members, group them by what they multiply, write the fusions."""
        members = []
        for op in self.block.operations:
            found = self._product(op)
            if found is not None:
                follower = self._follower(op, found)
                members.append(_Member(op, found, follower, self._needs_room(follower)))
        for group in self._groups(members):
            if len(group) > 1 or group[0].follower is not None:
                self._write(group)

    def _product(self, call: ir.OpView) -> MatrixProduct | None:
        """The product that a call computes, if it is a product or a convolution as one."""
        fusion = self._callee(call)
        if fusion is None or _kind(fusion) not in ("dot", "convolution"):
            return None
        if _kind(fusion) == "dot":
            return match_product(fusion)
        found = match_convolution(fusion)
        op = next(iter(fusion.entry_block.operations))
        return found.product if found is not None and is_product(op, is_fixed(root(call.operands[1]))) else None

    def _callee(self, op: ir.OpView) -> func.FuncOp | None:
        if op.operation.name != "func.call":
            return None
        return self.functions.get(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)

    # ---- epilogues --------------------------------------------------------------------------------------------------

    def _follower(self, call: ir.OpView, found: MatrixProduct) -> ir.OpView | None:
        """The call that can be the epilogue of a product."""
        readers = list(readers_of(call.results[0]))
        if len(readers) != 1 or not found.is_row_major:
            return None
        user, number = readers[0]
        fusion = self._callee(user.opview)
        if fusion is None or user.block != self.block or "disc.collapsed" not in fusion.attributes:
            return None
        if user.opview in self.taken:
            return None
        argument = fusion.entry_block.arguments[number]
        if _kind(fusion) == "loop" and _is_tiled(fusion, argument, found) and self.budget.take():
            fusion.attributes["disc.kind"] = ir.StringAttr.get(EPILOGUE)
            fusion.attributes[SUMS] = integer_attr(number)
            fusion.attributes[ROW] = dims_attr([found.n.size])
            self.taken.append(user.opview)
            return user.opview
        room = _room_for_rows(fusion, argument, found) if _kind(fusion) == "row_reduce" else None
        if room is None or not self.budget.take():
            return None
        fusion.attributes[SUMS] = integer_attr(room)
        self.taken.append(user.opview)
        return user.opview

    def _needs_room(self, follower: ir.OpView | None) -> bool:
        fusion = None if follower is None else self._callee(follower)
        return fusion is not None and ir.IntegerAttr(fusion.attributes[SUMS]).value < 0

    # ---- one left-hand side -----------------------------------------------------------------------------------------

    def _groups(self, members: Sequence[_Member]) -> list[list[_Member]]:
        """Members that can be one call, each list in program order."""
        groups: list[list[_Member]] = []
        for member in members:
            fitting = (g for g in groups if len(g) < MOST_PRODUCTS and self._fits(member, g))
            group = next(fitting, None)
            if group is None or not self.budget.take():
                groups.append([member])
            else:
                group.append(member)
        return groups

    def _fits(self, member: _Member, group: Sequence[_Member]) -> bool:
        """Whether a product packs the rows that a group packs, and can be computed where the group's first ends."""
        first = group[0]
        if member.product.writes_columns or first.product.writes_columns:
            return False  # by itself it may be computed as its transpose
        if member.is_convolution or first.is_convolution:
            return False
        if root(member.left) != root(first.left) or _rows_of(member.product) != _rows_of(first.product):
            return False
        place = self._position(first.last)
        own = [op.operation for other in group for op in (other.call, other.last)]
        return all(self._is_known_at(place, value, own) for value in member.outer_operands()) and all(
            self._position(user) > place for result in member.last.results for user in self._users(result)
        )

    def _is_known_at(self, place: int, value: ir.Value, own: Sequence[ir.Operation]) -> bool:
        """Whether a value is there before a place, and is not computed at it."""
        op = defining_op(root(value))
        return op is None or op.block != self.block or (op not in own and self._position(op) < place)

    def _users(self, value: ir.Value) -> Iterator[ir.Operation]:
        """The ops of this block in which, or in whose regions, a value is read."""
        for use in value.uses:
            user = use.owner.operation
            while user.block != self.block:
                user = user.parent.operation
            yield user

    def _position(self, op: ir.OpView | ir.Operation) -> int:
        return self.positions[op.operation]

    # ---- writing ----------------------------------------------------------------------------------------------------

    def _write(self, group: Sequence[_Member]) -> None:
        """One fusion and its call, where the first member ends."""
        values = [v for member in group for v in member.outer_operands()]
        inputs = list(dict.fromkeys(map(root, values)))
        outputs = [result for member in group for result in member.last.results]
        sums = [member.call.results[0] for member in group if member.needs_room]
        number = ir.FlatSymbolRefAttr(group[0].call.attributes["callee"]).value.removeprefix("dot_")
        anchor = group[0].last
        with anchor.location:
            with ir.InsertionPoint(self.module.body):
                type_ = ir.FunctionType.get([v.type for v in inputs], [v.type for v in (*outputs, *sums)])
                function = func.FuncOp(f"{PRODUCT}_{number}", type_, visibility="private")
            function.attributes["disc.kind"] = ir.StringAttr.get(PRODUCT)
            block = function.add_entry_block()
            known = dict(zip(inputs, block.arguments, strict=True))
            with ir.InsertionPoint(block):
                copies = [self._copy(member, known) for member in group]
                rooms = [c[0].results[0] for c, member in zip(copies, group, strict=True) if member.needs_room]
                func.ReturnOp([*(result for copied in copies for result in copied[-1].results), *rooms])
            with ir.InsertionPoint(anchor):
                call = func.CallOp(function, inputs)
        for old, new in zip(outputs, list(call.results)[: len(outputs)], strict=True):
            old.replace_all_uses_with(new)
        for member in group:
            for op in (member.follower, member.call):
                if op is not None:
                    _erase(op)

    def _copy(self, member: _Member, known: Mapping[ir.Value, ir.Value]) -> list[func.CallOp]:
        """The member's calls at the insertion point, over other values."""
        inside = dict(known)
        copies: list[func.CallOp] = []
        for call in (member.call, member.follower):
            if call is None:
                break
            operands = [view(inside[root(v)], dims_of(v)) for v in call.operands]
            copies.append(func.CallOp(self._callee(call), operands))
            inside |= dict(zip(call.results, copies[-1].results, strict=True))
        return copies


def readers_of(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """The ops, and their operand numbers, that read a value, through views."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in VIEWS:
            yield from readers_of(user.results[0])
        else:
            yield user, use.operand_number


def _is_tiled(fusion: func.FuncOp, argument: ir.Value, found: MatrixProduct) -> bool:
    """Whether every result of a loop is computed at the element where it reads the product, row by row."""
    domain = dims_of(argument)
    results = terminator_of(fusion.entry_block).operands
    lies_in_rows = len(domain) == 1 or (len(domain) > 1 and domain[-1] == found.n.size)
    return lies_in_rows and all(dims_of(v) == domain for v in results)


def _room_for_rows(fusion: func.FuncOp, argument: ir.Value, found: MatrixProduct) -> int | None:
    """The result of a row reduction over the rows of a product that has the product's type, -1 if only its sizes."""
    if "disc.columns" not in fusion.attributes:
        return None
    columns = ir.IntegerAttr(fusion.attributes["disc.columns"]).value
    domain = dims_of(argument)
    if product(domain[-columns:]) != found.n.size or product(domain[:-columns]) != found.rows:
        return None
    results = list(terminator_of(fusion.entry_block).operands)
    types = [v.type for v in results]
    if argument.type in types:
        return types.index(argument.type)
    return -1 if any(dims_of(v) == domain for v in results) else None


def _rows_of(found: MatrixProduct) -> tuple[str | Expr, ...]:
    """How the left-hand side of a product is read."""
    batch = [expr for axis in found.batch for expr in (axis.size, axis.lhs)]
    return (found.element, *batch, found.m.size, found.m.lhs, found.k.size, found.k.lhs)


def _erase(op: ir.OpView) -> None:
    """Erase a call that nobody reads, with the views of its result."""
    for result in op.results:
        for use in list(result.uses):
            if is_free(use.owner.operation):
                _erase(use.owner.operation.opview)
    op.operation.erase()


def _kind(fusion: func.FuncOp) -> str:
    return ir.StringAttr(fusion.attributes["disc.kind"]).value
