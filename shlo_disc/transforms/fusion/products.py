# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GEMMs with what follows them, and with their neighbours: fusions of fusions, of kind "gemm".

A product is fused with the kernel that alone reads its result: a loop over the same elements, which then reads tiles of
sums before they leave the cache and needs no buffer in between, or a row reduction whose rows are the product's, which
then takes up rows as they are finished. After that, products of one left-hand side (the query, key and value of an
attention) become one, so that its rows are packed once and the threads meet once.

The body of such a fusion calls the fusions it is made of. A loop that reads sums becomes an "epilogue"; a row reduction
says in which result's buffer they lie, and so does an epilogue where a library may make the sums. Where none has their
type, they are one more result of the fusion.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from shlo_disc.shape_dialect.build import view
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import (
    Convolution,
    Dot,
    Epilogue,
    Fusion,
    Gemm,
    Loop,
    RowReduce,
    fusion_of,
    product_of,
    row_kernel_of,
    set_fusion,
)
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.access import is_free
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.views import readers_of, root
from shlo_disc.shape_dialect.utils.convolution import is_canonical
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, is_fixed
from shlo_disc.transforms.convolutions import is_product
from shlo_disc.transforms.decisions import Decisions
from shlo_disc.transforms.fusion.costs import handing_over, reading_once
from shlo_disc.transforms.fusion.product_patterns import (
    EPILOGUES,
    FOLLOWER,
    HORIZONTAL,
    ROW_EPILOGUES,
    ExecutionOrder,
    Following,
    Joining,
    Member,
    OpenGroups,
    writes_rows,
)
from shlo_disc.transforms.fusion.shared_functions import SharedFunctions, redirect


def fuse_products(module: ir.Module, decisions: Decisions) -> None:
    """Fuse products of a fused module with what follows them, in place, as often as `decisions` allow."""
    functions = SharedFunctions(module)
    blocks = list(all_blocks(entry_block(module)))
    _choose_convolutions(functions, [op for block in blocks for op in block.operations])
    for block in blocks:
        _Block(module, block, functions, decisions).run()
    functions.erase_left()


def _choose_convolutions(functions: SharedFunctions, ops: Iterable[ir.OpView]) -> None:
    """Leave the GEMM only to convolutions that are best computed as one; the others have a kernel."""
    for call in (op for op in ops if isinstance(op, func.CallOp)):
        function = functions.by_name[callee_of(call)]
        what = fusion_of(function)
        if not isinstance(what, Convolution) or what.product is None:
            continue
        op = next(iter(function.entry_block.operations))
        if is_canonical(op) and not is_product(op, is_fixed(root(call.operands[1]))):
            redirect(call, functions.described(function, replace(what, product=None)))


