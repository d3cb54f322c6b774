# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A client of PJRT in Python, pypjrt, with arrays of float32; and the same in C++, the example of the repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shlo_disc
from tests.pjrt.plugin import ROOT

pypjrt: Any = pytest.importorskip("pypjrt")
client_module: Any = pytest.importorskip("pypjrt.client")
abi: Any = pytest.importorskip("pypjrt._abi.pjrt_0_114")


def made(path: str, **options: object) -> Any:
    """A client of a plugin's library."""
    plugin = pypjrt.Plugin(path)
    plugin.initialize()
    return client_module.Client(plugin, options=options)


def opened(**options: object) -> Any:
    """A client of the plugin without Python."""
    return made(shlo_disc.get_pjrt_plugin(), **options)


def put(client: Any, array: np.ndarray, device: int = 0) -> Any:
    """A buffer of float32."""
    data = np.ascontiguousarray(array).view(np.uint8).reshape(-1).data
    with client.device(device) as place:
        return client.buffer_from_host(data, abi.PJRT_Buffer_Type_F32, list(array.shape), place)


def get(buffer: Any) -> np.ndarray:
    """The elements of a buffer of float32."""
    return np.frombuffer(buffer.to_host(), np.float32).reshape(buffer.dimensions)


def call(client: Any, executable: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """The results, of float32, for arguments of float32."""
    return [get(result) for result in executable(*(put(client, array) for array in arrays))]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def build_client(folder: Path) -> Path:
    """The example in C++; skips the test without a compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    binary, headers = folder / "client", Path(shlo_disc.get_include()) / "pjrt"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{headers}"]
    subprocess.run([compiler, *flags, str(ROOT / "examples/c/pjrt_client.cpp"), "-ldl", "-o", str(binary)], check=True)
    return binary
