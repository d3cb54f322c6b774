# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PJRT's Client and Device for this machine's processor."""

from __future__ import annotations

from typing import Any

from shlo_disc.dtypes import BY_NUMPY

from . import _native
from .artifact import Artifact, Bytes
from .executable import LoadedExecutable
from .native_module import Buffer, install_extension_dtype

DEFAULT_CACHE_BYTES = 1 << 30


class Device:
    """The processor: one pool of threads and one allocator."""

    platform = "cpu"
    id = 0

    def __init__(self, native: Any):
        self._native = native

    def __repr__(self) -> str:
        return f"Device(platform='cpu', id=0, threads={self._native.threads})"

    @property
    def threads(self) -> int:
        """Threads that one call may use, the caller's included."""
        return self._native.threads

    def memory_stats(self) -> dict[str, int]:
        """Counters: live, peak, cached and constant bytes; arena, result, argument-copy and system allocations."""
        return self._native.memory_stats()


class Client:
    """What programs are loaded into. Executables of one client share its threads and its memory.

    `threads`: 0 means one a processor that this process may run on. `memory_limit`: most bytes for arenas, results and
    copies at a time, 0 for none. `cache_limit`: most bytes of freed memory kept for later calls. `guard_pages`: a test
    mode in which the arena, every result and a copy of every argument end at an inaccessible page. `native_device`:
    the native core's, with threads and memory of its own, in place of all of these.
    """

    platform = "cpu"

    def __init__(
        self,
        *,
        threads: int = 0,
        memory_limit: int = 0,
        cache_limit: int = DEFAULT_CACHE_BYTES,
        guard_pages: bool = False,
        native_device: Any = None,
    ):
        if min(threads, memory_limit, cache_limit) < 0:
            raise ValueError("threads, memory_limit and cache_limit must not be negative")
        self.native_device = native_device or _native.Device(threads, memory_limit, cache_limit, guard_pages)
        self._device = Device(self.native_device)

    @classmethod
    def of_process(cls) -> Client:
        """The client whose threads and memory are the process's: those of the PJRT plugin, too."""
        return cls(native_device=_native.default_device())

    def devices(self) -> list[Device]:
        """The one device."""
        return [self._device]

    def buffer_from_host(self, array: Any) -> Buffer:
        """A Buffer with a copy of `array`. Raises ArgumentTypeError for element types that programs do not have."""
        dtype = BY_NUMPY.get(str(getattr(array, "dtype", "")))
        if dtype is not None and dtype.is_extension:
            install_extension_dtype(dtype)
        return self.native_device.buffer_from_host(array)

    def load(
        self,
        artifact: Artifact | Bytes,
        *,
        trust: bool = False,
        in_tree: Any = None,
        out_tree: Any = None,
        memo_bytes: int = 4 << 20,
        perf_map: bool = False,
    ) -> LoadedExecutable:
        """Makes a program callable.

        `artifact` is an Artifact, or the bytes of one with `trust=True`. `in_tree`, `out_tree`: jax PyTreeDefs or
        TreeSpecs of (args, kwargs) and of the results, in place of those in the header. `memo_bytes`: most bytes of
        remembered shapes. `perf_map`: write the functions' names where Linux perf finds them.
        Raises ArtifactError when the artifact is damaged, untrusted, or made for another processor.
        """
        if not isinstance(artifact, Artifact):
            artifact = Artifact.deserialize(artifact, trust=trust)
        return LoadedExecutable(
            self, artifact, in_tree=in_tree, out_tree=out_tree, memo_bytes=memo_bytes, perf_map=perf_map
        )

    def trim(self) -> int:
        """Returns cached memory to the system; the bytes returned."""
        return self.native_device.trim()

    def reset_peak(self) -> None:
        """Sets the peak counter to what is live."""
        self.native_device.reset_peak()
