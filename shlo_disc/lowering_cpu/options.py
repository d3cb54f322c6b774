# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of a processor that kernels and micro-kernels depend on."""

from __future__ import annotations

from dataclasses import dataclass, field

from shlo_disc.lowering.codegen import CpuTarget
from shlo_disc.options import Schedule


@dataclass(frozen=True)
class CpuOptions:
    """The target's options for kernels: `vector_bits` of a register.

    unroll, long_unroll: the registers worked on together, and those in long rows. schedule: what is chosen for each
    kernel. features: LLVM's names of what the processor has beyond its architecture's base.
    """

    vector_bits: int = 512
    unroll: int = 2
    long_unroll: int = 2
    features: frozenset[str] = frozenset()
    is_x86: bool = True
    schedule: Schedule = field(default_factory=Schedule)

    @staticmethod
    def of(cpu: CpuTarget, schedule: Schedule | None = None) -> CpuOptions:
        """The options of a processor for kernels, and the schedule chosen for them."""
        is_x86 = cpu.triple.startswith("x86_64")
        features = frozenset(cpu.features)
        return CpuOptions(cpu.vector_bits, features=features, is_x86=is_x86, schedule=schedule or Schedule())

    @property
    def registers(self) -> int:
        """The vector registers."""
        return 32 if self.vector_bits == 512 or not self.is_x86 else 16
