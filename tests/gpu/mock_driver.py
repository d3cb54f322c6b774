# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA's driver without a GPU: a libcuda.so.1 of the functions that the runtime uses.

Addresses of device memory are none of the host's, so that a runtime that follows one ends with a signal. Work is done
as late as the driver may do it: when something waits for it, in order. So memory that is freed or written too
early shows in the numbers. What no caller may do (an address outside of what was allocated, a function without a
context, an asynchronous copy from memory that is not pinned) is kept in `mistakes`.

The library is one of C with a function for each name, which calls back into Python. A process has one, which must not
have loaded NVIDIA's own, and as the runtime keeps what it has asked of a GPU, tests that spoil one take another.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.gpu.mock_library import make_library
from tests.gpu.mock_streams import (
    BAD_IMAGE,
    CAPTURE_INVALIDATED,
    CAPTURE_UNSUPPORTED,
    ILLEGAL_ADDRESS,
    INVALID_CONTEXT,
    INVALID_VALUE,
    LEGACY,
    NOT_FOUND,
    OUT_OF_MEMORY,
    PER_THREAD,
    SUCCESS,
    UNKNOWN,
    Refused,
    Stream,
    Streams,
)
from tests.gpu.mock_streams import words_at as _words
from tests.gpu.mock_tensor_maps import GivenMap, TensorMaps

NAMES = {
    INVALID_VALUE: "CUDA_ERROR_INVALID_VALUE", OUT_OF_MEMORY: "CUDA_ERROR_OUT_OF_MEMORY",
    INVALID_CONTEXT: "CUDA_ERROR_INVALID_CONTEXT", BAD_IMAGE: "CUDA_ERROR_INVALID_PTX",
    NOT_FOUND: "CUDA_ERROR_NOT_FOUND", ILLEGAL_ADDRESS: "CUDA_ERROR_ILLEGAL_ADDRESS",
    CAPTURE_UNSUPPORTED: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    CAPTURE_INVALIDATED: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
}  # fmt: skip

FIRST_ADDRESS = 0x7F00_0000_0000_0000
"""No address of a process on x86-64 looks like this."""

ATTRIBUTES = {16: 132, 38: 50 << 20, 75: 9, 76: 0, 82: 65536, 97: 227 << 10}
POISON = 0xA5
FIRST_CONTEXT = 0x100

DEINITIALIZED = 4
"""The code of a driver that is shut down."""


Kernel = Callable[["MockDriver", tuple[int, ...], tuple[int, ...], Sequence[Any]], None]
"""Called with the driver, the sizes of the grid and of a block, and the parameters: tensor maps, then words."""


