# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The conditions under which a product is joined with the kernel that reads it, or with other products."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.fusion import accumulators_of, columns_of, fusion_of
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import terminator_of
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.fusion.in_place import may_write_where

# ---- a product and the kernel that reads it -------------------------------------------------------------------------

FOLLOWER = Pattern["Following"]("gemm-follower", "one kernel reads a product, which can hand its sums over to it")
EPILOGUES = Pattern["Following"]("epilogue", "a loop reads tiles of sums before they leave the cache")
ROW_EPILOGUES = Pattern["Following"]("row-epilogue", "a row kernel takes up rows of sums as they are finished")


@dataclass(frozen=True)
class Following:
    """The product of `call`, all that reads it, and its first reader: `argument` of `fusion`, which `user` runs."""

    call: ir.Operation
    product: MatrixProduct
    readers: tuple[tuple[ir.Operation, int], ...]
    user: ir.Operation
    argument: int
    fusion: func.FuncOp

    @property
    def sums(self) -> ir.Value:
        """The product's result in the kernel."""
        return self.fusion.entry_block.arguments[self.argument]

    @property
    def domain(self) -> Dims:
        """Its sizes there."""
        return dims_of(self.sums)

    @property
    def outputs(self) -> list[ir.Value]:
        """The kernel's results."""
        return list(terminator_of(self.fusion.entry_block).operands)

    @property
    def columns(self) -> int:
        """The number of last axes that a row kernel reduces along; 0 for a loop."""
        return columns_of(self.fusion)

    @property
    def accumulators(self) -> int:
        """The result of the kernel where the sums may lie until it is written; -1 if they need a buffer."""
        places = range(len(self.outputs))
        return next((i for i in places if may_write_where(self.fusion, self.argument, i)), -1)


@FOLLOWER.requires("one operand of one kernel reads the product, and nothing else")
def _one_reader(found: Following) -> bool:
    return len(found.readers) == 1


@FOLLOWER.requires("the kernel runs as often as the product: in the same block")
def _same_block(found: Following) -> bool:
    return found.user.block == found.call.block


@FOLLOWER.requires("the sums lie in the order of rows, so that those of a tile are rows of the kernel's argument")
def _row_major(found: Following) -> bool:
    return found.product.is_row_major


@FOLLOWER.requires("the kernel reads everything along its own axes")
def _collapsed(found: Following) -> bool:
    return fusion_of(found.fusion).collapsed


@EPILOGUES.requires("every result is computed at the element where it reads the sums")
def _reads_own_element(found: Following) -> bool:
    return all(dims_of(v) == found.domain for v in found.outputs)


@EPILOGUES.requires("the last axis of the loop is a row of the product, or the only one holds all its elements")
def _rows_are_known(found: Following) -> bool:
    return len(found.domain) == 1 or (len(found.domain) > 1 and found.domain[-1] == found.product.n.size)


@ROW_EPILOGUES.requires("the kernel walks rows: everything that it reduces runs along the same columns")
def _walks_rows(found: Following) -> bool:
    return found.columns > 0


@ROW_EPILOGUES.requires("the sums run along the rows and the columns of the kernel")
def _full(found: Following) -> bool:
    values = (v for op in found.fusion.entry_block.operations for v in (*op.operands, *op.results))
    return len(found.domain) == max(len(dims_of(v)) for v in values)


@ROW_EPILOGUES.requires("the kernel's columns are a row of the product")
def _columns_are_rows_of_the_product(found: Following) -> bool:
    return product(found.domain[-found.columns :]) == found.product.n.size


@ROW_EPILOGUES.requires("it has as many rows, which those of a product without elements do not tell")
def _rows_are_as_many(found: Following) -> bool:
    return product(found.domain[: -found.columns]) == found.product.rows


def writes_rows(found: Following) -> bool:
    """Tells whether a row kernel writes as much as it reads: if it only reduces, the sums need a buffer anyway."""
    return any(dims_of(v) == found.domain for v in found.outputs)


@dataclass
class Member:
    """A product's call, and that of its epilogue, which is going to run the fusion `epilogue`."""

    call: ir.OpView
    product: MatrixProduct
    follower: ir.OpView | None = None
    epilogue: func.FuncOp | None = None

    @property
    def needs_room(self) -> bool:
        """True if no result can hold the accumulators."""
        return self.epilogue is not None and accumulators_of(self.epilogue) == -1

    @property
    def last(self) -> ir.OpView:
        """The call whose results are the member's."""
        return self.call if self.follower is None else self.follower

    def calls(self, product: func.FuncOp) -> Iterator[tuple[ir.OpView, func.FuncOp]]:
        """The member's calls, and the fusions that they run. product: that of the first."""
        yield self.call, product
        if self.follower is not None and self.epilogue is not None:
            yield self.follower, self.epilogue

    @property
    def left(self) -> ir.Value:
        """The left-hand side."""
        return self.call.operands[self.product.lhs]

    def operations(self) -> list[ir.Operation]:
        """The product and its epilogue."""
        return [op.operation for op in (self.call, self.follower) if op is not None]

    @property
    def is_convolution(self) -> bool:
        """The rows of the left-hand side are windows."""
        return self.product.m.lhs.constant == self.product.k.lhs.constant == 0

    def outer_operands(self) -> Iterator[ir.Value]:
        """The values that come from outside."""
        yield from self.call.operands
        if self.follower is not None:
            yield from (v for v in self.follower.operands if root(v) != self.call.results[0])


