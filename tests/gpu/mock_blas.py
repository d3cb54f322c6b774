# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cuBLASLt without a GPU: a shared library of the functions that the runtime uses, over the mock driver and NumPy.

A product is computed as late as its stream allows, with the factors rounded where TF32 is asked for, and its workspace
is spoilt. What no caller may do (descriptors that do not fit each other, an algorithm of another problem, addresses
that are aligned worse than was said, no context) is kept in `mistakes`.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tests.gpu.mock_driver import mock_driver
from tests.gpu.mock_library import MockFunctions, Refused, make_library

SUCCESS, INVALID_VALUE, EXECUTION_FAILED, NOT_SUPPORTED, UNKNOWN = 0, 7, 13, 15, 14
NAMES = {
    1: "CUBLAS_STATUS_NOT_INITIALIZED", INVALID_VALUE: "CUBLAS_STATUS_INVALID_VALUE",
    EXECUTION_FAILED: "CUBLAS_STATUS_EXECUTION_FAILED", NOT_SUPPORTED: "CUBLAS_STATUS_NOT_SUPPORTED",
    UNKNOWN: "CUBLAS_STATUS_INTERNAL_ERROR",
}  # fmt: skip

TYPES = {0: np.float32, 1: np.float64, 2: np.float16, 3: np.int8, 10: np.int32, 14: ml_dtypes.bfloat16}
F32, F64, I32, F32_BY_TF32 = 68, 70, 72, 77
TAKEN = {
    (F32, 0, 0, 0), (F32_BY_TF32, 0, 0, 0), (F64, 1, 1, 1), (F32, 0, 2, 0), (F32, 0, 14, 0), (F32, 0, 2, 2),
    (F32, 0, 14, 14), (I32, 10, 3, 10),
}  # fmt: skip
"""Compute type, scale type, and the types of A and B and of C and D."""

NO_EPILOGUE, BIAS = 1, 4
WITH_EPILOGUE = {kinds for kinds in TAKEN if kinds[1] == 0}
"""Entries of `TAKEN` that epilogues are for. A bias has the type of D, an element for each row of it."""

VERSION = 130200
WORKSPACE = 4096
"""Bytes that each algorithm asks for."""


@dataclass
class Matmul:
    """A description of a product: its types, whether A and B are transposed, and an epilogue."""

    compute: int
    scale: int
    transposed: dict[int, int] = field(default_factory=lambda: {3: 0, 4: 0})
    epilogue: int = NO_EPILOGUE
    bias: int = 0

    def key(self) -> tuple[Any, ...]:
        return self.compute, self.scale, *self.transposed.values(), self.epilogue


@dataclass
class Layout:
    """Matrices in columns, as many elements apart as `step`; `batch` and its stride are attributes 5 and 6."""

    type: int
    rows: int
    columns: int
    step: int
    batch: dict[int, int] = field(default_factory=lambda: {5: 1, 6: 0})

    def key(self) -> tuple[Any, ...]:
        return self.type, self.rows, self.columns, self.step, *self.batch.values()

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(TYPES[self.type])

    def matrices(self, address: int, transposed: int = 0) -> np.ndarray:
        """All matrices of the batch at an address of the GPU."""
        (count, stride), size = self.batch.values(), self.dtype.itemsize
        reach = (count - 1) * stride + (self.columns - 1) * self.step + self.rows
        data = mock_driver().view(address, reach * size).view(self.dtype)
        shape, strides = (count, self.rows, self.columns), (stride * size, size, self.step * size)
        found = np.lib.stride_tricks.as_strided(data, shape, strides)
        return found.swapaxes(1, 2) if transposed else found


def _at(address: int, type_: Any, count: int = 1) -> Any:
    return (type_ * count).from_address(address)


def _int(word: int) -> int:
    return ctypes.c_int(word & 0xFFFFFFFF).value


def _rounded(factor: np.ndarray) -> np.ndarray:
    """To the 10 bits of TF32."""
    bits = np.ascontiguousarray(factor).view(np.uint32)
    return ((bits + np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)).view("f4")


