# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C API by ctypes, for tests: NumPy arrays in, NumPy arrays out, errors as exceptions."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import shlo_disc

PARTS = ("kind", "argument", "code", "text")
"""The functions `disc_error_...` of an error."""

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Tensor(ctypes.Structure):
    """A DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Options(ctypes.Structure):
    """disc_load_options."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("trust", ctypes.c_int32), ("threads", ctypes.c_int32),
        ("memory_limit", ctypes.c_int64), ("cache_limit", ctypes.c_int64), ("memo_bytes", ctypes.c_int64),
        ("borrow", ctypes.c_int64), ("cpu", ctypes.c_char_p), ("unknown", ctypes.c_int64),
    ]  # fmt: skip


class CError(Exception):
    """An error of the C API."""

    def __init__(self, kind: str, argument: str | None, code: str, text: str):
        super().__init__(f"{kind}: {text}")
        self.kind, self.argument, self.code, self.text = kind, argument, code, text


def without_remedy(text: str) -> str:
    """A message about what is no artifact, whose end C and Python say in their own words; others are returned."""
    return text.partition(": compile a program by ")[0]


@functools.cache
def library() -> Any:
    native = ctypes.CDLL(shlo_disc.get_library())
    for name in PARTS:
        getattr(native, f"disc_error_{name}").restype = ctypes.c_char_p
    native.disc_result.restype = ctypes.POINTER(Tensor)
    native.disc_symbol.restype = ctypes.c_char_p
    for name in ("disc_plan_result_shape", "disc_plan_argument_shape"):
        getattr(native, name).restype = ctypes.POINTER(ctypes.c_int64)
    for name in ("disc_plan_result_bytes", "disc_plan_arena_bytes"):
        getattr(native, name).restype = ctypes.c_int64
    native.disc_argument_count.restype = native.disc_result_count.restype = ctypes.c_size_t
    return native


def checked(name: str, *args: Any) -> None:
    """Calls a function that may fail. Raises CError."""
    function = getattr(library(), name)
    function.restype = ctypes.c_void_p
    error = function(*args)
    if error is None:
        return
    found = [getattr(library(), f"disc_error_{part}")(ctypes.c_void_p(error)) for part in PARTS]
    library().disc_free_error(ctypes.c_void_p(error))
    kind, argument, code, text = (None if part is None else part.decode() for part in found)
    raise CError(kind, argument, code, text)


def tensor_of(array: np.ndarray) -> Tensor:
    """It refers to the array's memory, and keeps its own sizes alive."""
    sizes, steps = (
        (ctypes.c_int64 * max(1, array.ndim))(*numbers)
        for numbers in (array.shape, [step // array.itemsize for step in array.strides])
    )
    kind = array.dtype
    strides = None if array.flags.c_contiguous else ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    made = Tensor(
        array.ctypes.data, (1, 0), array.ndim, _CODES[kind.kind], 8 * kind.itemsize, 1,
        ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)), strides, 0,
    )  # fmt: skip
    made.keep = sizes, steps, array
    return made


def tensors_of(arrays: Sequence[np.ndarray]) -> Any:
    parts = [tensor_of(array) for array in arrays]
    made: Any = (Tensor * max(1, len(parts)))(*parts)
    made.keep = parts
    return made


def array_of(tensor: Tensor) -> np.ndarray:
    """A copy."""
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    kind = next(kind for kind, code in _CODES.items() if code == tensor.code)
    dtype = np.dtype("?" if kind == "b" else f"{kind}{tensor.bits // 8}")
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(tensor.data, size) if size else b"", dtype).reshape(shape)


class Plan:
    def __init__(self, pointer: ctypes.c_void_p):
        self.pointer = pointer

    def __del__(self) -> None:
        library().disc_free_plan(self.pointer)

    def run(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        given, taken = tensors_of(arguments), tensors_of(results)
        checked("disc_run", self.pointer, given, ctypes.c_size_t(len(arguments)), taken, ctypes.c_size_t(len(results)))


class Program:
    """A loaded program; its arguments and results are leaves."""

    def __init__(self, source: Path | bytes | None, pointer: Any = None, **options: Any):
        self.pointer = pointer or ctypes.c_void_p()
        self._source = source
        given = ctypes.byref(Options(**{"struct_size": ctypes.sizeof(Options), "trust": 1, **options}))
        if isinstance(source, Path):
            checked("disc_load", str(source).encode(), given, ctypes.byref(self.pointer))
        elif source is not None:
            checked("disc_load_bytes", source, ctypes.c_size_t(len(source)), given, ctypes.byref(self.pointer))

    def __del__(self) -> None:
        library().disc_free_program(self.pointer)

    def bind(self, *arguments: np.ndarray) -> Program:
        bound = ctypes.c_void_p()
        count = ctypes.c_size_t(len(arguments))
        checked("disc_bind", self.pointer, tensors_of(arguments), count, ctypes.byref(bound))
        return Program(None, bound)

    def plan(self, *sizes: int) -> Plan:
        """For the sizes of all arguments, one after the other."""
        return self._planned("disc_plan", sizes)

    def plan_symbols(self, *values: int) -> Plan:
        return self._planned("disc_plan_symbols", values)

    def _planned(self, name: str, numbers: Sequence[int]) -> Plan:
        pointer = ctypes.c_void_p()
        values = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
        checked(name, self.pointer, values, ctypes.c_size_t(len(numbers)), ctypes.byref(pointer))
        return Plan(pointer)

    def __call__(self, *arguments: np.ndarray) -> list[np.ndarray]:
        results = ctypes.c_void_p()
        count = ctypes.c_size_t(len(arguments))
        checked("disc_call", self.pointer, tensors_of(arguments), count, ctypes.byref(results))
        found = library().disc_result
        number = library().disc_result_count(self.pointer)
        arrays = [array_of(found(results, ctypes.c_size_t(i)).contents) for i in range(number)]
        assert not found(results, ctypes.c_size_t(number))
        library().disc_free_results(results)
        return arrays
