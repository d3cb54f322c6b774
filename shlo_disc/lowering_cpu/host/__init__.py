# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The host program: what is called in which order, with which buffers and sizes.

`build.py` writes it in the dialect `disc_host` (the stage `host`); `program.py` makes code of it, in the LLVM dialect,
as the first step of `codegen`: `disc_plan` (`plan.py`), `disc_run` (`run.py`), and the entry points of kernels.
"""

from __future__ import annotations

from shlo_disc.lowering_cpu.host.build import build_host
from shlo_disc.lowering_cpu.host.program import LoweredProgram, lower_host

__all__ = ["LoweredProgram", "build_host", "lower_host"]
