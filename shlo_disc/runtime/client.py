# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PJRT's Client for this machine's processors, or one of its GPUs."""

from __future__ import annotations

import concurrent.futures
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from shlo_disc.dtypes import BY_NUMPY

from . import _native
from .adapt import unmasked
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
    """What programs are loaded into. Executables of one client share its threads and its memory.

    `device_count`: devices that share these, for programs of several devices. `threads`: 0 means one a processor that
    this process may run on. `memory_limit`: most bytes for arenas, results and copies at a time, 0 for none.
    `cache_limit`: most bytes of freed memory kept for later calls. `guard_pages`: a test mode in which the arena, every
    result and a copy of every argument end at an inaccessible page. `native_device`: the native core's, with threads
    and memory of its own, in place of all of the latter; or several, one for each device.
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
        """A client whose threads and memory are the process's: those of the PJRT plugin, too."""
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
        """A client for an NVIDIA GPU of this machine, by its number. Its memory and its stream of work are its own.

        For several numbers, it is one for as many GPUs, on which programs of several devices run (`execute_sharded`).
        Calls give their work to the GPU and come back; results that are Buffers are there later. `uses_libraries`:
        cuBLASLt, where it is installed, multiplies matrices of the types that it has; programs have kernels for all
        others. `allow_tf32`: it may round factors of f32 to 10 bits, as XLA does on GPUs, in products whose precision
        is the default. `fuses_products`: a product with what follows it is always one kernel of the program's
        (True), or never where a library takes the product (False), rather than what is estimated to be faster.
        `graphs`: whether calls that come again are CUDA graphs, or the most of these that are kept
        (`Device.launch_stats` counts them). Raises DeviceError where there is no such GPU, or no driver.
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
        """The device with a number. Raises ValueError when there is none."""
        if not 0 <= id < len(self._devices):
            raise ValueError(f"there is no device {id}; there are {len(self._devices)}")
        return self._devices[id]

    def memories(self) -> list[Memory]:
        """The memories of all devices."""
        return [memory for device in self._devices for memory in device.memories()]

    def topology(self) -> TopologyDescription:
        """What is known of the devices without the client."""
        return self._topology

    def buffer_from_host(self, array: Any, place: Device | Memory | None = None) -> Buffer:
        """A Buffer with a copy of `array`, by default in the default memory of the first device.

        `array`: of NumPy, or anything with `__array__` or `__dlpack__`. Raises ArgumentTypeError for element types that
        programs do not have.
        """
        if is_key_array(array):
            array = key_data(array, "the array", "")
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
        """Makes a program callable.

        `artifact` is an Artifact, or the bytes of one with `trust=True`. `in_tree`, `out_tree`: jax PyTreeDefs or
        TreeSpecs of (args, kwargs) and of the results, in place of those in the header. `memo_bytes`: most bytes of
        remembered shapes. `perf_map`: write the functions' names where Linux perf finds them. `cpu`: of an artifact for
        several levels of processors, the one to run, such as "x86-64-v3"; "" means the best that this processor has.
        Raises ArtifactError when the artifact is damaged, untrusted, or made for another processor.
        """
        if not isinstance(artifact, Artifact):
            artifact = Artifact.deserialize(artifact, trust=trust)
        return LoadedExecutable(
            self, artifact, in_tree=in_tree, out_tree=out_tree, memo_bytes=memo_bytes, perf_map=perf_map, cpu=cpu
        )

    def run_async(self, function: Callable[[], _Result]) -> Future[_Result]:
        """Run a function in a thread of the client's, after those that were given before."""
        return Future(self._worker.submit(function))

    @functools.cached_property
    def _worker(self) -> concurrent.futures.ThreadPoolExecutor:
        return concurrent.futures.ThreadPoolExecutor(1, "shlo_disc")

    def trim(self) -> int:
        """Returns cached memory to the system; the bytes returned. What GPUs exchange arrays by goes, too."""
        if len(self.native_devices) > 1:
            _native.destroy_nccl_groups()
        return sum(native.trim() for native in self.native_devices)

    def reset_peak(self) -> None:
        """Sets the peak counter to what is live."""
        for native in self.native_devices:
            native.reset_peak()
