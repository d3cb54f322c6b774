# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of a processor that kernels and micro-kernels depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shlo_disc.lowering.codegen import CpuTarget
from shlo_disc.options import KernelSchedule, Schedule
from shlo_disc.shape_dialect.dialect.host import TILE_REGISTERS


@dataclass(frozen=True)
class CpuOptions:
    """The target's options for kernels: `vector_bits` of a register.

    unroll, long_unroll: the registers worked on together, and those in long rows. tile_registers: those in a row of
    tiles. pieces: blocks of rows of a recurrence, at most, or None. schedule: what is chosen for each kernel. recorded:
    the same by the content of kernels that it does not name. features: LLVM's names of what the processor has beyond
    its architecture's base.
    """

    vector_bits: int = 512
    unroll: int = 2
    long_unroll: int = 2
    tile_registers: int = TILE_REGISTERS
    pieces: int | None = None
    features: frozenset[str] = frozenset()
    is_x86: bool = True
    schedule: Schedule = field(default_factory=Schedule)
    recorded: Mapping[str, KernelSchedule] = field(default_factory=dict)

    @staticmethod
    def of(
        cpu: CpuTarget, schedule: Schedule | None = None, recorded: Mapping[str, KernelSchedule] | None = None
    ) -> CpuOptions:
        """The options of a processor for kernels, and the schedules chosen for them."""
        is_x86 = cpu.triple.startswith("x86_64")
        chosen, found = schedule or Schedule(), recorded or {}
        features = frozenset(cpu.features)
        return CpuOptions(cpu.vector_bits, features=features, is_x86=is_x86, schedule=chosen, recorded=found)

    @property
    def registers(self) -> int:
        """The vector registers."""
        return 32 if self.vector_bits == 512 or not self.is_x86 else 16
