# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Load and run compiled programs. The classes are those of PJRT: Client, Device, Memory, Buffer, LoadedExecutable,
Event.

This needs neither JAX nor MLIR. JAX arrays and pytrees are accepted if the process has imported JAX.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("shlo_disc.runtime._native") is None:
    raise ImportError(
        f"{__path__[0]} lacks its native module: it is a source tree that was not built, which hides an installed "
        "package from Python. Start Python in another folder, or build it here: pip install -e ."
    )

from .allocation import AllocationError
from .artifact import Artifact
from .bound_executable import BoundExecutable
from .call_results import CommandTime, MemoryStats
from .client import Client
from .device import Device, Memory, TopologyDescription
from .event import Event, Future
from .executable import LoadedExecutable
from .native_module import Buffer
from .tree import TreeSpec


def __dir__() -> list[str]:
    """The public names: what completion offers."""
    return __all__


__all__ = [
    "AllocationError",
    "Artifact",
    "BoundExecutable",
    "Buffer",
    "Client",
    "Device",
    "Event",
    "Future",
    "LoadedExecutable",
    "Memory",
    "MemoryStats",
    "CommandTime",
    "TopologyDescription",
    "TreeSpec",
]
