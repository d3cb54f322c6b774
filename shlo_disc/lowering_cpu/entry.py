# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entry points of kernels: one uniform C signature, unpacking words into memrefs and sizes."""

from __future__ import annotations

from collections.abc import Mapping

from shlo_disc.lowering_cpu.kernel import Frame, memref_type
from shlo_disc.lowering_cpu.llvm_writer import LlvmWriter
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.symbolic.expr import Expr


def write_entry(frame: Frame, name: str) -> str:
    """The text of `@<name>_entry(%args, %begin, %end)`: `void (const int64_t*, int64_t, int64_t)`."""
    writer = _EntryWriter()
    values = [*frame.inputs, *frame.outputs]
    pointers = [writer.word(i, "!llvm.ptr") for i in range(len(values))]
    sizes = {s: writer.word(len(values) + i, "i64") for i, s in enumerate(frame.sizes)}
    memrefs = [writer.descriptor(p, dims_of(v), memref_type(v), sizes) for p, v in zip(pointers, values, strict=True)]
    indices = [writer.cast(v, "i64", "index") for v in ("%begin", "%end", *sizes.values())]
    types = [*(str(memref_type(v)) for v in values), *("index" for _ in indices)]
    operands = ", ".join([*memrefs, *indices])
    writer.lines.append(f"  func.call @{name}({operands}) : ({', '.join(types)}) -> ()")
    body = "\n".join(writer.lines)
    return f"llvm.func @{name}_entry(%args: !llvm.ptr, %begin: i64, %end: i64) {{\n{body}\n  llvm.return\n}}"


class _EntryWriter(LlvmWriter):
    def word(self, index: int, type_: str) -> str:
        address = self.op(f"llvm.getelementptr %args[{index}] : (!llvm.ptr) -> !llvm.ptr, i64")
        return self.op(f"llvm.load {address} : !llvm.ptr -> {type_}")

    def cast(self, value: str, source: str, target: str) -> str:
        return self.op(f"builtin.unrealized_conversion_cast {value} : {source} to {target}")

    def descriptor(self, pointer: str, dims: Dims, type_: ir.MemRefType, sizes: Mapping[Expr, str]) -> str:
        """A memref over a raw pointer: contiguous, so strides are products of sizes."""
        rank = len(dims)
        arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
        struct = f"!llvm.struct<(ptr, ptr, i64{arrays})>"
        value = self.op(f"llvm.mlir.undef : {struct}")
        for field, source in (("0", pointer), ("1", pointer), ("2", self.constant(0))):
            value = self.op(f"llvm.insertvalue {source}, {value}[{field}] : {struct}")
        stride = self.constant(1)
        for axis in reversed(range(rank)):
            constant = dims[axis].constant
            size = sizes[dims[axis]] if constant is None else self.constant(constant)
            value = self.op(f"llvm.insertvalue {size}, {value}[3, {axis}] : {struct}")
            value = self.op(f"llvm.insertvalue {stride}, {value}[4, {axis}] : {struct}")
            if axis:
                stride = self.op(f"llvm.mul {stride}, {size} : i64")
        return self.cast(value, struct, str(type_))
