# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `lower` stage for NVIDIA GPUs: every fusion becomes one gpu.func of one gpu.module.

The plan is the one that the CPU lowering takes. There is one schedule for each kind of fusion: a thread an element for
loops, a block a row for row reductions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shlo_disc.errors import CompilerError, Unsupported, UnsupportedError
from shlo_disc.lowering.index_rules import INDEX_RULES
from shlo_disc.lowering.kernels import Kernel, KernelCache, OutputBuffers, has_rows, op_cost
from shlo_disc.lowering_gpu.kernel import THREADS, Frame
from shlo_disc.lowering_gpu.loop_kernel import build_loop
from shlo_disc.lowering_gpu.nvvm import lower_to_nvvm, nvvm_to_llvm_ir
from shlo_disc.lowering_gpu.row_kernel import build_rows
from shlo_disc.mlir import func, gpu, ir
from shlo_disc.shape_dialect.dialect.fusion import kind_of
from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.locations import operation_name, source_line
from shlo_disc.shape_dialect.utils.op_sets import CONTROL, ELEMENTWISE
from shlo_disc.shape_dialect.utils.regions import entry_block

MAX_BLOCKS = 2**31 - 1
"""CUDA's limit for the first size of a grid. Kernels have a stride, so fewer blocks than items are enough."""

_LOWERED = (ELEMENTWISE | INDEX_RULES.keys() | {"func.return"}) - {"stablehlo.convolution", "stablehlo.dot_general"}


@dataclass(frozen=True)
class GpuLaunch:
    """One launch: the kernel's name, the kind of its fusion, and expressions of the program's symbols.

    blocks: the grid's size; nothing is launched where it is 0. threads: the block's size. sizes: the kernel's
    arguments after its pointers, which are the fusion's inputs, then its outputs.
    """

    name: str
    kind: str
    blocks: Expr
    threads: int
    sizes: tuple[Expr, ...]


@dataclass
class GpuLoweredProgram:
    """A module with the kernels, and the launches of a call in order."""

    module: ir.Module
    launches: list[GpuLaunch] = field(default_factory=list)


class GpuLowering:
    """Lowers one planned module."""

    def __init__(self, module: ir.Module, facts: Facts):
        self.source = module
        self.facts = facts
        self.kernels = KernelCache(facts, self.build_kernel)
        self.target = ir.Module.create()
        self.target.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        with ir.InsertionPoint(self.target.body):
            self.device = gpu.GPUModuleOp("kernels")
            self.device.regions[0].blocks.append()

    def calls(self) -> list[func.FuncOp]:
        """The fusion of each call of the entry function, in order; the parts of those that are made of others."""
        functions = {op.name.value: op for op in self.source.body.operations if isinstance(op, func.FuncOp)}

        def called(block: ir.Block) -> list[func.FuncOp]:
            calls = [op for op in block.operations if op.operation.name == "func.call"]
            return [functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value] for call in calls]

        fusions = called(entry_block(self.source))
        return [part for fusion in fusions for part in called(fusion.entry_block) or [fusion]]

    def launch(self, fusion: func.FuncOp) -> GpuLaunch:
        """The launch of a fusion's kernel."""
        kernel, meaning = self.kernels.kernel_for(fusion)

        def here(e: Expr) -> Expr:
            return e.substitute(meaning) if meaning else e

        items = here(kernel.total)
        blocks = items if has_rows(fusion) else ceildiv(items, THREADS)
        blocks = self.facts.simplify(Expr.minimum(blocks, MAX_BLOCKS))
        return GpuLaunch(kernel.name, kind_of(fusion), blocks, THREADS, tuple(here(s) for s in kernel.sizes))

    def build_kernel(self, fusion: func.FuncOp, facts: Facts, name: str, outputs: OutputBuffers) -> Kernel:
        """Emit the kernel of a fusion."""
        frame = Frame(fusion, facts)
        frame.open(self.device, name)
        with ir.InsertionPoint(frame.entry):
            total = build_rows(frame) if has_rows(fusion) else build_loop(frame)
        frame.close()
        cost = max(1, sum(op_cost(op) for op in fusion.entry_block.operations))
        return Kernel(name, frame.function, frame.sizes, total, cost)


def lower_to_gpu(module: ir.Module, facts: Facts) -> GpuLoweredProgram:
    """Lower a planned module. Raises UnsupportedError listing every op that has no GPU kernel."""
    with ir.Location.unknown():
        lowering = GpuLowering(module, facts)
        fusions = lowering.calls()
        _check_supported(entry_block(module), fusions)
        launches = [lowering.launch(fusion) for fusion in fusions]
    if not lowering.target.operation.verify():
        raise CompilerError("lower: the lowered module does not verify")
    return GpuLoweredProgram(lowering.target, launches)


def _check_supported(block: ir.Block, fusions: list[func.FuncOp]) -> None:
    found = [_unsupported(op) for op in block.operations if op.operation.name in CONTROL | {"disc.bind"}]
    found += [
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


__all__ = ["GpuLaunch", "GpuLoweredProgram", "lower_to_gpu", "lower_to_nvvm", "nvvm_to_llvm_ir"]
