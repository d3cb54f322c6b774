# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products by kernels of our own: any sizes, strides and number of batch axes, told at run time."""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering_gpu.grid import THREADS
from shlo_disc.lowering_gpu.kernel import pointer_type
from shlo_disc.lowering_gpu.plain_product import PlainKernel
from shlo_disc.lowering_gpu.product_epilogue import EpilogueFrame
from shlo_disc.lowering_gpu.product_form import ProductForm
from shlo_disc.lowering_gpu.tensor_product import TensorKernel, takes_tensor_cores
from shlo_disc.lowering_gpu.tf32_product import Tf32Kernel
from shlo_disc.shape_dialect.mlir import gpu, ir


def kernel_of(form: ProductForm) -> Callable[..., PlainKernel | TensorKernel]:
    """The kernel that computes products of a form."""
    if takes_tensor_cores(form):
        return TensorKernel
    return PlainKernel if form.precision == "full" else Tf32Kernel


def build_fused_product(frame: EpilogueFrame) -> None:
    """The body of a product's kernel that does what follows as well, at the insertion point."""
    form = frame.form
    kernel_of(form)(frame.function, frame.told, form, frame).write()


def build_product(device: gpu.GPUModuleOp, form: ProductForm) -> gpu.GPUFuncOp:
    """The kernel at the end of a module. It is told both sides and the result, then `MatrixProduct.numbers`."""
    pointers = [pointer_type(e.memory()) for e in (*form.sides, form.result, *form.memory)]
    numbers = [ir.IndexType.get()] * form.numbers
    with ir.InsertionPoint(device.regions[0].blocks[0]):
        type_ = ir.FunctionType.get([*pointers, *numbers], [])
        function = gpu.GPUFuncOp(type_, form.name, kernel=True, known_block_size=[THREADS, 1, 1])
    entry = function.add_entry_block()
    with ir.InsertionPoint(entry):
        kernel_of(form)(function, list(entry.arguments), form).write()
        gpu.ReturnOp([])
    return function
