# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host callbacks (`jax.pure_callback`, `io_callback`, `jax.debug.print`): custom calls that come back to Python.

JAX emits callbacks for the platforms that it knows, and exports none. For ours, and in what is exported to be compiled
by us, a callback gets a number, and one function finds it. The number is a constant operand, for attributes belong to a
program's skeleton: each shape has a callback of its own, and all shapes shall be one program. Ordered callbacks need no
token: calls with side effects keep their order.
"""

from __future__ import annotations

import ctypes
import functools
import secrets
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shlo_disc.shape_dialect.custom_calls import PYTHON_CALLBACK, register_custom_call
from shlo_disc.shape_dialect.dtypes import BY_NAME, numpy_dtype

from .exporting import is_exporting, keep

_platforms: set[str] = set()
_functions: dict[int, Callable[..., Sequence[Any]]] = {}
_messages: dict[int, Any] = {}  # by thread, until its next failure; Python forgets what is local to threads of others


class _Buffer(ctypes.Structure):
    """`ShloDiscBuffer` of `include/shlo_disc_custom_call.h`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_char_p),
    )


class _Call(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_int64),
        ("operand_count", ctypes.c_int64),
        ("operands", ctypes.POINTER(_Buffer)),
        ("result_count", ctypes.c_int64),
        ("results", ctypes.POINTER(_Buffer)),
        ("attribute_count", ctypes.c_int64),
        ("attributes", ctypes.c_void_p),
    )


def install(platform: str) -> None:
    """Let JAX emit callbacks for `platform`."""
    _platforms.add(platform)
    install_for_exports()


@functools.cache
def install_for_exports() -> None:
    """Let JAX emit callbacks in what is exported to be compiled by us."""
    from jax._src import callback as jax_callback

    callback: Any = jax_callback
    register_custom_call(PYTHON_CALLBACK, _call_back, convention="c")
    emit_elsewhere = callback.emit_python_callback

    def emit(ctx: Any, function: Any, token: Any, operands: Any, *avals: Any, **options: Any) -> Any:
        platforms = tuple(ctx.module_context.platforms)
        if not is_exporting() and not (len(platforms) == 1 and platforms[0] in _platforms):
            return emit_elsewhere(ctx, function, token, operands, *avals, **options)
        return _emit(ctx, function, operands, options["has_side_effect"]), token, None

    callback.emit_python_callback = emit


class _Registered:
    """A callback that can be called as long as this lives: it is kept with the program."""

    def __init__(self, function: Callable[..., Sequence[Any]]):
        self.number = secrets.randbits(63)  # programs that another process has cached find nothing
        _functions[self.number] = function
        weakref.finalize(self, _functions.pop, self.number, None)


def _emit(ctx: Any, function: Callable[..., Sequence[Any]], operands: Sequence[Any], has_side_effect: bool) -> Any:
    from jax._src import ffi
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    registered = _Registered(function)
    keep(ctx, registered)
    value: Any = np.array(registered.number, np.int64)
    number = stablehlo.constant(ir.DenseElementsAttr.get(value))
    lowering = ffi.build_ffi_lowering_function(
        PYTHON_CALLBACK, has_side_effect=has_side_effect, skip_ffi_layout_processing=True
    )
    return lowering(ctx, number, *operands).results


def _array(buffer: _Buffer) -> np.ndarray:
    """The elements where they lie."""
    shape = tuple(buffer.dims[axis] for axis in range(buffer.rank))
    dtype = numpy_dtype(BY_NAME[buffer.dtype.decode()])
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(buffer.data)
    return np.frombuffer(memory, dtype).reshape(shape)


def _run(call: _Call) -> None:
    number, *operands = (_array(call.operands[i]) for i in range(call.operand_count))
    function = _functions.get(int(number))
    if function is None:
        raise RuntimeError("the callback is gone with the executable that was compiled, or belongs to another process")
    values = function(*(operand.copy() for operand in operands))
    if len(values) != call.result_count:
        raise RuntimeError(
            f"Mismatched number of outputs from callback. Expected: {call.result_count}, Actual: {len(values)}"
        )
    for index, value in enumerate(values):
        _store(index, np.asarray(value), call.results[index])


def _store(index: int, value: np.ndarray, buffer: _Buffer) -> None:
    from jax._src import dtypes

    target = _array(buffer)
    value = np.asarray(dtypes.canonicalize_value(value)) if value.dtype != target.dtype else value
    for what, expected, actual in (("shape", target.shape, value.shape), ("dtype", target.dtype, value.dtype)):
        if expected != actual:
            raise RuntimeError(
                f"Incorrect output {what} for return value #{index}: Expected: {expected}, Actual: {actual}"
            )
    target[...] = value


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Call))
def _call_back(call: Any) -> int | None:
    """The function that programs call. Returns NULL, or the text of the exception that ended the callback."""
    try:
        _run(call.contents)
    except BaseException as error:
        text = f"{type(error).__name__}: {error}".encode(errors="replace").replace(b"\0", b"")
        _messages[threading.get_ident()] = message = ctypes.create_string_buffer(text)
        return ctypes.addressof(message)
    return None
