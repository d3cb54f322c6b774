# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entry points of kernels: one uniform C signature, unpacking words into memrefs and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shlo_disc.lowering_cpu.host.blocks import entry_name
from shlo_disc.lowering_cpu.micro_kernels.llvm_writer import LlvmWriter
from shlo_disc.shape_dialect.dialect.host import DYNAMIC_DIMS
from shlo_disc.shape_dialect.mlir import func, ir

INLINED_OPS = 150
"""A kernel of one work item becomes a part of a host program with branches up to so many ops. In a function that has
all kernels of a program in it, LLVM takes longer for each of them, and a call costs them nothing."""


def write_entry(kernel: func.FuncOp) -> str:
    """The text of `@<kernel>_entry(%args, %begin, %end)`: `void (const int64_t*, int64_t, int64_t)`."""
    name = kernel.name.value
    types = list(kernel.type.inputs)
    memrefs = [ir.MemRefType(type_) for type_ in types if isinstance(type_, ir.MemRefType)]
    writer = _EntryWriter()
    pointers = [writer.word(i, "!llvm.ptr") for i in range(len(memrefs))]
    sizes = [writer.word(i, "i64") for i in range(len(memrefs), len(types) - 2)]
    dynamic = iter(sizes[i] for i in ir.DenseI64ArrayAttr(kernel.attributes[DYNAMIC_DIMS]))
    buffers = [writer.descriptor(p, type_, dynamic) for p, type_ in zip(pointers, memrefs, strict=True)]
    indices = [writer.cast(v, "i64", "index") for v in ("%begin", "%end", *sizes)]
    operands = ", ".join([*buffers, *indices])
    writer.lines.append(f"  func.call @{name}({operands}) : ({', '.join(map(str, types))}) -> ()")
    body = "\n".join(writer.lines)
    attributes = "" if _is_short(kernel) else 'attributes {passthrough = ["noinline"]} '
    arguments = "%args: !llvm.ptr, %begin: i64, %end: i64"
    return f"llvm.func @{entry_name(name)}({arguments}) {attributes}{{\n{body}\n  llvm.return\n}}"


def _is_short(kernel: func.FuncOp) -> bool:
    """Tells whether a kernel has at most `INLINED_OPS` ops."""
    count = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE if count <= INLINED_OPS else ir.WalkResult.INTERRUPT

    kernel.operation.walk(visit)
    return count <= INLINED_OPS


class _EntryWriter(LlvmWriter):
    def word(self, index: int, type_: str) -> str:
        address = self.op(f"llvm.getelementptr %args[{index}] : (!llvm.ptr) -> !llvm.ptr, i64")
        return self.op(f"llvm.load {address} : !llvm.ptr -> {type_}")

    def cast(self, value: str, source: str, target: str) -> str:
        return self.op(f"builtin.unrealized_conversion_cast {value} : {source} to {target}")

    def descriptor(self, pointer: str, type_: ir.MemRefType, dynamic: Iterator[str]) -> str:
        """A memref over a raw pointer: contiguous, so strides are products of sizes. `dynamic` has the next ones."""
        rank = type_.rank
        arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
        struct = f"!llvm.struct<(ptr, ptr, i64{arrays})>"
        value = self.op(f"llvm.mlir.undef : {struct}")
        for field, source in (("0", pointer), ("1", pointer), ("2", self.constant(0))):
            value = self.op(f"llvm.insertvalue {source}, {value}[{field}] : {struct}")
        stride = self.constant(1)
        sizes: Sequence[str | None] = [next(dynamic) if type_.is_dynamic_dim(axis) else None for axis in range(rank)]
        for axis in reversed(range(rank)):
            size = sizes[axis] or self.constant(type_.shape[axis])
            value = self.op(f"llvm.insertvalue {size}, {value}[3, {axis}] : {struct}")
            value = self.op(f"llvm.insertvalue {stride}, {value}[4, {axis}] : {struct}")
            if axis:
                stride = self.op(f"llvm.mul {stride}, {size} : i64")
        return self.cast(value, struct, str(type_))
