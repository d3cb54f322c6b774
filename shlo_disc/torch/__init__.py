# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's programs: what `shlo_disc.compile` makes of a `torch.export.ExportedProgram`. Needs the extra `torch`."""

from shlo_disc.torch.backend import backend
from shlo_disc.torch.exported import ExportedExecutable, compile_exported

__all__ = ["ExportedExecutable", "backend", "compile_exported"]
