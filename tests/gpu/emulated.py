# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for GPUs on a machine without one: the runtime over the mock driver, whose kernels the emulator runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import shlo_disc
from shlo_disc.lowering_gpu import device_module
from shlo_disc.runtime import Client, LoadedExecutable
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from tests.gpu.mock_driver import Image, MockDriver, mock_driver
from tests.gpu.mock_tensor_maps import GivenMap
from tests.ir.gpu_emulator import Emulator, dtype_of
from tests.ir.gpu_hopper_state import TensorMap

_SHARED = 1024
"""The GPU of programs that do not care what it has done before. What a process has once used of a GPU it keeps."""

_ordinals = itertools.count(_SHARED + 1)
"""GPUs that no test of the driver has."""


class _EmulatedKernel:
    """A kernel of a program that has been compiled."""

    def __init__(self, emulator: Emulator, context: ir.Context, name: str):
        self.emulator, self.context, self.name = emulator, context, name
        self.types = list(emulator.functions[name].regions[0].blocks[0].arguments)
        self.maps = sum(str(value.type) == "!llvm.ptr" for value in self.types)

    def __call__(self, driver: MockDriver, grid: Sequence[int], block: Sequence[int], words: Sequence[Any]) -> None:
        with self.context, ir.Location.unknown():
            assert block[0] == self.emulator.threads(self.name)
            pointers = [
                _flat(driver, word, dtype_of(value.type))
                for value, word in zip(self.types, words, strict=True)
                if isinstance(value.type, ir.MemRefType)
            ]
            maps = [_map_of(driver, word) for word in words if isinstance(word, GivenMap)]
            self.emulator.launch(self.name, grid[0], pointers, words[len(maps) + len(pointers) :], maps)


def _flat(driver: MockDriver, address: int, dtype: np.dtype) -> np.ndarray:
    """The memory from an address of the GPU to the end of what was allocated there; nothing at the host's addresses."""
    data = driver.from_address(address)
    return data[: len(data) // dtype.itemsize * dtype.itemsize].view(dtype)


def _map_of(driver: MockDriver, given: GivenMap) -> TensorMap:
    """A map of elements whose type does not matter to copies."""
    strides = (1, *(stride // given.element_bytes for stride in given.strides))
    data = _flat(driver, given.address, np.dtype(f"i{given.element_bytes}"))
    return TensorMap(data, given.sizes, strides, given.box)


def install(executable: shlo_disc.Executable) -> None:
    """Make the driver able to run an executable's kernels."""
    context = make_context()
    with context, ir.Location.unknown():
        emulator = Emulator(device_module(ir.Module.parse(executable.as_text("host"))))
        kernels = {
            name: (len(kernel.types) - kernel.maps, kernel)
            for name in emulator.functions
            for kernel in [_EmulatedKernel(emulator, context, name)]
        }
    by_maps = {name: (k.maps, emulator.shared_bytes(name)) for name, (_, k) in kernels.items() if k.maps}
    mock_driver().images[bytes(executable.artifact.sections["ptx"])] = Image(kernels, by_maps)


def fresh_client(**options: Any) -> Client:
    """A client for a GPU that has done nothing yet. NVIDIA's own libraries cannot use it."""
    mock_driver()
    return Client.of_gpu(next(_ordinals), **{"uses_libraries": False, **options})


def shared_client() -> Client:
    """A client with memory of its own, for a GPU that others use as well."""
    mock_driver()
    return Client.of_gpu(_SHARED, uses_libraries=False)


def loaded(executable: shlo_disc.Executable, client: Client) -> LoadedExecutable:
    """An executable on a GPU."""
    install(executable)
    return client.load(executable.artifact)
