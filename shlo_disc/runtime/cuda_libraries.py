# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where NVIDIA's libraries are, for the native core to open."""

from __future__ import annotations

_BLAS = ("libcublasLt.so.13", "libcublasLt.so.12")


def blas_names() -> list[str]:
    """Paths and names that cuBLASLt may be found by, best first.

    A library that is loaded already, or one of NVIDIA's Python packages, is found by cuda-pathfinder if that is
    installed; others are where the dynamic linker looks.
    """
    found = _path_of("cublasLt")
    return [*([] if found is None else [found]), *_BLAS]


def _path_of(library: str) -> str | None:
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    except ImportError:
        return None
    try:
        return load_nvidia_dynamic_lib(library).abs_path
    except DynamicLibNotFoundError:
        return None
