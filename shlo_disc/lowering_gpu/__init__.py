# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stage `kernels` for NVIDIA GPUs: every fusion becomes one gpu.func of one gpu.module.

The plan is the one that the CPU lowering takes; `builders` says which kernel a fusion becomes. Matrix products are the
runtime's, with a kernel of `product_kernel` for where there is no library.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable

from shlo_disc.errors import CompilerError, UnsupportedError
from shlo_disc.lowering import progress
from shlo_disc.lowering.host.device_products import calls_in as fusion_calls
from shlo_disc.lowering.host.products import precision_of
from shlo_disc.lowering.kernel_module import copied
from shlo_disc.lowering.kernels import Kernel, KernelBuffers, KernelCache
from shlo_disc.lowering.scatter import results_from_zeros
from shlo_disc.lowering_gpu.attention_rows import AttentionTask
from shlo_disc.lowering_gpu.builders import builder_of, is_call, unsupported
from shlo_disc.lowering_gpu.grid import THREADS
from shlo_disc.lowering_gpu.hopper_attention import build_hopper_attention, takes_attention_maps
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.narrow_weight import NarrowWeight, row_guards
from shlo_disc.lowering_gpu.nvvm import device_module, lower_to_nvvm, nvvm_to_llvm_ir
from shlo_disc.lowering_gpu.product_epilogue import EpilogueFrame
from shlo_disc.lowering_gpu.product_form import ProductForm, device_product
from shlo_disc.lowering_gpu.product_parts import blocks_of, depth_guards, numbers_of
from shlo_disc.lowering_gpu.products import build_followed_products, build_products
from shlo_disc.lowering_gpu.scatter_starts import split_scatter_starts
from shlo_disc.shape_dialect.dialect.fusion import Attention, Gemm, fusion_of, partials_of
from shlo_disc.shape_dialect.dialect.host import KERNEL, KERNELS, ChosenKernel, Guard, KernelUse, kernel_attribute
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.dialect.records import FunctionName
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import func, gpu, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block

MAX_BLOCKS = 2**31 - 1
"""CUDA's limit for the first size of a grid. Kernels have a stride, so fewer blocks than have work are enough."""


