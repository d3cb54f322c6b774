# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code of a host program (`lowering/host/`) for CPUs, in the LLVM dialect: the first step of `codegen`.

`program.py` makes one module of the host functions (`lowering/host_llvm/`), whose commands are in `run.py`, the entry
points of kernels, and micro-kernels.
"""

from __future__ import annotations

from shlo_disc.lowering_cpu.host.program import lower_host

__all__ = ["lower_host"]
