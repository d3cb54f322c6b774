# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shlo_disc: one compile of a StableHLO program serves every shape."""

from __future__ import annotations

from shlo_disc import errors
from shlo_disc.api import compile, jit  # noqa: A004
from shlo_disc.errors import (
    ArgumentTypeError,
    ArtifactError,
    CompilerError,
    DiscError,
    ProgramError,
    RecompileError,
    ShapeError,
    UnsupportedError,
)
from shlo_disc.executable import Executable
from shlo_disc.options import Options

__version__ = "0.1.0"

__all__ = [
    "ArgumentTypeError", "ArtifactError", "CompilerError", "DiscError", "Executable", "Options", "ProgramError",
    "RecompileError", "ShapeError", "UnsupportedError", "compile", "errors", "jit",
]  # fmt: skip
