# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the test programs, and the library with a sanitizer."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shlo_disc

PROGRAMS = Path(__file__).with_name("programs")
ROOT = Path(__file__).parents[2]
SANITIZERS = {"asan": "address,undefined", "tsan": "thread"}


def build(name: str, folder: Path, library: Path, sanitizer: str = "") -> Path:
    """A program of the folder `programs`, linked with a library of the C API; skips the test without a compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    binary = folder / Path(name).stem
    flags = [f"-fsanitize={SANITIZERS[sanitizer]}"] if sanitizer else []
    command = [compiler, "-std=c++17", "-O1", "-g1", "-Wall", "-Wextra", "-Werror", "-pthread", *flags]
    links = [f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-lshlo_disc_runtime"]
    source = str(PROGRAMS / name)
    subprocess.run([*command, f"-I{shlo_disc.get_include()}", source, "-o", str(binary), *links], check=True)
    return binary


def build_c(name: str, folder: Path) -> Path:
    """A program in C11 of the folder `programs`; skips the test without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no cc")
    library, binary = Path(shlo_disc.get_library()), folder / Path(name).stem
    links = [f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-lshlo_disc_runtime"]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{shlo_disc.get_include()}"]
    subprocess.run([compiler, *flags, str(PROGRAMS / name), "-o", str(binary), *links], check=True)
    return binary


@functools.cache
def sanitized(sanitizer: str, target: str, folder: Path) -> Path:
    """The build folder with the library or the module of Python (CMake's targets), watched by a sanitizer.

    It takes minutes. The folder `DISC_SANITIZED` names keeps it.
    """
    kept = os.environ.get("DISC_SANITIZED")
    build_folder = (Path(kept) if kept else folder) / sanitizer
    cmake = shutil.which("cmake") or str(Path(sys.executable).with_name("cmake"))
    configure = [
        cmake, "-S", str(ROOT), "-B", str(build_folder), "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1", f"-DDISC_SANITIZE={SANITIZERS[sanitizer]}",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]  # fmt: skip
    if not (build_folder / "CMakeCache.txt").exists():
        subprocess.run(configure, check=True, capture_output=True)
    command = [cmake, "--build", str(build_folder), "--target", target, "--parallel", "2"]
    subprocess.run(command, check=True, capture_output=True)
    return build_folder


def sanitized_library(sanitizer: str, folder: Path) -> Path:
    """`libshlo_disc_runtime.so`, watched by a sanitizer."""
    return sanitized(sanitizer, "shlo_disc_runtime", folder) / "libshlo_disc_runtime.so"


def sanitized_module(sanitizer: str, folder: Path) -> Path:
    """The native module of Python."""
    (found,) = sanitized(sanitizer, "_native", folder).glob("_native.*.so")
    return found


def scipy_blas() -> str:
    """The library that SciPy's wheel carries, which Python's runtime uses."""
    found = importlib.util.find_spec("scipy")
    libraries = list(Path(str(found and found.origin)).parents[1].glob("scipy.libs/libscipy_openblas-*.so"))
    if not libraries:
        pytest.skip("SciPy is not from a wheel")
    return str(libraries[0])


def run(binary: Path, *args: object, data: bytes = b"", **environment: str) -> bytes:
    """Runs a program, which must end with 0, and returns its output."""
    found = subprocess.run(
        [binary, *map(str, args)], input=data, capture_output=True, check=False, env={**os.environ, **environment}
    )
    told = (found.stdout[-2000:] + found.stderr[-6000:]).decode(errors="replace")
    assert found.returncode == 0, told
    return found.stdout
