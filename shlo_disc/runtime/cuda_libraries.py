# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The locations of NVIDIA's libraries, for the native core to open."""

from __future__ import annotations

from collections.abc import Sequence

_BLAS = ("libcublasLt.so.13", "libcublasLt.so.12")
_NCCL = ("libnccl.so.2",)
_FFT = ("libcufft.so.12", "libcufft.so.11")


def blas_names() -> list[str]:
    """Paths and names that cuBLASLt may be found by, best first.

    A library that is loaded already, or one of NVIDIA's Python packages, is found by cuda-pathfinder if that is
    installed; others are where the dynamic linker looks.
    """
    return _names_of("cublasLt", _BLAS)


def nccl_names() -> list[str]:
    """The same for NCCL, which programs of several GPUs exchange arrays by."""
    return _names_of("nccl", _NCCL)


def fft_names() -> list[str]:
    """The same for cuFFT, which computes Fourier transforms."""
    return _names_of("cufft", _FFT)


def _names_of(library: str, names: Sequence[str]) -> list[str]:
    found = _path_of(library)
    return [*([] if found is None else [found]), *names]


def _path_of(library: str) -> str | None:
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    except ImportError:
        return None
    try:
        return load_nvidia_dynamic_lib(library).abs_path
    except DynamicLibNotFoundError:
        return None