# ---- products of one left-hand side ---------------------------------------------------------------------------------


class ExecutionOrder:
    """The order in which a block's ops run: their own, but for those that a fusion has brought forward or put off."""

    def __init__(self, block: ir.Block):
        self.block = block
        self._positions = {op.operation: i for i, op in enumerate(block.operations)}

    def position(self, op: ir.Operation) -> int:
        """The position at which an op of the block runs."""
        return self._positions[op]

    def move(self, ops: Iterable[ir.Operation], position: int) -> None:
        """Have ops run with the one at `position`."""
        self._positions.update(dict.fromkeys(ops, position))

    def users(self, value: ir.Value) -> Iterator[int]:
        """The positions at which the ops run that read a value, themselves or in regions of theirs."""
        for use in value.uses:
            user = use.owner.operation
            while user.block != self.block:
                user = user.parent.operation
            yield self.position(user)

    def known_at(self, value: ir.Value) -> int:
        """The position at which a value is made; -1 for one that the block begins with."""
        op = defining_op(root(value))
        return -1 if op is None or op.block != self.block else self.position(op)


class OpenGroups:
    """Groups of products that one more may join, by the buffer that they read on the left and by when they run.

    A product is compared with those groups alone that read its left-hand side and run when all its operands are there.
    """

    def __init__(self, schedule: ExecutionOrder, most: int):
        """`most`: how many products a group has at the most."""
        self.all: list[list[Member]] = []
        self._schedule = schedule
        self._most = most
        self._open: dict[ir.Value, list[tuple[int, int]]] = {}

    def candidates(self, member: Member) -> Iterator[list[Member]]:
        """The groups that a product may join if the pattern's conditions hold, the first that was begun first."""
        open_groups = self._open.get(root(member.left), [])
        known = max((self._schedule.known_at(v) for v in member.outer_operands()), default=-1)
        later = open_groups[bisect_left(open_groups, (known + 1, 0)) :]
        return (self.all[number] for _, number in sorted(later, key=lambda entry: entry[1]))

    def begin(self, member: Member) -> list[Member]:
        """Begin a group, which runs when its first member ends."""
        place = self._schedule.position(member.last.operation)
        self.all.append([member])
        if self._most > 1:
            insort(self._open.setdefault(root(member.left), []), (place, len(self.all) - 1))
        return self.all[-1]

    def add(self, member: Member, group: list[Member]) -> None:
        """Have a product join a group."""
        group.append(member)
        if len(group) == self._most:
            open_groups = self._open[root(group[0].left)]
            open_groups[:] = [(place, number) for place, number in open_groups if self.all[number] is not group]


HORIZONTAL = Pattern["Joining"]("horizontal-gemm", "products of one left-hand side are computed together")


@dataclass(frozen=True)
class Joining:
    """A product that would be computed together with a group of `OpenGroups.candidates`, when its first member ends."""

    member: Member
    group: tuple[Member, ...]
    schedule: ExecutionOrder

    @property
    def first(self) -> Member:
        """The product whose place the group takes."""
        return self.group[0]

    @property
    def place(self) -> int:
        """The position at which the group runs."""
        return self.schedule.position(self.first.last.operation)


@HORIZONTAL.requires("neither is a convolution, whose rows are gathered")
def _no_convolutions(found: Joining) -> bool:
    return not found.member.is_convolution and not found.first.is_convolution


@HORIZONTAL.requires("neither writes columns, for by itself it may be computed as its transpose")
def _writes_rows(found: Joining) -> bool:
    return not found.member.product.writes_columns and not found.first.product.writes_columns


@HORIZONTAL.requires("both read the same rows of it, in the same way")
def _same_rows(found: Joining) -> bool:
    return _rows_of(found.member.product) == _rows_of(found.first.product)


@HORIZONTAL.requires("all that reads its results runs after the group")
def _read_afterwards(found: Joining) -> bool:
    return all(p > found.place for result in found.member.last.results for p in found.schedule.users(result))


def _rows_of(found: MatrixProduct) -> tuple[str | Expr, ...]:
    """The access pattern of a product's left-hand side."""
    batch = [expr for axis in found.batch for expr in (axis.size, axis.lhs)]
    return (found.element, *batch, found.m.size, found.m.lhs, found.k.size, found.k.lhs)
