# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shlo_disc: one compile of a StableHLO program serves every shape.

The compiler is imported on first use, so that `shlo_disc.runtime` loads artifacts where neither MLIR nor LLVM is
installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shlo_disc import errors
from shlo_disc.errors import (
    ArgumentTypeError,
    ArtifactError,
    CompilerError,
    CustomCallError,
    DiscError,
    OptionError,
    ProgramError,
    RecompileError,
    ShapeError,
    UnsupportedError,
)
from shlo_disc.options import KernelSchedule, Options, Schedule
from shlo_disc.runtime.installed import is_installed
from shlo_disc.shape_dialect.custom_calls import register_custom_call

if TYPE_CHECKING:
    from shlo_disc import numpy as numpy
    from shlo_disc import runtime as runtime
    from shlo_disc import torch as torch
    from shlo_disc.api import ragged as ragged
    from shlo_disc.api.compile import compile, jit
    from shlo_disc.api.load import load
    from shlo_disc.driver.executable import Executable
    from shlo_disc.runtime.c_api import get_cmake_dir, get_include, get_library, get_pjrt_plugin

__version__ = "0.1.0"

_LAZY = {
    "Executable": "driver.executable", "compile": "api.compile", "get_cmake_dir": "runtime.c_api",
    "get_include": "runtime.c_api", "get_library": "runtime.c_api", "get_pjrt_plugin": "runtime.c_api",
    "jit": "api.compile", "load": "api.load",
}  # fmt: skip
"""The names that are imported when they are first used, and their modules."""

_METHODS = {
    **dict.fromkeys(
        ("explain", "listing", "report", "trace"),
        "it is a method of what shlo_disc.compile returns, as in shlo_disc.compile(program).{}(...); a loaded file has "
        "profile(args) for the times of a call",
    ),
    **dict.fromkeys(
        ("bind", "export_library", "memory", "profile", "save"),
        "it is a method of what shlo_disc.compile and shlo_disc.load return, as in shlo_disc.load(path).{}(...)",
    ),
    "lower": "it is a method of what shlo_disc.jit returns, as in shlo_disc.jit(function).{}(...)",
}
"""Names that users look for in the package, and where they are."""

_MODULES = {"numpy": "jax", "ragged": "jax", "runtime": "numpy", "torch": "torch"}
"""The public modules that are imported when they are first used, and the packages that each stands on."""

_PLACES = {"ragged": "api.ragged"}
"""The modules of `_MODULES` that have another place in the package."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # what users write after `import shlo_disc`
        return importlib.import_module(f"shlo_disc.{_PLACES.get(name, name)}")
    if name not in _LAZY:
        instead = f": {_METHODS[name].format(name)}" if name in _METHODS else ""
        raise AttributeError(f"module 'shlo_disc' has no attribute {name!r}{instead}")
    return getattr(importlib.import_module(f"shlo_disc.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    """The public names: what completion offers. Modules whose packages are not installed are left out."""
    return [*__all__, *(module for module, package in _MODULES.items() if is_installed(package))]


__all__ = [
    "ArgumentTypeError", "ArtifactError", "CompilerError", "CustomCallError", "DiscError", "Executable",
    "KernelSchedule", "OptionError", "Options", "ProgramError", "RecompileError", "Schedule", "ShapeError",
    "UnsupportedError", "compile", "errors", "get_cmake_dir", "get_include", "get_library", "get_pjrt_plugin", "jit",
    "load", "register_custom_call",
]  # fmt: skip