class _Block:
    """One block of calls."""

    def __init__(self, module: ir.Module, block: ir.Block, functions: SharedFunctions, decisions: Decisions):
        self.module = module
        self.block = block
        self.functions = functions
        self.decisions = decisions
        self.taken: set[ir.Operation] = set()
        self.schedule = ExecutionOrder(block)

    def run(self) -> None:
        """Find the members, group them by what they multiply, write the fusions."""
        members = []
        for op in self.block.operations:
            found = self._product(op)
            if found is not None:
                members.append(Member(op, found, *self._follower(op, found)))
        for group in self._groups(members):
            if len(group) > 1 or group[0].follower is not None:
                self._write(group)

    def _product(self, call: ir.OpView) -> MatrixProduct | None:
        """The product that a call computes, if it is a product or a convolution as one."""
        fusion = self._callee(call)
        if fusion is None or (policy().has_library_products and not isinstance(fusion_of(fusion), Dot)):
            return None
        return product_of(fusion)

    def _callee(self, op: ir.OpView) -> func.FuncOp | None:
        if op.operation.name != "func.call":
            return None
        return self.functions.by_name[callee_of(op)]

    # ---- epilogues --------------------------------------------------------------------------------------------------

    def _follower(self, call: ir.OpView, product: MatrixProduct) -> tuple[ir.OpView, func.FuncOp] | tuple[None, None]:
        """The call that can be the epilogue of a product, and the fusion that it runs then."""
        found = FOLLOWER.match(self._following, (call.operation, product))
        if found is None:
            return None, None
        if EPILOGUES.match(_loop, found) is not None:
            if not self.decisions.take("epilogue", call, lambda: handing_over(list(call.results))):
                return None, None
            held = found.accumulators if policy().has_library_products else None
            what: Fusion = Epilogue(True, found.argument, product.n.size, held)
        elif not policy().has_library_products and ROW_EPILOGUES.match(_row_kernel, found) is not None:
            if not self.decisions.take("row-epilogue", call, lambda: handing_over(list(call.results))):
                return None, None
            what = replace(row_kernel_of(found.fusion), accumulators=found.accumulators)
        else:
            return None, None
        self.taken.add(found.user)
        return found.user.opview, self.functions.described(found.fusion, what)

    def _following(self, subject: tuple[ir.Operation, MatrixProduct]) -> Following | None:
        """The first reader of a product, if it is a fusion that nothing else has been joined with."""
        call, product = subject
        readers = tuple(readers_of(call.results[0]))
        if not readers:
            return None
        user, argument = readers[0]
        fusion = self._callee(user.opview)
        if fusion is None or user in self.taken or not isinstance(fusion_of(fusion), Loop | RowReduce):
            return None
        return Following(call, product, readers, user, argument, fusion)

    # ---- one left-hand side -----------------------------------------------------------------------------------------

    def _groups(self, members: Sequence[Member]) -> list[list[Member]]:
        """Members that can be one call, each list in program order."""
        groups = OpenGroups(self.schedule, policy().horizontal_gemms)
        for member in members:
            group = next((g for g in groups.candidates(member) if self._fits(member, g)), None)
            once = partial(reading_once, member.left)
            if group is None or not self.decisions.take("horizontal-gemm", member.call, once):
                group = groups.begin(member)
            else:
                groups.add(member, group)
            self.schedule.move(member.operations(), self.schedule.position(group[0].last.operation))
        return groups.all

    def _fits(self, member: Member, group: Sequence[Member]) -> bool:
        return HORIZONTAL.match(lambda m: Joining(m, tuple(group), self.schedule), member) is not None

    # ---- writing ----------------------------------------------------------------------------------------------------

    def _write(self, group: Sequence[Member]) -> None:
        """One fusion and its call, where the first member ends."""
        inputs = list(dict.fromkeys(root(v) for member in group for v in member.outer_operands()))
        outputs = [result for member in group for result in member.last.results]
        with group[0].last.location:
            function = self.functions.once(self._key(group, inputs), lambda: self._function(group, inputs))
            with ir.InsertionPoint(group[0].last):
                call = func.CallOp(function, inputs)
        for old, new in zip(outputs, list(call.results)[: len(outputs)], strict=True):
            old.replace_all_uses_with(new)
        for member in group:
            for op in (member.follower, member.call):
                if op is not None:
                    _erase(op)

    def _key(self, group: Sequence[Member], inputs: Sequence[ir.Value]) -> Hashable:
        """All that the fusion of a group follows from: what its calls run, and what they read."""
        numbers = {value: number for number, value in enumerate(inputs)}
        calls = []
        for member in group:
            numbers[member.call.results[0]] = len(numbers)
            for call, function in member.calls(self._callee(member.call)):
                calls.append((function.name.value, tuple((numbers[root(v)], v.type) for v in call.operands)))
        line = self.functions.line(group[0].last.location)
        return Gemm.kind, line, tuple(v.type for v in inputs), tuple(calls)

    def _function(self, group: Sequence[Member], inputs: Sequence[ir.Value]) -> func.FuncOp:
        """The fusion of a group."""
        outputs = [result for member in group for result in member.last.results]
        sums = [member.call.results[0] for member in group if member.needs_room]
        name = self.functions.unique(f"{Gemm.kind}_{callee_of(group[0].call).removeprefix('dot_')}")
        with ir.InsertionPoint(self.module.body):
            type_ = ir.FunctionType.get([v.type for v in inputs], [v.type for v in (*outputs, *sums)])
            function = func.FuncOp(name, type_, visibility="private")
        set_fusion(function, Gemm())
        block = function.add_entry_block()
        known = dict(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            copies = [self._copy(member, known) for member in group]
            rooms = [c[0].results[0] for c, member in zip(copies, group, strict=True) if member.needs_room]
            func.ReturnOp([*(result for copied in copies for result in copied[-1].results), *rooms])
        return function

    def _copy(self, member: Member, known: Mapping[ir.Value, ir.Value]) -> list[func.CallOp]:
        """The member's calls at the insertion point, over other values."""
        inside = dict(known)
        copies: list[func.CallOp] = []
        for call, function in member.calls(self._callee(member.call)):
            operands = [view(inside[root(v)], dims_of(v)) for v in call.operands]
            copies.append(func.CallOp(function, operands))
            inside |= dict(zip(call.results, copies[-1].results, strict=True))
        return copies


def _loop(found: Following) -> Following | None:
    return found if isinstance(fusion_of(found.fusion), Loop) else None


def _row_kernel(found: Following) -> Following | None:
    return found if isinstance(fusion_of(found.fusion), RowReduce) and writes_rows(found) else None


def _erase(op: ir.OpView) -> None:
    """Erase a call that nobody reads, with the views of its result."""
    for result in op.results:
        for use in list(result.uses):
            if is_free(use.owner.operation):
                _erase(use.owner.operation.opview)
    op.operation.erase()
