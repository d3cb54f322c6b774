# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python gpu_replay.py FILE.npz [--untimed]`: run recorded calls on an NVIDIA GPU, compare their results, time some.

Needs the GPU's driver, NumPy and ml_dtypes, and nothing of the compiler. What follows a buffer in memory is looked at
after each call. Times are given as the share of what a copy of as many bytes takes on the same device.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  # NumPy's name for bfloat16
import numpy as np

GUARD = 4096
"""Bytes after each buffer that have to stay as they are."""

FILL = 0xA5

Pointers = list[int]


class Driver:
    """The functions of libcuda that are used here, on device 0. Raises RuntimeError with the driver's word for it."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """One function of the driver."""
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()} ({status})")

    def name(self) -> str:
        """The device's name."""
        text = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", text, 100, 0)
        return text.value.decode()

    def allocate(self, size: int) -> int:
        """Device memory of `size` bytes, of FILL throughout."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        self.call("cuMemsetD8_v2", pointer, FILL, ctypes.c_size_t(size))
        return pointer.value

    def free(self, pointer: int) -> None:
        """Give memory back."""
        self.call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def write(self, pointer: int, data: np.ndarray) -> None:
        """Copy to the device."""
        if data.nbytes:
            address = ctypes.c_void_p(data.ctypes.data)
            self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), address, ctypes.c_size_t(data.nbytes))

    def read(self, pointer: int, size: int) -> np.ndarray:
        """Copy from the device, as bytes."""
        data = np.empty(size, np.uint8)
        if size:
            address = ctypes.c_void_p(data.ctypes.data)
            self.call("cuMemcpyDtoH_v2", address, ctypes.c_uint64(pointer), ctypes.c_size_t(size))
        return data

    def functions(self, ptx: bytes, names: list[str]) -> dict[str, ctypes.c_void_p]:
        """A module's kernels."""
        module, found = ctypes.c_void_p(), {}
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx))
        for name in names:
            found[name] = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(found[name]), module, name.encode())
        return found

    def launch(self, function: ctypes.c_void_p, blocks: int, threads: int, words: list[int]) -> None:
        """Launch a kernel, all of whose arguments are words of 8 bytes."""
        values = (ctypes.c_uint64 * len(words))(*words)
        step = ctypes.sizeof(ctypes.c_uint64)
        places = (ctypes.c_void_p * len(words))(*(ctypes.addressof(values) + step * i for i in range(len(words))))
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, places, None)

    def milliseconds(self, work: Callable[[], None], times: int = 20) -> float:
        """The median of `times` measurements by the device's own clock, after three that do not count."""
        first, last, found = ctypes.c_void_p(), ctypes.c_void_p(), []
        for event in (first, last):
            self.call("cuEventCreate", ctypes.byref(event), 0)
        for number in range(times + 3):
            self.call("cuEventRecord", first, None)
            work()
            self.call("cuEventRecord", last, None)
            self.call("cuEventSynchronize", last)
            elapsed = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(elapsed), first, last)
            if number >= 3:
                found.append(elapsed.value)
        return float(np.median(found))


class Replay:
    """The programs of a file on one device."""

    def __init__(self, path: str | Path):
        self.data, self.driver, self.failures = np.load(path), Driver(), 0

    def run(self, is_timed: bool) -> int:
        """All of them; returns how many calls failed."""
        programs, calls = json.loads(self.data["programs"].tobytes()), 0
        print(self.driver.name())
        for program in programs:
            ptx = self.data[f"{program['name']}/ptx"].tobytes() + b"\0"
            functions = self.driver.functions(ptx, list(program["threads"]))
            calls += len(program["calls"])
            for call in program["calls"]:
                self.check(call, functions, program["threads"])
            for call in program["timed"] if is_timed else []:
                self.time(call, functions, program["threads"])
        print(f"{len(programs)} programs, {calls} calls, {self.failures} failures")
        return self.failures

    def launcher(
        self, call: dict[str, Any], functions: dict[str, Any], threads: dict[str, int], pointers: Pointers
    ) -> Callable[[], None]:
        """A function that makes the launches of a call."""

        def launch() -> None:
            for one in call["launches"]:
                words = [pointers[block] + offset for block, offset in one["pointers"]] + one["sizes"]
                if one["blocks"]:
                    self.driver.launch(functions[one["kernel"]], one["blocks"], threads[one["kernel"]], words)

        return launch

    def check(self, call: dict[str, Any], functions: dict[str, Any], threads: dict[str, int]) -> None:
        """Run a call and say what is wrong with it."""
        key = call["key"]
        pointers = [self.driver.allocate(size + GUARD) for size in call["bytes"]]
        for number, pointer in enumerate(pointers):
            self.driver.write(pointer, self.data[f"{key}/block/{number}"])
        self.launcher(call, functions, threads, pointers)()
        self.driver.call("cuCtxSynchronize")
        wrong = []
        for number, (pointer, size) in enumerate(zip(pointers, call["bytes"], strict=True)):
            if (self.driver.read(pointer + size, GUARD) != FILL).any():
                wrong.append(f"wrote past block {number}")
        for number, block in enumerate(call["results"]):
            got = self.driver.read(pointers[block], call["bytes"][block]).view(call["dtypes"][number])
            want = self.data[f"{key}/want/{number}"].view(call["dtypes"][number])
            wrong += difference(got, want, call["tolerance"], number)
        for pointer in pointers:
            self.driver.free(pointer)
        self.failures += bool(wrong)
        for text in wrong:
            print(f"{key}: {text}")

    def time(self, call: dict[str, Any], functions: dict[str, Any], threads: dict[str, int]) -> None:
        """Time a call, and a copy that reads and writes as many bytes."""
        driver, half = self.driver, call["moved"] // 2
        pointers = [driver.allocate(size) for size in call["bytes"]]
        source, target = driver.allocate(half), driver.allocate(half)

        def copy() -> None:
            size = ctypes.c_size_t(half)
            driver.call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(target), ctypes.c_uint64(source), size, None)

        ours, copied = driver.milliseconds(self.launcher(call, functions, threads, pointers)), driver.milliseconds(copy)
        rate = call["moved"] / copied / 1e6
        print(f"{call['key']}: {ours:.3f} ms, a copy {copied:.3f} ms ({rate:.0f} GB/s): {copied / ours:.2f} of it")
        for pointer in (*pointers, source, target):
            driver.free(pointer)


def difference(got: np.ndarray, want: np.ndarray, tolerance: float, number: int) -> list[str]:
    """What is wrong with a result, for a tolerance per unit of the largest right element."""
    if want.dtype.kind in "iub":
        count = int((got != want).sum())
        return [f"result {number}: {count} of {want.size} elements differ"] if count else []
    got, want = got.astype(np.float64), want.astype(np.float64)
    scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
    if np.allclose(got, want, rtol=0, atol=tolerance * scale, equal_nan=True):
        return []
    with np.errstate(invalid="ignore"):
        return [f"result {number}: off by {np.nanmax(np.abs(got - want)):g}, {tolerance * scale:g} is allowed"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="what gpu_record.py wrote")
    parser.add_argument("--untimed", action="store_true", help="take no times, under compute-sanitizer for one")
    options = parser.parse_args()
    sys.exit(1 if Replay(options.file).run(not options.untimed) else 0)
