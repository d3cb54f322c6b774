# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pipeline asks of a target, answered for NVIDIA GPUs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from shlo_disc import codegen
from shlo_disc.errors import CompilerError
from shlo_disc.lowering_gpu import build_gpu_kernels, device_module, lower_to_nvvm, nvvm_to_llvm_ir
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.host import GemmTile
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.symbolic.facts import Facts


@dataclass(frozen=True)
class DeviceCode:
    """The kernels of a program, all of which are launched from outside."""

    module: ir.Module
    exported: tuple[str, ...] = ()


@dataclass(frozen=True)
class GpuBackend:
    """An architecture such as "sm_90", and LLVM's optimisation level."""

    architecture: str
    opt_level: int

    policy = GPU_POLICY
    views = ("llvm", "ptx")

    def tile_of(self, element: str) -> GemmTile:
        """Raises CompilerError: products are refused before anybody asks."""
        raise CompilerError(f"host: there is no micro-kernel of {element} for GPUs")

    def build_kernels(self, module: ir.Module, facts: Facts) -> ir.Module:
        """A copy of a planned module, with its kernels. Raises UnsupportedError listing ops that have none."""
        return build_gpu_kernels(module, facts)

    def lower_host(self, module: ir.Module, signature: Signature) -> DeviceCode:
        """The kernels alone: nothing runs them yet."""
        return DeviceCode(device_module(module))

    def legalize(self, module: ir.Module) -> None:
        """Nothing that LLVM gets wrong is known."""

    def lower_to_llvm(self, module: ir.Module) -> None:
        """Lower a module to the LLVM and NVVM dialects, in place."""
        lower_to_nvvm(module)

    def translate(self, module: ir.Module) -> str:
        """LLVM IR."""
        return nvvm_to_llvm_ir(module)

    def emit(self, llvm_ir: str, exported: Collection[str]) -> bytes:
        """PTX."""
        return codegen.compile_to_ptx(llvm_ir, self.architecture, self.opt_level).encode()

    def view(self, name: str, llvm_ir: str, exported: Collection[str]) -> str:
        """One of `views`."""
        return llvm_ir if name == "llvm" else self.emit(llvm_ir, exported).decode()