@dataclass
class Image:
    """The kernels of a module, each with its number of parameters that are words. `by_maps`: the number of those before
    them that are tensor maps, and the bytes of shared memory that a launch has to ask for."""

    kernels: Mapping[str, tuple[int, Kernel]]
    by_maps: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class OfThread:
    """Attributes of each thread. Those of threads that Python has not started, `threading.local` forgets."""

    def __init__(self) -> None:
        object.__setattr__(self, "_of", {})

    def __getattr__(self, name: str) -> Any:
        try:
            return self._of[threading.get_ident(), name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._of[threading.get_ident(), name] = value


def _bytes_at(address: int, count: int) -> np.ndarray:
    return np.frombuffer(_words(address, count, ctypes.c_ubyte), np.uint8)


class MockDriver(Streams, TensorMaps):
    """The driver. `memory`: bytes that all GPUs have together."""

    def __init__(self, memory: int = 1 << 30, devices: int = 4096):
        self.memory, self.devices = memory, devices
        self.images: dict[bytes, Image] = {}
        """By the bytes that are loaded."""
        self.fails: dict[str, int] = {}
        """Status that the next call of a function is to return."""
        self.mistakes: list[str] = []
        self.launches: list[str] = []
        self.kernel_seconds: dict[int, float] = {}
        """The least time that each kernel takes, by GPU."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._texts: dict[str, Any] = {}
        self._thread = OfThread()
        self._numbers = itertools.count(16)
        self._blocks: dict[int, np.ndarray] = {}
        self._pinned: dict[int, Any] = {}
        self._next = FIRST_ADDRESS
        self._handles: dict[int, Any] = {LEGACY: Stream(), PER_THREAD: Stream()}
        self._owners: dict[int, int] = {}
        self._ended: set[int] = set()
        self.begin_maps()

    # ---- what tests ask ---------------------------------------------------------------------------------------------

    @property
    def live_bytes(self) -> int:
        """The bytes of device memory that are allocated."""
        return sum(block.nbytes for block in self._blocks.values())

    @property
    def live_handles(self) -> list[str]:
        """The handles that were created and not destroyed."""
        return sorted(type(h).__name__ for number, h in self._handles.items() if number not in (LEGACY, PER_THREAD))

    def view(self, address: int, count: int) -> np.ndarray:
        """The bytes at an address of the GPU."""
        for start, block in self._blocks.items():
            if start <= address and address + count <= start + block.nbytes:
                return block[address - start : address - start + count]
        self.mistakes.append(f"{count} bytes at {address:#x} are not allocated")
        raise Refused(ILLEGAL_ADDRESS)

    def from_address(self, address: int) -> np.ndarray:
        """The bytes from an address of the GPU to the end of its block; none at that end or at an address of the host.

        A buffer without elements, such as the partials of a reduction that is not split, may lie at the end of a block.
        """
        for start, block in self._blocks.items():
            if start <= address <= start + block.nbytes:
                return block[address - start :]
        if address >= FIRST_ADDRESS:
            self.mistakes.append(f"a kernel is told {address:#x}, which is not allocated")
        return np.zeros(0, np.uint8)

    # ---- calls ------------------------------------------------------------------------------------------------------

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Calls the library's function `name`, and returns its status."""
        with self._lock:
            if name in self.fails and name != "cuStreamEndCapture":
                return self.fails.pop(name)
            function = getattr(self, name)
            contexts = getattr(self._thread, "contexts", None)
            if name not in _WITHOUT_CONTEXT:
                if not contexts:
                    self.mistakes.append(f"{name} without a context")
                    return INVALID_CONTEXT
                if contexts[-1] in self._ended:
                    return ILLEGAL_ADDRESS
            try:
                self.refuse_unsafe(name)
                if self.fails.pop(name, None):
                    self.invalidate_captures()  # the end of a capture ends it in any case
                function(*arguments[: function.__code__.co_argcount - 1])
            except Refused as error:
                if error.code == ILLEGAL_ADDRESS and contexts:
                    self._ended.add(contexts[-1])
                return error.code
            except Exception as error:
                self.mistakes.append(f"{name}: {error!r}")
                return UNKNOWN
            return SUCCESS

    def _context(self) -> int:
        """The context of this thread."""
        return self._thread.contexts[-1]

    def _new(self, out: int, thing: Any) -> None:
        number = next(self._numbers)
        self._handles[number] = thing
        _words(out, 1)[0] = number

    def _text(self, out: int, text: str) -> None:
        kept = self._texts.setdefault(text, ctypes.create_string_buffer(text.encode()))
        _words(out, 1)[0] = ctypes.addressof(kept)

    # ---- errors and devices -----------------------------------------------------------------------------------------

    def cuInit(self, flags: int) -> None: ...

    def cuDriverGetVersion(self, out: int) -> None:
        _words(out, 1, ctypes.c_int)[0] = 13000

    def cuGetErrorName(self, code: int, out: int) -> None:
        self._text(out, NAMES.get(_int(code), "CUDA_ERROR_UNKNOWN"))

    def cuGetErrorString(self, code: int, out: int) -> None:
        self._text(out, NAMES.get(_int(code), "unknown").removeprefix("CUDA_ERROR_").replace("_", " ").lower())

    def cuDeviceGetCount(self, out: int) -> None:
        _words(out, 1, ctypes.c_int)[0] = self.devices

    def cuDeviceGet(self, out: int, ordinal: int) -> None:
        _words(out, 1, ctypes.c_int)[0] = _int(ordinal)

    def cuDeviceGetName(self, out: int, length: int, device: int) -> None:
        ctypes.memmove(out, b"Mock GPU\0", 9)

    def cuDeviceTotalMem_v2(self, out: int, device: int) -> None:
        _words(out, 1)[0] = self.memory

    def cuDeviceGetAttribute(self, out: int, attribute: int, device: int) -> None:
        _words(out, 1, ctypes.c_int)[0] = ATTRIBUTES[_int(attribute)]

    def cuDevicePrimaryCtxRetain(self, out: int, device: int) -> None:
        _words(out, 1)[0] = FIRST_CONTEXT + _int(device)

    def cuDevicePrimaryCtxRelease_v2(self, device: int) -> None: ...

    def cuCtxPushCurrent_v2(self, context: int) -> None:
        if not hasattr(self._thread, "contexts"):
            self._thread.contexts = []
        self._thread.contexts.append(context)

    def cuCtxPopCurrent_v2(self, out: int) -> None:
        _words(out, 1)[0] = self._thread.contexts.pop()

    # ---- memory -----------------------------------------------------------------------------------------------------

    def cuMemGetInfo_v2(self, free: int, total: int) -> None:
        _words(free, 1)[0], _words(total, 1)[0] = self.memory - self.live_bytes, self.memory

    def cuMemAlloc_v2(self, out: int, count: int) -> None:
        if count <= 0:
            raise Refused(INVALID_VALUE)
        if self.live_bytes + count > self.memory:
            raise Refused(OUT_OF_MEMORY)
        self._blocks[self._next] = np.full(count, POISON, np.uint8)
        self._owners[self._next] = self._context() - FIRST_CONTEXT
        _words(out, 1)[0] = self._next
        self._next += -(-count // 512) * 512 + 512

    def cuMemFree_v2(self, address: int) -> None:
        self._finish()
        if self._blocks.pop(address, None) is None:
            self.mistakes.append(f"{address:#x} is not allocated, or was freed before")
            raise Refused(INVALID_VALUE)

    def cuMemHostAlloc(self, out: int, count: int, flags: int) -> None:
        memory = (ctypes.c_ubyte * count)()
        self._pinned[ctypes.addressof(memory)] = memory
        _words(out, 1)[0] = ctypes.addressof(memory)

    def cuMemFreeHost(self, address: int) -> None:
        del self._pinned[address]

    def _host(self, address: int, count: int) -> np.ndarray:
        """Pinned memory."""
        if not any(s <= address and address + count <= s + len(m) for s, m in self._pinned.items()):
            self.mistakes.append(f"an asynchronous copy of {count} bytes with memory that is not pinned")
        return _bytes_at(address, count)

    def cuMemcpyHtoDAsync_v2(self, to: int, source: int, count: int, stream: int) -> None:
        host = self._host(source, count)
        self._give(stream, lambda: self._copy(to, host))

    def cuMemcpyDtoHAsync_v2(self, to: int, source: int, count: int, stream: int) -> None:
        host = self._host(to, count)
        self._give(stream, lambda: np.copyto(host, self.view(source, count)))

    def cuMemcpyDtoDAsync_v2(self, to: int, source: int, count: int, stream: int) -> None:
        self._give(stream, lambda: self._copy(to, self.view(source, count)))

    def cuMemcpy2DAsync_v2(self, copy: int, stream: int) -> None:
        (_, _, kind, _, source, _, source_step, _, _, to_kind, _, to, _, to_step, count, rows) = _words(copy, 16)
        if (_int(kind), _int(to_kind)) != (2, 2) or min(source_step, to_step) < count:
            raise Refused(INVALID_VALUE)

        def work() -> None:
            for row in range(rows):
                self._copy(to + row * to_step, self.view(source + row * source_step, count))

        self._give(stream, work)

    def cuPointerGetAttribute(self, out: int, attribute: int, address: int) -> None:
        for start, block in self._blocks.items():
            if _int(attribute) == 9 and start <= address < start + block.nbytes:
                _words(out, 1, ctypes.c_int)[0] = self._owners[start]
                return
        raise Refused(INVALID_VALUE)

    def _copy(self, to: int, source: np.ndarray) -> None:
        self.view(to, source.nbytes)[...] = source

    def cuMemsetD8Async(self, to: int, byte: int, count: int, stream: int) -> None:
        self._give(stream, lambda: self.view(to, count).fill(byte & 0xFF))

    # ---- code -------------------------------------------------------------------------------------------------------

    def cuModuleLoadDataEx(self, out: int, image: int, count: int, options: int, values: int) -> None:
        data = ctypes.string_at(image)
        if data not in self.images:
            given = dict(zip(_words(options, count, ctypes.c_int), _words(values, count), strict=True))
            message = b"line 1: syntax error"
            ctypes.memmove(given[5], message, len(message))
            raise Refused(BAD_IMAGE)
        self._new(out, self.images[data])

    def cuModuleUnload(self, module: int) -> None:
        del self._handles[module]

    def cuModuleGetFunction(self, out: int, module: int, name: int) -> None:
        text = ctypes.string_at(name).decode()
        if text not in self._handles[module].kernels:
            raise Refused(NOT_FOUND)
        # A function is its module's, and is not destroyed: its handle is the address of a name that is kept.
        self._text(out, f"{module} {text}")

    def cuFuncGetAttribute(self, out: int, attribute: int, function: int) -> None:
        _words(out, 1, ctypes.c_int)[0] = 32

    def cuLaunchKernel(
        self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int,
        parameters: int, extra: int,
    ) -> None:  # fmt: skip
        number, name = ctypes.string_at(function).decode().split()
        image = self._handles[int(number)]
        (count, kernel), (maps, bytes_) = image.kernels[name], image.by_maps.get(name, (0, 0))
        addresses = _words(parameters, count + maps)
        words: list[Any] = [GivenMap.at(address) for address in addresses[:maps]]
        words += [_words(address, 1, ctypes.c_int64)[0] for address in addresses[maps:]]
        self.check_shared(function, _int(shared))
        if _int(shared) != bytes_:
            self.mistakes.append(f"{name} is given {_int(shared)} bytes of shared memory, and needs {bytes_}")
        grid, block = tuple(map(_int, (gx, gy, gz))), tuple(map(_int, (bx, by, bz)))
        if min(*grid, *block) < 1 or np.prod(block) > 1024 or grid[1] > 65535 or grid[2] > 65535:
            raise Refused(INVALID_VALUE)
        gpu = self._context() - FIRST_CONTEXT

        def work() -> None:
            self.launches.append(name)
            if seconds := self.kernel_seconds.get(gpu):
                self._changed.wait_for(lambda: False, seconds)
            kernel(self, grid, block, words)

        self._give(stream, work)


def _int(word: int) -> int:
    """The int that is the low half of a register."""
    return ctypes.c_int(word & 0xFFFFFFFF).value


_WITHOUT_CONTEXT = frozenset(
    name for name in dir(MockDriver)
    if name.startswith(("cuInit", "cuDriver", "cuGet", "cuDevice", "cuCtxP"))
)  # fmt: skip
FUNCTIONS = [name for name in dir(MockDriver) if name.startswith("cu")]


def _dispatch(name: str, *arguments: int) -> int:
    return mock_driver().call(name, arguments)


@functools.cache
def mock_driver() -> MockDriver:
    """The driver of this process from now on."""
    driver = MockDriver()
    make_library("libcuda.so.1", FUNCTIONS, _dispatch, closed=DEINITIALIZED)
    return driver
