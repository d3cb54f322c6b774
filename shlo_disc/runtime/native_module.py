# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one place that imports the native core and gives it what it cannot reach by itself."""

from __future__ import annotations

import functools
from typing import Any

from shlo_disc.dtypes import DType, numpy_dtype
from shlo_disc.errors import ArtifactError
from shlo_disc.registry.custom_calls import find_custom_call

from . import _native
from .adapt import adapt_argument

Buffer = _native.Buffer

_native.set_adapt(adapt_argument)


@functools.cache
def install_blas() -> bool:
    """Hands SciPy's BLAS to the core; False when SciPy is missing, and dots then run as plain loops."""
    try:
        from scipy.linalg import cython_blas
    except ImportError:
        return False
    functions: dict[str, Any] = cython_blas.__pyx_capi__
    _native.install_blas(*(functions[name] for name in ("sgemm", "dgemm", "sgemv", "dgemv")))
    return True


def install_custom_call(name: str) -> None:
    """Hands a registered function to the core. Raises ArtifactError when there is none of that name."""
    found = find_custom_call(name)
    if found is None:
        raise ArtifactError(
            f"the program calls {name!r}, which is not registered in this process: "
            "call shlo_disc.register_custom_call before loading it"
        )
    _native.register_custom_call(name, found.address, found.convention == "ffi")


_LAPACK = {
    "sdcz": "geev gees gehrd geqp3 geqrf gesdd gesvd getrf gtsv potrf",
    "sd": "orgqr ormqr syevd sytrd",
    "cz": "heevd hetrd ungqr unmqr",
}
"""The functions of LAPACK that the core calls, by the first letters of their names."""


@functools.cache
def install_lapack() -> bool:
    """Hands SciPy's LAPACK to the core; False when SciPy is missing: programs that call LAPACK are then refused."""
    try:
        from scipy.linalg import cython_blas, cython_lapack
    except ImportError:
        return False
    names = [letter + name for letters, found in _LAPACK.items() for letter in letters for name in found.split()]
    functions = {name: cython_lapack.__pyx_capi__[name] for name in names}
    functions |= {name: cython_blas.__pyx_capi__[name] for name in ("strsm", "dtrsm", "ctrsm", "ztrsm")}
    _native.install_lapack(functions)
    return True


@functools.cache
def install_extension_dtype(dtype: DType) -> None:
    """Makes a dtype of ml_dtypes known to the core. Raises ImportError when ml_dtypes is missing."""
    _native.set_extension_dtype(dtype.name, numpy_dtype(dtype))
