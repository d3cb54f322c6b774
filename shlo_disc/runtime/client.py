# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PJRT's Client for this machine's processors, or one of its GPUs."""

from __future__ import annotations

import concurrent.futures
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from shlo_disc.options import MOST_THREADS
from shlo_disc.shape_dialect.dtypes import BY_NUMPY

from . import _native
from .adapt import detached, unmasked
from .artifact import Artifact, Bytes
from .cuda_libraries import blas_names
from .device import Device, Memory, TopologyDescription
from .event import Future
from .executable import LoadedExecutable
from .keys import is_key_array, key_data
from .native_module import Buffer, install_extension_dtype

DEFAULT_CACHE_BYTES = 1 << 30
DEFAULT_GRAPHS = 128
_Result = TypeVar("_Result")


class Client:
    """Programs are loaded into a client. Executables of one client share its threads and its memory.

    `device_count`: the number of devices that share these, for programs of several devices. `threads`: 0 means one for
    each processor on which this process may run. `memory_limit`: the largest number of bytes for arenas, results and
    copies at a time, into which each block of packed or copied weights has to fit, 0 for no limit. `cache_limit`: the
    largest number of bytes of freed memory kept for later calls. `guard_pages`: a test mode in which the arena, every
    result and a copy of every argument end at an inaccessible page. `native_device`: a device of the native core, which
    replaces the parameters above; or several, one for each device.
    """

    def __init__(
        self,
        *,
        device_count: int = 1,
        threads: int = 0,
        memory_limit: int = 0,
        cache_limit: int = DEFAULT_CACHE_BYTES,
        guard_pages: bool = False,
        native_device: Any = None,
    ):
        if min(threads, memory_limit, cache_limit) < 0:
            raise ValueError("threads, memory_limit and cache_limit must not be negative")
        if threads > MOST_THREADS:
            raise ValueError(f"threads is {threads}; at most {MOST_THREADS}")
        native = native_device or _native.Processors(threads, memory_limit, cache_limit, guard_pages)
        natives = list(native) if isinstance(native, Sequence) else [native] * device_count
        self._topology = TopologyDescription(len(natives))
        self.native_devices: list[Any] = list(dict.fromkeys(natives))
        self.native_device: Any = natives[0]
        self._devices = [Device(native, id) for id, native in enumerate(natives)]

    def __repr__(self) -> str:
        return f"<Client of {self._devices[0]}{f' and {len(self._devices) - 1} more' * (len(self._devices) > 1)}>"

    @property
    def platform(self) -> str:
        """ "cpu" or "cuda"."""
        return self._devices[0].platform

    @classmethod
    def of_process(cls, device_count: int = 1) -> Client:
        """A client that shares the threads and the memory of the process, also with the PJRT plugin."""
        return cls(device_count=device_count, native_device=_native.default_device())

    @classmethod
    def of_gpu(
        cls,
        ordinal: int | Sequence[int] = 0,
        *,
        memory_limit: int = 0,
        cache_limit: int = DEFAULT_CACHE_BYTES,
        uses_libraries: bool = True,
        allow_tf32: bool = False,
        fuses_products: bool | None = None,
        graphs: bool | int = True,
    ) -> Client:
        """A client for an NVIDIA GPU of this machine, by its number, with separate memory and a separate stream.

        With several numbers, the client has several GPUs, for programs of several devices (`execute_sharded`). Calls
        submit their work to the GPU and return; Buffer results become ready later. `uses_libraries`: cuBLASLt, if
        installed, computes matrix products of the types that it supports; kernels of the program compute all others.
        `allow_tf32`: in programs of earlier versions, cuBLASLt may round f32 operands to 10 bits in products of default
        precision. Others state the precision of each product (`Options.matmul_precision`).
        `fuses_products`: True always computes a product and its epilogue in one kernel of the program; False never does
        if a library supports the product; None chooses by estimated time. `graphs`: whether repeated calls become CUDA
        graphs, or the largest number of graphs to keep (`Device.launch_stats` counts them). Raises DeviceError if there
        is no such GPU, or no driver.
        """
        kept = DEFAULT_GRAPHS if graphs is True else int(graphs)
        ordinals = [ordinal] if isinstance(ordinal, int) else list(ordinal)
        if not ordinals or len(set(ordinals)) != len(ordinals):
            raise ValueError(f"a client is for one GPU, or for several different ones, not for {ordinals}")
        if min(memory_limit, cache_limit, kept) < 0:
            raise ValueError("memory_limit, cache_limit and graphs must not be negative")
        names = blas_names() if uses_libraries else []
        limits = (memory_limit, cache_limit, names, allow_tf32, fuses_products, kept)
        return cls(native_device=[_native.GpuDevice(number, *limits) for number in ordinals])

    def devices(self) -> list[Device]:
        """All devices, by number."""
        return list(self._devices)

    def device(self, id: int) -> Device:
        """The device with this number. Raises ValueError if there is none."""
        if not 0 <= id < len(self._devices):
            raise ValueError(f"there is no device {id}; there are {len(self._devices)}")
        return self._devices[id]

    def memories(self) -> list[Memory]:
        """The memories of all devices."""
        return [memory for device in self._devices for memory in device.memories()]

    def topology(self) -> TopologyDescription:
        """A description of the devices that does not need the client."""
        return self._topology

    def buffer_from_host(self, array: Any, place: Device | Memory | None = None) -> Buffer:
        """A Buffer with a copy of `array`, by default in the default memory of the first device.

        `array`: a NumPy array, or any object with `__array__` or `__dlpack__`. Raises ArgumentTypeError for unsupported
        element types.
        """
        if is_key_array(array):
            array = key_data(array, "the array", "")
        array = detached(array)
        if not hasattr(array, "__array__") and hasattr(array, "__dlpack__"):
            array = np.from_dlpack(array)
        array = unmasked(array, "the array")
        dtype = BY_NUMPY.get(str(getattr(array, "dtype", "")))
        if dtype is not None and dtype.is_extension:
            install_extension_dtype(dtype)
        place = place or self._devices[0]
        memory = place.default_memory() if isinstance(place, Device) else place
        return memory.device.native.buffer_from_host(array, memory)

    def load(
        self,
        artifact: Artifact | Bytes,
        *,
        trust: bool = False,
        in_tree: Any = None,
        out_tree: Any = None,
        memo_bytes: int = 4 << 20,
        perf_map: bool = False,
        cpu: str = "",
    ) -> LoadedExecutable:
        """Load a program, so that it can be called.

        `artifact` is an Artifact, or the bytes of one with `trust=True`. `in_tree`, `out_tree`: jax PyTreeDefs or
        TreeSpecs of (args, kwargs) and of the results, which replace those in the header. `memo_bytes`: the largest
        size of the plan cache in bytes. `perf_map`: write the names of the functions for Linux perf. `cpu`: the level
        of processors to run, such as "x86-64-v3", if the artifact has several; "" means the best that this processor
        supports. Raises ArtifactError if the artifact is damaged, untrusted, or for another processor.
        """
        if not isinstance(artifact, Artifact):
            artifact = Artifact.deserialize(artifact, trust=trust)
        return LoadedExecutable(
            self, artifact, in_tree=in_tree, out_tree=out_tree, memo_bytes=memo_bytes, perf_map=perf_map, cpu=cpu
        )

    def run_async(self, function: Callable[[], _Result]) -> Future[_Result]:
        """Run a function in a thread of the client, after the functions passed before it."""
        return Future(self._worker.submit(function))

    @functools.cached_property
    def _worker(self) -> concurrent.futures.ThreadPoolExecutor:
        return concurrent.futures.ThreadPoolExecutor(1, "shlo_disc")

    def trim(self) -> int:
        """Release cached memory to the system, and the communicators of GPUs; returns the number of bytes."""
        if len(self.native_devices) > 1:
            _native.destroy_nccl_groups()
        return sum(native.trim() for native in self.native_devices)

    def reset_peak(self) -> None:
        """Set the peak counter to the bytes in use."""
        for native in self.native_devices:
            native.reset_peak()
