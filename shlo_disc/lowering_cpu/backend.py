# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline's target interface for CPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shlo_disc.lowering import codegen
from shlo_disc.lowering.host_llvm.program import LoweredProgram
from shlo_disc.lowering_cpu.host import lower_host
from shlo_disc.lowering_cpu.kernels import build_kernels
from shlo_disc.lowering_cpu.micro_kernels.gemm_kernel import tile_of
from shlo_disc.lowering_cpu.options import CpuOptions
from shlo_disc.lowering_cpu.policy import CPU_POLICY
from shlo_disc.options import KernelSchedule, Schedule
from shlo_disc.shape_dialect.dialect.host import GemmTile
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.policy import Policy
from shlo_disc.shape_dialect.symbolic.facts import Facts


@dataclass(frozen=True)
class CpuBackend:
    """A processor, and how kernels are written and optimised for it. store: for objects that LLVM made. recorded:
    schedules by the content of kernels."""

    cpu: codegen.CpuTarget
    schedule: Schedule
    opt_level: int
    store: codegen.ObjectStore | None = None
    recorded: Mapping[str, KernelSchedule] = field(default_factory=dict)

    views = ("llvm", "optimized-llvm", "asm")

    @property
    def policy(self) -> Policy:
        """The policy of processors with registers as wide as this one's, and with tiles as it has them."""
        options = CpuOptions.of(self.cpu)
        return replace(CPU_POLICY, vector_bits=options.vector_bits, bf16_tiles="amx-bf16" in options.features)

    def tile_of(self, element: str, registers: int) -> GemmTile:
        """The micro-kernel of products of an element type."""
        return tile_of(element, CpuOptions.of(self.cpu), registers)

    def build_kernels(self, module: ir.Module, facts: Facts) -> ir.Module:
        """A copy of a planned module, with its kernels."""
        return build_kernels(module, facts, CpuOptions.of(self.cpu, self.schedule, self.recorded))

    def lower_host(self, module: ir.Module, signature: Signature) -> LoweredProgram:
        """Kernels, micro-kernels and the host program in one module."""
        return lower_host(module, signature, self.cpu.vector_bits)

    def legalize(self, section: str, module: ir.Module) -> None:
        """Take apart, in place, what LLVM gets wrong."""
        codegen.split_masked_loads(module, self.cpu)

    def lower_to_llvm(self, section: str, module: ir.Module) -> None:
        """Lower a module to the LLVM dialect, in place."""
        codegen.lower_to_llvm(module)

    def translate(self, section: str, module: ir.Module) -> str:
        """LLVM IR."""
        return codegen.to_llvm_ir(module)

    def emit(self, section: str, llvm_ir: str, program: LoweredProgram) -> bytes:
        """An ELF object."""
        return codegen.compile_with_routines(
            llvm_ir, self.cpu, self.opt_level, program.exported, program.embedded, program.routines, self.store
        )

    def view(self, name: str, llvm_ir: Mapping[str, str], program: LoweredProgram) -> str:
        """One of `views`, that of the routines behind it."""
        routines = [codegen.view_routines(name, each, self.cpu) for each in program.routines]
        return "\n".join([self._view(name, llvm_ir["object"], program), *routines])

    def _view(self, name: str, text: str, program: LoweredProgram) -> str:
        if name == "llvm":
            return text
        external = codegen.names_of(program.routines)
        return codegen.code_text(name, text, self.cpu, self.opt_level, program.exported, external)
