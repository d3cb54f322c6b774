# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loading and running compiled programs, with PJRT's nouns: Client, Device, Memory, Buffer, LoadedExecutable, Event.

Needs neither JAX nor MLIR: JAX's arrays and trees are understood when the caller already uses them.
"""

from __future__ import annotations

from .allocation import AllocationError
from .artifact import Artifact
from .client import Client
from .device import Device, Memory, TopologyDescription
from .event import Event, Future
from .executable import BoundExecutable, CommandTime, LoadedExecutable, MemoryStats
from .native_module import Buffer
from .tree import TreeSpec

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
