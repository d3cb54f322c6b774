# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPU: kernels of fusions (the stage `kernels`), and code of the program that calls them."""

from __future__ import annotations

from shlo_disc.lowering_cpu.host import lower_host
from shlo_disc.lowering_cpu.kernels import build_kernels
from shlo_disc.lowering_cpu.options import CpuOptions

__all__ = ["CpuOptions", "build_kernels", "lower_host"]
