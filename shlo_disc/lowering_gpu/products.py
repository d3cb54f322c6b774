# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of a product, and where their conditions stand. `product_kernel.kernel_of` chooses the first three:

- `plain_product` takes any element type, any sizes and strides, with all bits of its sides; results of few rows, here
  and in the next one, have tiles of another form (`few_rows`);
- `tf32_product` those of f32 instead that are computed in TF32, by one product or three;
- `tensor_product` those of f16, bf16 and integers of 8 bits instead (`takes_tensor_cores`), of any sizes and strides:
  rows that begin at no multiples of 16 bytes are a version of it, taken at run time (`TensorKernel.is_aligned`);
- `hopper_product` is a second kernel besides, for sm_90a and for f16, bf16 and integers of 8 bits, the latter where
  neighbours of both sides are along the depth (`takes_maps`). The runtime starts it in place of the first where tensor
  maps can describe both sides of a call (`runtime/native/cuda/tensor_map.cpp`).

Where what follows a product is done in its kernel, so it is in all of them. All but the last one may have parts of the
depth over several blocks (`product_parts`).
"""

from __future__ import annotations

from shlo_disc.lowering.kernels import Kernel
from shlo_disc.lowering_gpu.hopper_product import build_fused_hopper_product, build_hopper_product, takes_maps
from shlo_disc.lowering_gpu.product_epilogue import EpilogueFrame
from shlo_disc.lowering_gpu.product_form import ProductForm
from shlo_disc.lowering_gpu.product_kernel import build_fused_product, build_product
from shlo_disc.shape_dialect.mlir import gpu, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr


def build_products(device: gpu.GPUModuleOp, form: ProductForm, architecture: str) -> gpu.GPUFuncOp:
    """The kernels of a form at the end of a module; returns the one that takes any sides."""
    function = build_product(device, form)
    if takes_maps(form, architecture):
        build_hopper_product(device, form)
    return function


def build_followed_products(device: gpu.GPUModuleOp, frame: EpilogueFrame, name: str, architecture: str) -> Kernel:
    """The kernels of a product and what follows it, at the end of a module. Returns the one that takes any sides, which
    `frame` becomes; its work is the product's."""
    frame.open(device, f"{frame.form.name}_{name}")
    with ir.InsertionPoint(frame.entry):
        build_fused_product(frame)
    frame.close()
    guards = frame.guards
    if takes_maps(frame.form, architecture):
        guards = list(dict.fromkeys([*guards, *build_fused_hopper_product(device, frame).guards]))
    return Kernel(frame.function.name.value, frame.function, frame.sizes, Expr.const(0), 0, guards)


__all__ = ["build_followed_products", "build_products"]
