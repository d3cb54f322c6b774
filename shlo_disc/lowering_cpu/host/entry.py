# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entry points of kernels: one uniform C signature, unpacking words into memrefs and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shlo_disc.lowering.host_llvm.builder import Function, LlvmDialect
from shlo_disc.lowering_cpu.host.blocks import entry_name
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.dialect.host import DYNAMIC_DIMS
from shlo_disc.shape_dialect.mlir import func, ir

INLINED_OPS = 150
"""A kernel of one work item becomes a part of a host program with branches up to so many ops. In a function that has
all kernels of a program in it, LLVM takes longer for each of them, and a call costs them nothing."""


def build_entry(dialect: LlvmDialect, kernel: func.FuncOp) -> ir.Operation:
    """`@<kernel>_entry(args, begin, end)`: `void (const int64_t*, int64_t, int64_t)`."""
    function = dialect.function(entry_name(kernel.name.value), dialect.parameters(abi.KERNEL))
    if not _is_short(kernel):
        function.pass_through("noinline")
    types = list(kernel.type.inputs)
    memrefs = [ir.MemRefType(type_) for type_ in types if isinstance(type_, ir.MemRefType)]
    entry = _Entry(function)
    pointers = [entry.word(i, dialect.pointer) for i in range(len(memrefs))]
    sizes = [entry.word(i, dialect.i64) for i in range(len(memrefs), len(types) - 2)]
    dynamic = iter(sizes[i] for i in ir.DenseI64ArrayAttr(kernel.attributes[DYNAMIC_DIMS]))
    buffers = [entry.descriptor(p, type_, dynamic) for p, type_ in zip(pointers, memrefs, strict=True)]
    indices = [entry.cast(v, ir.IndexType.get()) for v in (entry.begin, entry.end, *sizes)]
    callee: dict[str, ir.Attribute] = {"callee": ir.FlatSymbolRefAttr.get(kernel.name.value)}
    function.body.op("func.call", (), [*buffers, *indices], callee)
    function.body.return_()
    return function.op


def _is_short(kernel: func.FuncOp) -> bool:
    """Tells whether a kernel has at most `INLINED_OPS` ops."""
    count = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE if count <= INLINED_OPS else ir.WalkResult.INTERRUPT

    kernel.operation.walk(visit)
    return count <= INLINED_OPS


class _Entry:
    """The body of an entry point."""

    def __init__(self, function: Function):
        self.body = function.body
        self.arguments, self.begin, self.end = function.arguments

    def word(self, index: int, type_: ir.Type) -> ir.Value:
        return self.body.load(self.body.gep(self.arguments, index, self.body.dialect.i64), type_)

    def cast(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        return self.body.op("builtin.unrealized_conversion_cast", [type_], [value]).result

    def descriptor(self, pointer: ir.Value, type_: ir.MemRefType, dynamic: Iterator[ir.Value]) -> ir.Value:
        """A memref over a raw pointer: contiguous, so strides are products of sizes. `dynamic` has the next ones."""
        body, rank = self.body, type_.rank
        value = body.undefined(body.dialect.descriptor(rank))
        for field, source in enumerate((pointer, pointer, body.constant(0))):
            value = body.insert(source, value, field)
        stride = body.constant(1)
        sizes: Sequence[ir.Value | None] = [
            next(dynamic) if type_.is_dynamic_dim(axis) else None for axis in range(rank)
        ]
        for axis in reversed(range(rank)):
            size = sizes[axis] or body.constant(type_.shape[axis])
            value = body.insert(size, value, 3, axis)
            value = body.insert(stride, value, 4, axis)
            if axis:
                stride = body.arithmetic("mul", stride, size)
        return self.cast(value, type_)
