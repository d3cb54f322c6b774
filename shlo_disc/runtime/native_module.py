# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one place that imports the native core and gives it what it cannot reach by itself."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from shlo_disc.errors import ArtifactError
from shlo_disc.shape_dialect.custom_calls import find_custom_call
from shlo_disc.shape_dialect.dtypes import DType, numpy_dtype

from . import _native
from .adapt import adapt_argument
from .described import buffer_text
from .jax_arrays import jax_elements

Buffer = _native.Buffer
CallCount = _native.CallCount
Gpu = _native.Gpu
GpuModule = _native.GpuModule
available_memory = _native.available_memory
ProgramTable = _native.ProgramTable
evaluate_steps = _native.evaluate_steps
finish_runs = _native.finish_runs
interpret = _native.interpret
leave_job = _native.leave_job
observe_programs = _native.observe_programs
open_nccl = _native.open_nccl
read_program = _native.read_program
release = _native.release


class PluginPrograms:
    """The programs that the plugin has compiled.

    table: the native one. on_clear: called by `clear`, for what others know of the programs.
    """

    def __init__(self) -> None:
        self.table = _native.plugin_programs()
        self.on_clear: list[Callable[[], None]] = []

    @property
    def counts(self) -> dict[str, int]:
        """Counts of programs by how they were served: compiled as they were, with symbols, as instances, and so on."""
        counts: dict[str, int] = self.table.counts
        return counts

    @property
    def bytes(self) -> int:
        """The memory that they take."""
        return int(self.table.bytes)

    def clear(self) -> None:
        """Forget them, and the functions that they are of."""
        self.table.clear()
        for forget in self.on_clear:
            forget()


@functools.cache
def plugin_programs() -> PluginPrograms:
    """The programs that the plugin has compiled in this process."""
    return PluginPrograms()


setattr(Buffer, "__repr__", buffer_text)  # noqa: B010 - the class of the core takes it, and its stub has none
_native.set_adapt(adapt_argument)
_native.set_main_thread(threading.main_thread().ident)
_native.set_jax_elements(jax_elements)


_BLAS = ("sgemm", "dgemm", "sgemv", "dgemv")
_BLAS_CAPSULE = b"shlo_disc.blas"


@functools.cache
def install_blas() -> bool:
    """Hands SciPy's BLAS to the core; False when SciPy is missing, and dots then run as plain loops."""
    functions = _blas_of_wheel() or _blas_of_module()
    if functions is not None:
        _native.install_blas(*(functions[name] for name in _BLAS))
    return functions is not None


def _blas_of_module() -> Mapping[str, Any] | None:
    try:
        from scipy.linalg import cython_blas
    except ImportError:
        return None
    functions: Mapping[str, Any] = cython_blas.__pyx_capi__
    return functions


def _blas_of_wheel() -> Mapping[str, Any] | None:
    """The same functions from the library that SciPy's wheels carry, without the import of `scipy.linalg`.

    That import takes as long as the rest of a start from the compile cache. None where SciPy is built otherwise.
    """
    scipy = importlib.util.find_spec("scipy")
    if scipy is None or scipy.origin is None:
        return None
    libraries = list(Path(scipy.origin).parents[1].glob("scipy.libs/libscipy_openblas-*.so"))
    if len(libraries) != 1:
        return None
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    try:
        library = ctypes.CDLL(str(libraries[0]))
        addresses = {name: ctypes.cast(library[f"scipy_{name}_"], ctypes.c_void_p) for name in _BLAS}
    except (OSError, AttributeError):
        return None
    return {name: capsule(address, _BLAS_CAPSULE, None) for name, address in addresses.items()}


def install_custom_call(name: str) -> None:
    """Hands a registered function to the core. Raises ArtifactError when there is none of that name."""
    found = find_custom_call(name)
    if found is None:
        raise ArtifactError(
            f"the program calls {name!r}, which is not registered in this process: "
            "call shlo_disc.register_custom_call before loading it"
        )
    _native.register_custom_call(name, found.address, found.convention == "ffi")


@functools.cache
def install_lapack() -> bool:
    """Hands SciPy's LAPACK to the core; False when SciPy is missing: programs that call LAPACK are then refused."""
    try:
        from scipy.linalg import cython_blas, cython_lapack
    except ImportError:
        return False
    known = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
    _native.install_lapack({name: known[name] for name in _native.lapack_names()})
    return True


@functools.cache
def install_extension_dtype(dtype: DType) -> None:
    """Makes a dtype of ml_dtypes known to the core. Raises ImportError when ml_dtypes is missing."""
    _native.set_extension_dtype(dtype.name, numpy_dtype(dtype))