class MockBlas(MockFunctions):
    """The library."""

    INVALID, INTERNAL = INVALID_VALUE, UNKNOWN

    def __init__(self) -> None:
        super().__init__()
        self.refuses = False
        """True if no problem has an algorithm."""
        self.products: list[tuple[int, tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]] = []
        """The compute type and the layouts of A, B and D of every product that was given."""
        self.epilogues: list[int] = []
        """The epilogue of each of these products."""
        self._handles: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self._algorithms: list[tuple[Any, ...]] = []
        self._texts: dict[str, Any] = {}

    @property
    def live_handles(self) -> list[str]:
        """The handles that were created and not destroyed."""
        return sorted(type(handle).__name__ for handle in self._handles.values())

    def _new(self, out: int, thing: Any) -> None:
        number = next(self._numbers)
        self._handles[number] = thing
        _at(out, ctypes.c_uint64)[0] = number

    def _in_context(self, name: str) -> None:
        self.require(bool(getattr(mock_driver()._thread, "contexts", None)), f"{name} without a context")

    # ---- functions --------------------------------------------------------------------------------------------------

    def cublasLtGetVersion(self) -> int:
        return VERSION

    def cublasLtGetStatusName(self, status: int) -> int:
        text = NAMES[_int(status)]
        return ctypes.addressof(self._texts.setdefault(text, ctypes.create_string_buffer(text.encode())))

    def cublasLtCreate(self, out: int) -> None:
        self._in_context("cublasLtCreate")
        self._new(out, self)

    def cublasLtDestroy(self, blas: int) -> None:
        self._in_context("cublasLtDestroy")
        del self._handles[blas]

    def cublasLtMatmulDescCreate(self, out: int, compute: int, scale: int) -> None:
        self._new(out, Matmul(_int(compute), _int(scale)))

    def cublasLtMatmulDescDestroy(self, matmul: int) -> None:
        del self._handles[matmul]

    def cublasLtMatmulDescSetAttribute(self, matmul: int, attribute: int, value: int, size: int) -> None:
        what, number = self._handles[matmul], _int(attribute)
        self.require((number, size) in ((3, 4), (4, 4), (7, 4), (8, 8)), "no attribute of a product")
        if number == 7:
            what.epilogue = _at(value, ctypes.c_uint32)[0]
            self.require(what.epilogue in (NO_EPILOGUE, BIAS), f"no epilogue {what.epilogue}")
        elif number == 8:
            what.bias = _at(value, ctypes.c_uint64)[0]
        else:
            what.transposed[number] = _at(value, ctypes.c_int32)[0]

    def cublasLtMatrixLayoutCreate(self, out: int, type_: int, rows: int, columns: int, step: int) -> None:
        self.require(rows > 0 and columns > 0 and step >= rows, f"{rows} by {columns} elements, {step} apart")
        self._new(out, Layout(_int(type_), rows, columns, step))

    def cublasLtMatrixLayoutDestroy(self, layout: int) -> None:
        del self._handles[layout]

    def cublasLtMatrixLayoutSetAttribute(self, layout: int, attribute: int, value: int, size: int) -> None:
        types = {5: ctypes.c_int32, 6: ctypes.c_int64}
        self.require(ctypes.sizeof(types[_int(attribute)]) == size, "no attribute of a layout")
        self._handles[layout].batch[_int(attribute)] = _at(value, types[_int(attribute)])[0]

    def cublasLtMatmulPreferenceCreate(self, out: int) -> None:
        self._new(out, {1: 0, 5: 256, 6: 256, 7: 256, 8: 256})

    def cublasLtMatmulPreferenceDestroy(self, preference: int) -> None:
        del self._handles[preference]

    def cublasLtMatmulPreferenceSetAttribute(self, preference: int, attribute: int, value: int, size: int) -> None:
        type_ = ctypes.c_uint64 if _int(attribute) == 1 else ctypes.c_uint32
        self.require(ctypes.sizeof(type_) == size, "no attribute of a preference")
        self._handles[preference][_int(attribute)] = _at(value, type_)[0]

    def _problem(self, matmul: int, layouts: Sequence[int]) -> tuple[Any, ...]:
        """The problem that an algorithm is for, once it is known to be a GEMM."""
        what, (a, b, c, d) = self._handles[matmul], (self._handles[layout] for layout in layouts)
        m, k = (a.columns, a.rows) if what.transposed[3] else (a.rows, a.columns)
        other, n = (b.columns, b.rows) if what.transposed[4] else (b.rows, b.columns)
        self.require((k, m, n) == (other, d.rows, d.columns), f"{m} by {k} times {other} by {n}")
        self.require(c.key() == d.key(), "C and D differ")
        self.require(a.type == b.type and len({a.batch[5], b.batch[5], d.batch[5]}) == 1, "sides differ")
        kinds = (what.compute, what.scale, a.type, d.type)
        self.require(kinds in TAKEN, "types do not fit")
        self.require((what.epilogue == BIAS) == bool(what.bias), "a bias and no epilogue for it, or the other way")
        self.require(what.bias % d.dtype.itemsize == 0, "no bias of D's type is there")
        if what.epilogue != NO_EPILOGUE and kinds not in WITH_EPILOGUE:
            raise Refused(NOT_SUPPORTED)
        return what.key(), a.key(), b.key(), d.key()

    def cublasLtMatmulAlgoGetHeuristic(
        self, blas: int, matmul: int, a: int, b: int, c: int, d: int, preference: int, wanted: int, found: int,
        count: int,
    ) -> None:  # fmt: skip
        self._in_context("cublasLtMatmulAlgoGetHeuristic")
        problem = self._problem(matmul, (a, b, c, d))
        limits = self._handles[preference]
        _at(count, ctypes.c_int)[0] = 0
        is_narrow = self._handles[a].type == 3
        if self.refuses or (is_narrow and not self._takes_bytes(matmul, (a, b))):
            raise Refused(NOT_SUPPORTED)
        self.require(limits[1] >= WORKSPACE, "no room")
        bias = self._handles[matmul].bias
        aligned = [*(limits[i] for i in (5, 6, 7, 8)), min(bias & -bias, 256) or 1]
        self._algorithms.append((problem, aligned))
        words = _at(found, ctypes.c_uint64, 12)
        words[:] = [0xA190, len(self._algorithms) - 1, *[0] * 6, WORKSPACE, 0, 0, 0]
        _at(count, ctypes.c_int)[0] = 1

    def _takes_bytes(self, matmul: int, sides: Sequence[int]) -> bool:
        """Products of bytes read both sides along k, by words of 32 bits."""
        layouts = [self._handles[side] for side in sides]
        return self._handles[matmul].transposed == {3: 1, 4: 0} and all(
            number % 4 == 0 for one in layouts for number in (one.rows, one.step, one.batch[6])
        )

    def cublasLtMatmul(
        self, blas: int, matmul: int, alpha: int, a: int, a_layout: int, b: int, b_layout: int, beta: int, c: int,
        c_layout: int, d: int, d_layout: int, algorithm: int, workspace: int, workspace_bytes: int, stream: int,
    ) -> None:  # fmt: skip
        self._in_context("cublasLtMatmul")
        problem = self._problem(matmul, (a_layout, b_layout, c_layout, d_layout))
        magic, number = _at(algorithm, ctypes.c_uint64, 2)
        self.require(magic == 0xA190 and self._algorithms[number][0] == problem, "an algorithm of another problem")
        self.require(workspace_bytes >= WORKSPACE, "no workspace")
        what = self._handles[matmul]
        aligned = zip((a, b, c, d, what.bias), self._algorithms[number][1], strict=True)
        self.require(all(address % by == 0 for address, by in aligned), "addresses are not as aligned as was said")
        scale = {0: ctypes.c_float, 1: ctypes.c_double, 10: ctypes.c_int32}[what.scale]
        self.require((_at(alpha, scale)[0], _at(beta, scale)[0], c) == (1, 0, d), "it is no plain product")
        left, right, target = (Layout(*key[:4], dict(zip((5, 6), key[4:], strict=True))) for key in problem[1:])
        compute, _, *transposed, epilogue = what.key()
        self.products.append((compute, *problem[1:]))
        self.epilogues.append(epilogue)
        bias = what.bias

        def work() -> None:
            mock_driver().view(workspace, workspace_bytes).fill(0xA5)
            factors = [left.matrices(a, transposed[0]), right.matrices(b, transposed[1])]
            if compute == F32_BY_TF32:
                factors = [_rounded(factor) for factor in factors]
            wide = np.int64 if compute == I32 else np.float64
            sums = np.matmul(*(factor.astype(wide) for factor in factors))
            if epilogue == BIAS:
                added = mock_driver().view(bias, target.rows * target.dtype.itemsize).view(target.dtype)
                sums = sums.astype(np.float32) + added.astype(np.float32)[:, None]
            target.matrices(d)[...] = sums.astype(target.dtype)

        mock_driver()._give(stream, work)


FUNCTIONS = [name for name in vars(MockBlas) if name.startswith("cublas")]


def _dispatch(name: str, *arguments: int) -> int:
    return mock_blas().call(name, arguments)


@functools.cache
def library() -> Path:
    """The library, whose functions call the mock of the moment."""
    return make_library("libcublasLt.so.13", FUNCTIONS, _dispatch, closed=UNKNOWN)


@functools.cache
def mock_blas() -> MockBlas:
    """The library of this process."""
    library()
    return MockBlas()
