# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The locations of NVIDIA's libraries, for the native core to open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _native

_BLAS = ("libcublasLt.so.13", "libcublasLt.so.12")
_NCCL = ("libnccl.so.2",)
_FFT = ("libcufft.so.12", "libcufft.so.11")
_SOLVER = ("libcusolver.so.12", "libcusolver.so.11")
_CUBLAS = ("libcublas.so.13", "libcublas.so.12")


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


def solver_names() -> list[str]:
    """The same for cuSOLVER, which computes linear algebra."""
    return _names_of("cusolver", _SOLVER)


def cublas_names() -> list[str]:
    """The same for cuBLAS, which solves triangular equations."""
    return _names_of("cublas", _CUBLAS)


def open_for(calls: Iterable[Mapping[str, Any]]) -> None:
    """Open the libraries that the calls of a program need. Raises DeviceError where one is not there.

    calls: as the header of an artifact has them.
    """
    targets = [call["target"] for call in calls]
    if any(target.startswith("fft_") for target in targets):
        _native.open_fft(fft_names())
    if any(target.startswith("lapack_") for target in targets):
        _native.open_solver(solver_names(), cublas_names())


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
