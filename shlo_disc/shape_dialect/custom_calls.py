# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions that users register for custom calls. Knows neither the compiler nor the runtime: both look here."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shlo_disc.errors import OptionError

CONVENTIONS = ("c", "ffi")
PYTHON_CALLBACK = "shlo_disc_python_callback"
COMPILED_PROGRAM = "shlo_disc_program"
OF_THIS_PROCESS = {PYTHON_CALLBACK: "a function of Python", COMPILED_PROGRAM: "another compiled program"}
"""Functions of ours that find by a number what only this process has, and what that is."""

RAGGED_DOT = "shlo_disc.ragged_dot"
"""Our custom call for products of groups, which front ends write."""

CSR_PRODUCT = "cpu_csr_sparse_dense_ffi"
"""JAX's custom call on CPUs for the product of a sparse matrix in compressed rows."""


@dataclass(frozen=True)
class CustomCall:
    """A registered function: where it is and how it is called. `owner` keeps the object alive that was given."""

    address: int
    convention: str
    owner: Any


_FUNCTION_POINTER: Any = ctypes.CFUNCTYPE(None).__mro__[1]
"""The base class of all of ctypes' function pointers."""

_registered: dict[str, CustomCall] = {}
_retired: list[CustomCall] = []
_lock = threading.Lock()


def is_callback(name: str) -> bool:
    """Tells whether a custom call is one to Python, as it is in programs that JAX lowers for itself."""
    return "python" in name and name.endswith("_callback")


def register_custom_call(name: str, target: Any, *, convention: str | None = None) -> None:
    """Register a native function that programs call as `stablehlo.custom_call @name` (`jax.ffi.ffi_call(name, ...)`).

    target: a ctypes function pointer, an integer address, or a PyCapsule such as `jax.ffi.pycapsule` makes.
    convention: "c", the plain C signature of `runtime/include/shlo_disc_custom_call.h`; or "ffi", a handler of XLA's
    FFI. By default PyCapsules are handlers, and everything else has the plain signature.

    The threads that run programs call the function, several at once and without Python's lock. It gets the arrays of
    the run, in which the sizes of symbolic dimensions are numbers, and the attributes of the call. If it returns an
    error, the call of the program raises CustomCallError.

    Register a function before you compile programs or load artifacts that call it: artifacts contain the names of the
    functions, but not their code. If you register a name again, programs loaded from then on call the new function.
    Registered functions are kept alive until the process ends; for a plain address, you must keep the code alive.
    Raises OptionError for any other `target` or `convention`.
    """
    if not isinstance(name, str) or not name:
        raise OptionError(f"the name of a custom call is a string, not {name!r}")
    address, is_handler = _address(target)
    chosen = convention or ("ffi" if is_handler else "c")
    if chosen not in CONVENTIONS:
        raise OptionError(f"convention must be one of {', '.join(CONVENTIONS)}, not {convention!r}")
    with _lock:
        if name in _registered:
            _retired.append(_registered[name])
        _registered[name] = CustomCall(address, chosen, target)


def find_custom_call(name: str) -> CustomCall | None:
    """The function registered under a name."""
    return _registered.get(name)


def registered_conventions() -> list[tuple[str, str]]:
    """The names that are registered, each with how it is called, sorted."""
    return sorted((name, found.convention) for name, found in list(_registered.items()))


def declare_conventions(names: Iterable[Sequence[str]]) -> None:
    """Let this process compile calls of what another has registered, as `registered_conventions` tells; run none."""
    with _lock:
        _registered.clear()
        _registered.update({name: CustomCall(0, convention, None) for name, convention in names})


def _address(target: Any) -> tuple[int, bool]:
    """The address of a function, and whether it is a handler of XLA's FFI."""
    if isinstance(target, int) and not isinstance(target, bool):
        address, is_handler = target, False
    elif isinstance(target, _FUNCTION_POINTER):
        address, is_handler = ctypes.cast(target, ctypes.c_void_p).value or 0, False
    elif type(target).__name__ == "PyCapsule":
        name = _capsule_function("PyCapsule_GetName", ctypes.c_char_p, (ctypes.py_object,))(target)
        pointer = _capsule_function("PyCapsule_GetPointer", ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p))
        address, is_handler = pointer(target, name), True
    else:
        raise OptionError(f"a custom call is a ctypes function, an address or a PyCapsule, not {target!r}")
    if address <= 0:
        raise OptionError("the address of a custom call is null")
    return address, is_handler


def _capsule_function(name: str, result: Any, arguments: tuple[Any, ...]) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


__all__ = [
    "CustomCall", "declare_conventions", "find_custom_call", "register_custom_call", "registered_conventions",
]  # fmt: skip