class _Kernels:
    """The kernels of one planned module."""

    def __init__(self, module: ir.Module, facts: Facts, deterministic: bool, architecture: str):
        self.source = module
        self.architecture = architecture
        self.facts = facts
        self.deterministic = deterministic
        self.kernels = KernelCache(facts, self.build)
        self.products: dict[ProductForm, gpu.GPUFuncOp] = {}
        self.followed: dict[ProductForm, KernelCache] = {}
        self.attentions: dict[Hashable, Kernel] = {}
        self.functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        with ir.InsertionPoint(module.body):
            module.context.get_dialect_descriptor("gpu")  # loads it
            self.device = gpu.GPUModuleOp(KERNELS)
            self.device.regions[0].blocks.append()

    def choose(self, call: ir.OpView, fusion: func.FuncOp) -> None:
        """Write on a call which kernel it is; in a product with an epilogue, that of both and that of the loop."""
        if isinstance(fusion_of(fusion), Gemm):
            product, loop = fusion_calls(fusion)
            self._write(product, self._followed(self.callee(product), self.callee(loop)))
            self._write(loop, self._fused(self.callee(loop)))
            return
        if isinstance(fusion_of(fusion), Attention):
            self._write(call, self._attention(AttentionTask.of(fusion)))
            return
        problem = device_product(fusion)
        self._write(call, self._fused(fusion) if problem is None else self._product(problem, fusion))

    def callee(self, call: ir.OpView) -> func.FuncOp:
        """The fusion that a call runs."""
        return self.functions[callee_of(call)]

    def fusions_of(self, call: ir.OpView) -> list[func.FuncOp]:
        """Those that become kernels of a call."""
        fusion = self.callee(call)
        return list(map(self.callee, fusion_calls(fusion))) if isinstance(fusion_of(fusion), Gemm) else [fusion]

    @staticmethod
    def _write(call: ir.OpView, chosen: ChosenKernel) -> None:
        call.attributes[KERNEL] = kernel_attribute(chosen)

    def _followed(self, product: func.FuncOp, loop: func.FuncOp) -> ChosenKernel:
        """The kernel of a product that does what follows as well."""
        problem = device_product(product)
        if problem is None:
            raise CompilerError(f"kernels: @{product.name.value} is no product of matrices")
        form = _form(problem, product)
        if form not in self.followed:
            self.followed[form] = KernelCache(self.facts, functools.partial(self.build_followed, form))
        kernel, meaning = self.followed[form].kernel_for(loop)
        sizes = (size.substitute(meaning) if meaning else size for size in kernel.sizes)
        guards = tuple(dict.fromkeys((*_guards(problem, product), *(g.substitute(meaning) for g in kernel.guards))))
        use = self._use(kernel.name, (*numbers_of(problem, product), *sizes), blocks_of(problem, product))
        return ChosenKernel(use, guards)

    def build_followed(
        self, form: ProductForm, fusion: func.FuncOp, facts: Facts, name: str, outputs: KernelBuffers
    ) -> Kernel:
        """Emit the kernels of a product of a form and the fusion that follows it."""
        frame = EpilogueFrame(fusion, facts, deterministic=self.deterministic, form=form)
        return build_followed_products(self.device, frame, name, self.architecture)

    def _product(self, problem: MatrixProduct, product: func.FuncOp) -> ChosenKernel:
        """The kernel that all products of a form share."""
        form = _form(problem, product)
        if form not in self.products:
            self.products[form] = build_products(self.device, form, self.architecture)
        use = self._use(form.name, numbers_of(problem, product), blocks_of(problem, product))
        return ChosenKernel(use, _guards(problem, product))

    def _attention(self, task: AttentionTask) -> ChosenKernel:
        """The kernel of an attention, which those of other layers share."""
        if task.key not in self.attentions:
            name = f"attention_{len(self.attentions)}_{task.problem.element}_{task.depth}"
            self.attentions[task.key] = self.build(task.fusion, self.facts, name, KernelBuffers(), task)
        kernel = self.attentions[task.key]
        return ChosenKernel(self._use(kernel.name, tuple(kernel.sizes), kernel.total), tuple(kernel.guards))

    def _fused(self, fusion: func.FuncOp) -> ChosenKernel:
        kernel, meaning = self.kernels.kernel_for(fusion)

        def here(e: Expr) -> Expr:
            return e.substitute(meaning) if meaning else e

        use = self._use(kernel.name, tuple(here(s) for s in kernel.sizes), here(kernel.total))
        guards = tuple(dict.fromkeys(guard.substitute(meaning) for guard in kernel.guards))
        return ChosenKernel(use, guards, results_from_zeros(fusion))

    def _use(self, name: str, sizes: Dims, blocks: Expr) -> KernelUse:
        blocks = self.facts.simplify(Expr.minimum(blocks, MAX_BLOCKS))
        return KernelUse(FunctionName(name), sizes, blocks, Expr.const(1), threads=THREADS)

    def build(
        self,
        fusion: func.FuncOp,
        facts: Facts,
        name: str,
        outputs: KernelBuffers,
        attention: AttentionTask | None = None,
    ) -> Kernel:
        """Emit the kernel of a fusion, and the second one that an attention may have."""
        frame = GpuFrame(fusion, facts, deterministic=self.deterministic)
        frame.open(self.device, name)
        with ir.InsertionPoint(frame.entry):
            blocks, cost = builder_of(fusion)(frame)
        frame.close()
        if attention is not None and takes_attention_maps(frame, attention, self.architecture):
            build_hopper_attention(self.device, frame)
        return Kernel(name, frame.function, frame.sizes, blocks, cost, frame.guards)


def _form(problem: MatrixProduct, product: func.FuncOp) -> ProductForm:
    """The form of the product that a fusion is."""
    rounded = problem.rounds_to(str(product.type.results[0].element_type))
    narrow = NarrowWeight.of(product)
    return ProductForm.of(problem, rounded, precision_of(product), bool(partials_of(product)), narrow)


def _guards(problem: MatrixProduct, product: func.FuncOp) -> tuple[Guard, ...]:
    """The choices of the kernel of a product, and of how it is computed, that depend on sizes."""
    return (*depth_guards(problem, product), *row_guards(problem, product))


def build_gpu_kernels(
    planned: ir.Module, facts: Facts, deterministic: bool = False, architecture: str = ""
) -> ir.Module:
    """A copy of a planned module, with its kernels. Raises UnsupportedError listing every op that has no GPU kernel.

    architecture: such as "sm_90a", for kernels that others have no instructions for.
    """
    with ir.Location.unknown():
        module = copied(planned)
        split_scatter_starts(module)
        ops = [op for block in all_blocks(entry_block(module)) for op in block.operations]
        calls = [op for op in ops if op.operation.name == "func.call"]
        kernels = _Kernels(module, facts, deterministic, architecture)
        found = [one for call in calls for fusion in kernels.fusions_of(call) for one in unsupported(fusion)]
        if found:
            raise UnsupportedError(list(dict.fromkeys(found)))
        progress.expect(len(calls))
        for call in calls:
            fusion = kernels.callee(call)
            if not is_call(fusion):
                kernels.choose(call, fusion)
            progress.advance()
    return module


__all__ = ["build_gpu_kernels", "device_module", "lower_to_nvvm", "nvvm_to_llvm_ir"]
