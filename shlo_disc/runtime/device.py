# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PJRT's Device, Memory and TopologyDescription for this machine's processors, and its GPUs.

Devices that are processors share the process's memory, one pool of threads and one allocator, and differ by number. A
GPU is one device, with memory of its own.
"""

from __future__ import annotations

from typing import Any

from . import _native


class Memory:
    """A memory of one device, by its kind: "device" (the default), "pinned_host" or "unpinned_host".

    On processors, all kinds are the same memory of the machine; programs name the kind of their results.
    """

    def __init__(self, device: Device, id: int, kind: str):
        self.device = device
        self.id = id
        self.kind = kind

    def __repr__(self) -> str:
        return f"Memory(id={self.id}, kind={self.kind!r}, device={self.device.id})"

    def addressable_by_devices(self) -> list[Device]:
        """The devices that can read and write it."""
        return [self.device]


class Device:
    """A device of a client: the processors of this machine, or a GPU."""

    process_index = 0

    def __init__(self, native: Any, id: int = 0):
        self._native = native
        self._gpu: Any = native.gpu if isinstance(native, _native.GpuDevice) else None
        self.id = id
        kinds = _native.Topology.memory_kinds if self._gpu is None else ["device"]
        self._memories = [Memory(self, id * len(kinds) + i, kind) for i, kind in enumerate(kinds)]

    def __repr__(self) -> str:
        if self._gpu is not None:
            return f"Device(platform='cuda', id={self.id}, kind={self.device_kind!r})"
        return f"Device(platform='cpu', id={self.id}, threads={self._native.threads})"

    @property
    def native(self) -> Any:
        """The device of the native core."""
        return self._native

    @property
    def platform(self) -> str:
        """ "cpu" or "cuda"."""
        return "cpu" if self._gpu is None else "cuda"

    @property
    def device_kind(self) -> str:
        """ "cpu", or the name of the GPU."""
        return "cpu" if self._gpu is None else self._gpu.facts["name"]

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The compute capability of a GPU. Raises AttributeError for processors."""
        if self._gpu is None:
            raise AttributeError("processors have no compute capability")
        major, minor = self._gpu.facts["compute_capability"]
        return major, minor

    @property
    def local_hardware_id(self) -> int:
        """The number of the device in this process; for a GPU, its number in the machine."""
        return self.id if self._gpu is None else self._gpu.ordinal

    @property
    def threads(self) -> int:
        """The number of threads that one call may use, including the caller; 1 for a GPU."""
        return self._native.threads if self._gpu is None else 1

    def memories(self) -> list[Memory]:
        """The memories of the device, the default one first."""
        return list(self._memories)

    def default_memory(self) -> Memory:
        """The memory of arrays for which no other memory is requested."""
        return self._memories[0]

    def memory(self, kind: str) -> Memory:
        """The memory of this kind. Raises ValueError if there is none."""
        for memory in self._memories:
            if memory.kind == kind:
                return memory
        raise ValueError(f"no memory of kind {kind!r}; there are {', '.join(m.kind for m in self._memories)}")

    def memory_stats(self) -> dict[str, int]:
        """Counters of all devices: live, peak, cached and constant bytes; arena, result and other allocations."""
        return self._native.memory_stats()

    def launch_stats(self) -> dict[str, int]:
        """Counts of launches on a GPU: `runs` of segments command by command, and their `commands`; `replays` of CUDA
        graphs; `captures` of graphs and `graph_failures`; `graphs` that are kept, and `graph_commands` in them.

        Raises AttributeError for processors.
        """
        if self._gpu is None:
            raise AttributeError("processors have no launches")
        return self._native.launch_stats()


class TopologyDescription:
    """A description of the devices that does not need a client. That of the PJRT plugin is the same, byte for byte."""

    platform = "cpu"

    def __init__(self, device_count: int = 1):
        """Raises ValueError for a number of devices that there cannot be."""
        self._native = _native.Topology(device_count)

    def __repr__(self) -> str:
        return f"TopologyDescription({self.device_count})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopologyDescription) and self.serialize() == other.serialize()

    def __hash__(self) -> int:
        return self.fingerprint

    @property
    def device_count(self) -> int:
        """The number of devices, which are numbered from 0."""
        return self._native.device_count

    @property
    def memory_kinds(self) -> list[str]:
        """The memory kinds of each device, the default one first."""
        return list(_native.Topology.memory_kinds)

    @property
    def fingerprint(self) -> int:
        """A value that is equal only for equal topologies."""
        return self._native.fingerprint

    def serialize(self) -> bytes:
        """The topology as bytes."""
        return self._native.serialize()

    @classmethod
    def deserialize(cls, data: bytes) -> TopologyDescription:
        """Read the output of `serialize`. Raises ValueError for other bytes."""
        return cls(_native.Topology.deserialize(bytes(data)).device_count)
