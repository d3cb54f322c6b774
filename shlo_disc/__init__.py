# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shlo_disc: one compile of a StableHLO program serves every shape.

The compiler is imported on first use, so that `shlo_disc.runtime` loads artifacts where neither MLIR nor LLVM is
installed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
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
    from shlo_disc.driver.cache import cache_stats
    from shlo_disc.driver.executable import Executable
    from shlo_disc.runtime.c_api import get_cmake_dir, get_include, get_library, get_pjrt_plugin, get_triton_backends

__version__ = "0.1.0"

_LAZY = {
    "Executable": "driver.executable", "cache_stats": "driver.cache", "compile": "api.compile",
    "get_cmake_dir": "runtime.c_api", "get_include": "runtime.c_api", "get_library": "runtime.c_api",
    "get_pjrt_plugin": "runtime.c_api", "get_triton_backends": "runtime.c_api",
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


class _PlacedModules(MetaPathFinder, Loader):
    """Imports the modules of `_PLACES` by their public names, as in `import shlo_disc.ragged`."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec for one of these names; None for any other."""
        package, _, public = name.rpartition(".")
        return ModuleSpec(name, self) if package == __name__ and public in _PLACES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module at its place."""
        module: ModuleType = __getattr__(spec.name.rpartition(".")[2])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module, which has been imported from its place, with the spec of that."""
        module.__spec__ = getattr(module.__spec__, "loader_state", None)


sys.meta_path.append(_PlacedModules())


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
    "UnsupportedError", "cache_stats", "compile", "errors", "get_cmake_dir", "get_include", "get_library",
    "get_pjrt_plugin", "get_triton_backends", "jit", "load", "register_custom_call",
]  # fmt: skip
