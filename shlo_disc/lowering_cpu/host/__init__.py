# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code of a host program (`lowering/host/`), in the LLVM dialect: the first step of `codegen`.

`program.py` makes one module of `disc_plan` (`plan.py`), `disc_run` (`run.py`), the entry points of kernels, and
micro-kernels.
"""

from __future__ import annotations

from shlo_disc.lowering_cpu.host.program import LoweredProgram, lower_host

__all__ = ["LoweredProgram", "lower_host"]
