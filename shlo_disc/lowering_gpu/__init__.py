# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stage `kernels` for NVIDIA GPUs: every fusion becomes one gpu.func of one gpu.module.

The plan is the one that the CPU lowering takes. There is one schedule for each kind of fusion: a thread an element for
loops, a block a row for row reductions.
"""

from __future__ import annotations

from shlo_disc.errors import Unsupported, UnsupportedError
from shlo_disc.lowering.index_rules import INDEX_RULES
from shlo_disc.lowering.kernel_module import copied
from shlo_disc.lowering.kernels import Kernel, KernelCache, OutputBuffers, has_rows
from shlo_disc.lowering.loop_kernel import build_loop
from shlo_disc.lowering_gpu.kernel import THREADS, GpuFrame
from shlo_disc.lowering_gpu.nvvm import device_module, lower_to_nvvm, nvvm_to_llvm_ir
from shlo_disc.lowering_gpu.row_kernel import build_rows
from shlo_disc.mlir import func, gpu, ir
from shlo_disc.shape_dialect.dialect.host import KERNEL, KERNELS, ChosenKernel, KernelUse, kernel_attribute
from shlo_disc.shape_dialect.dialect.records import FunctionName
from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.locations import operation_name, source_line
from shlo_disc.shape_dialect.utils.op_sets import ELEMENTWISE
from shlo_disc.shape_dialect.utils.regions import all_blocks, entry_block

MAX_BLOCKS = 2**31 - 1
"""CUDA's limit for the first size of a grid. Kernels have a stride, so fewer blocks than items are enough."""

_LOWERED = (ELEMENTWISE | INDEX_RULES.keys() | {"func.return"}) - {"stablehlo.convolution", "stablehlo.dot_general"}


class _Kernels:
    """The kernels of one planned module."""

    def __init__(self, module: ir.Module, facts: Facts):
        self.source = module
        self.facts = facts
        self.kernels = KernelCache(facts, self.build)
        with ir.InsertionPoint(module.body):
            module.context.get_dialect_descriptor("gpu")  # loads it
            self.device = gpu.GPUModuleOp(KERNELS)
            self.device.regions[0].blocks.append()

    def choose(self, call: ir.OpView, fusion: func.FuncOp) -> None:
        """Write on a call which kernel it is."""
        kernel, meaning = self.kernels.kernel_for(fusion)

        def here(e: Expr) -> Expr:
            return e.substitute(meaning) if meaning else e

        items = here(kernel.total)
        blocks = items if has_rows(fusion) else ceildiv(items, THREADS)
        blocks = self.facts.simplify(Expr.minimum(blocks, MAX_BLOCKS))
        sizes = tuple(here(s) for s in kernel.sizes)
        use = KernelUse(FunctionName(kernel.name), sizes, blocks, Expr.const(1), threads=THREADS)
        call.attributes[KERNEL] = kernel_attribute(ChosenKernel(use))

    def build(self, fusion: func.FuncOp, facts: Facts, name: str, outputs: OutputBuffers) -> Kernel:
        """Emit the kernel of a fusion."""
        frame = GpuFrame(fusion, facts)
        frame.open(self.device, name)
        with ir.InsertionPoint(frame.entry):
            total, cost = build_rows(frame) if has_rows(fusion) else build_loop(frame)
        frame.close()
        return Kernel(name, frame.function, frame.sizes, total, cost)


def build_gpu_kernels(planned: ir.Module, facts: Facts) -> ir.Module:
    """A copy of a planned module, with its kernels. Raises UnsupportedError listing every op that has no GPU kernel."""
    with ir.Location.unknown():
        module = copied(planned)
        functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        ops = [op for block in all_blocks(entry_block(module)) for op in block.operations]
        calls = [op for op in ops if op.operation.name == "func.call"]
        fusions = [functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value] for call in calls]
        _check_supported(fusions)
        kernels = _Kernels(module, facts)
        for call, fusion in zip(calls, fusions, strict=True):
            kernels.choose(call, fusion)
    return module


def _check_supported(fusions: list[func.FuncOp]) -> None:
    found = [
        _unsupported(op)
        for fusion in fusions
        for op in fusion.entry_block.operations
        if op.operation.name not in _LOWERED
    ]
    if found:
        raise UnsupportedError(list(dict.fromkeys(found)))


def _unsupported(op: ir.OpView) -> Unsupported:
    name, label = op.operation.name, operation_name(op.location)
    return Unsupported(
        f"{name} ({label})" if label else name,
        str(element_type_of(op.results[0])) if op.results else "",
        source_line(op.location),
        "this op has no kernel for GPUs",
        "compile with target='cpu', or move it out of the compiled function",
    )


__all__ = ["build_gpu_kernels", "device_module", "lower_to_nvvm", "nvvm_to_llvm_ir"]
