# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machine of a measurement: the processor, the versions, and the speed of copying memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from benchmarks.backends import THREADS
from benchmarks.timing import environment

PACKAGES = ("shlo_disc", "jax", "torch", "onnx", "onnxruntime", "openvino", "iree-base-compiler", "llvmlite", "numpy")

AVX2 = {
    "SHLO_DISC_CPU": "x86-64-v3",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}
"""The switches that hold libraries to AVX2. ONNX Runtime has none: it uses what the processor has."""


def machine(small: bool = False, switches: Mapping[str, str] = {}) -> dict[str, Any]:
    """The machine as a part of the JSON file, with the variables that hold libraries to less than it has."""
    sizes = (1 << 20,) if small else (1 << 20, 64 << 20, 512 << 20)
    return {
        "environment": ", ".join([environment(), *(f"{name}={value}" for name, value in switches.items())]),
        "threads": THREADS,
        "versions": {name: _version(name) for name in PACKAGES},
        "copy_bytes_per_second": {str(size): copy_bandwidth(size) for size in sizes},
    }


def copy_bandwidth(size: int, rounds: int = 7) -> float:
    """Bytes a second, read plus written, of a copy of `size` bytes by all threads; the best of some rounds."""
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    parts = list(zip(np.array_split(target, THREADS), np.array_split(source, THREADS), strict=True))
    best = float("inf")
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(rounds):
            start = time.perf_counter()
            list(pool.map(lambda part: np.copyto(*part), parts))
            best = min(best, time.perf_counter() - start)
    return 2 * size / best


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
