# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline's target interface for NVIDIA GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.lowering import codegen
from shlo_disc.lowering.host_llvm.program import LoweredProgram
from shlo_disc.lowering_gpu import build_gpu_kernels, lower_to_nvvm, nvvm_to_llvm_ir
from shlo_disc.lowering_gpu.host import lower_host
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.dialect.host import GemmTile
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.facts import Facts


@dataclass(frozen=True)
class GpuBackend:
    """An architecture such as "sm_90", LLVM's optimisation level for kernels, and the processor beside it.

    deterministic: kernels give the same bits at each run.
    """

    architecture: str
    opt_level: int
    cpu: codegen.CpuTarget
    deterministic: bool = False

    policy = GPU_POLICY
    views = ("llvm", "ptx", "host-llvm")

    def tile_of(self, element: str, registers: int) -> GemmTile:
        """Raises CompilerError: products on GPUs have no micro-kernels."""
        raise CompilerError(f"host: there is no micro-kernel of {element} for GPUs")

    def build_kernels(self, module: ir.Module, facts: Facts) -> ir.Module:
        """A copy of a planned module, with its kernels. Raises UnsupportedError listing ops that have none."""
        return build_gpu_kernels(module, facts, self.deterministic, self.architecture)

    def lower_host(self, module: ir.Module, signature: Signature) -> LoweredProgram:
        """The kernels, and the host program that gives them to the GPU."""
        return lower_host(module, signature)

    def legalize(self, section: str, module: ir.Module) -> None:
        """Nothing that LLVM gets wrong is known."""

    def lower_to_llvm(self, section: str, module: ir.Module) -> None:
        """Lower a module to the LLVM dialect, and kernels to that and NVVM, in place."""
        (lower_to_nvvm if section == "ptx" else codegen.lower_to_llvm)(module)

    def translate(self, section: str, module: ir.Module) -> str:
        """LLVM IR."""
        return (nvvm_to_llvm_ir if section == "ptx" else codegen.to_llvm_ir)(module)

    def emit(self, section: str, llvm_ir: str, program: LoweredProgram) -> bytes:
        """PTX, or an ELF object."""
        if section == "ptx" and not program.header["kernels"]:
            return b""  # copies and collectives alone
        if section == "ptx":
            return codegen.compile_to_ptx(llvm_ir, self.architecture, self.opt_level).encode()
        return codegen.compile_to_object(llvm_ir, self.cpu, 1, program.exported, program.embedded)

    def view(self, name: str, llvm_ir: Mapping[str, str], program: LoweredProgram) -> str:
        """One of `views`."""
        if name == "ptx":
            return self.emit("ptx", llvm_ir["ptx"], program).decode()
        return llvm_ir["object" if name == "host-llvm" else "ptx"]
