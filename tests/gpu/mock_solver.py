# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cuSOLVER and cuBLAS without a GPU: shared libraries of the functions that the runtime uses, over the mock driver.

Matrices lie column by column. They are factored as late as their stream allows, in double precision, as
`mock_linear_algebra.py` does. Workspaces are spoilt. What no caller may do (a workspace of another size than was asked
for, no stream, no context, memory of the host that is released before the work is done) is kept in `mistakes`.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.gpu import mock_linear_algebra as algebra
from tests.gpu.mock_driver import mock_driver
from tests.gpu.mock_library import MockFunctions, make_library

TYPES = {0: np.float32, 1: np.float64, 4: np.complex64, 5: np.complex128}
REALS = {0: 0, 1: 1, 4: 0, 5: 1}
LETTERS = {"S": 0, "D": 1, "C": 4, "Z": 5}
LOWER, UPPER = 0, 1
SPOILT = 0xA5


def _int(word: int) -> int:
    return ctypes.c_int(word & 0xFFFFFFFF).value


def _scalar(address: int, type_: int) -> complex:
    """A number of the host's."""
    return np.frombuffer(ctypes.string_at(address, np.dtype(TYPES[type_]).itemsize), TYPES[type_])[0]


def matrix(address: int, rows: int, columns: int, step: int, type_: int) -> np.ndarray:
    """[rows, columns] of a matrix whose columns are `step` elements apart, where it lies."""
    dtype = np.dtype(TYPES[type_])
    data = mock_driver().view(address, ((columns - 1) * step + rows) * dtype.itemsize).view(dtype)
    return np.lib.stride_tricks.as_strided(data, (rows, columns), (dtype.itemsize, step * dtype.itemsize))


def numbers(address: int, count: int, dtype: Any = np.int32) -> np.ndarray:
    """A vector, where it lies."""
    return mock_driver().view(address, count * np.dtype(dtype).itemsize).view(dtype)


def addresses(address: int, count: int) -> list[int]:
    """Addresses that lie in memory of the GPU."""
    return [int(word) for word in numbers(address, count, np.uint64)]


@dataclass
class Workspace:
    """Memory that a function was given beside its operands."""

    device: int
    device_bytes: int
    host: int = 0
    host_bytes: int = 0

    def mark(self) -> None:
        """Write what `is_whole` looks for."""
        if self.host_bytes:
            ctypes.memset(self.host, SPOILT, self.host_bytes)

    def is_whole(self) -> bool:
        """Tells whether the memory of the host has been left as it was, and spoils that of the device."""
        mock_driver().view(self.device, self.device_bytes).fill(SPOILT)
        return set(ctypes.string_at(self.host, self.host_bytes)) <= {SPOILT}


class _Library(MockFunctions):
    """A library whose functions take a handle that has a stream."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: dict[int, int] = {}
        self._numbers = itertools.count(0x1000)

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Calls the library's function `name` in the thread's context, and returns its status."""
        if not getattr(mock_driver()._thread, "contexts", None):
            self.mistakes.append(f"{name} without a context")
        return super().call(name, arguments)

    def create(self, out: int) -> int:
        """A number of a new object, which is written."""
        number = next(self._numbers)
        ctypes.c_int64.from_address(out).value = number
        return number

    def give(self, handle: int, work: Callable[[], None]) -> None:
        """Have the stream of a handle do work."""
        self.require(bool(self.streams.get(handle)), "no handle, or no stream")
        mock_driver()._give(self.streams[handle], work)


class MockSolver(_Library):
    """cuSOLVER."""

    INVALID, INTERNAL, NO_MEMORY = 3, 7, 2

    def __init__(self) -> None:
        super().__init__()
        self.options: set[int] = set()
        self.asked: dict[tuple[Any, ...], tuple[int, int]] = {}
        """Bytes of workspaces on the device and the host, by a function, its sizes and its type."""

    # ---- handles ----------------------------------------------------------------------------------------------------

    def cusolverDnCreate(self, out: int) -> None:
        self.streams[self.create(out)] = 0

    def cusolverDnDestroy(self, handle: int) -> None:
        del self.streams[handle]

    def cusolverDnSetStream(self, handle: int, stream: int) -> None:
        self.require(handle in self.streams, "no handle")
        self.streams[handle] = stream

    def cusolverDnCreateParams(self, out: int) -> None:
        self.options.add(self.create(out))

    def cusolverDnDestroyParams(self, options: int) -> None:
        self.options.remove(options)

    # ---- workspaces -------------------------------------------------------------------------------------------------

    def _bytes_for(self, key: tuple[Any, ...], device: int, host: int) -> None:
        size = sum(number for number in key if isinstance(number, int))
        self.asked[key] = 64 + 8 * size, 16 + size
        ctypes.c_size_t.from_address(device).value, ctypes.c_size_t.from_address(host).value = self.asked[key]

    def _elements_for(self, key: tuple[Any, ...], out: int) -> None:
        elements = 8 + sum(number for number in key if isinstance(number, int))
        self.asked[key] = elements, 0
        ctypes.c_int.from_address(out).value = elements

    def _given(self, key: tuple[Any, ...], device: int, device_bytes: int, host: int, host_bytes: int) -> Workspace:
        self.require(self.asked.get(key) == (device_bytes, host_bytes), f"{key}: nobody asked for this workspace")
        return Workspace(device, device_bytes, host, host_bytes)

    def _room(self, key: tuple[Any, ...], device: int, type_: int, elements: int | None = None) -> Workspace:
        self.require(key in self.asked, f"{key}: nobody asked for the workspace")
        self.require(elements in (None, self.asked[key][0]), f"{key}: another workspace than was asked for")
        return Workspace(device, self.asked[key][0] * np.dtype(TYPES[type_]).itemsize)

    def _work(self, handle: int, room: Workspace, work: Callable[[], None]) -> None:
        room.mark()

        def whole() -> None:
            if not room.is_whole():
                self.mistakes.append("the host's workspace was written before the work was done")
            work()

        self.give(handle, whole)

    # ---- functions --------------------------------------------------------------------------------------------------

    def cusolverDnXpotrf_bufferSize(
        self, handle: int, options: int, triangle: int, n: int, type_: int, a: int, step: int, computed: int,
        device: int, host: int,
    ) -> None:  # fmt: skip
        self.require(handle in self.streams and options in self.options, "no handle")
        self._bytes_for(("potrf", n, _int(type_)), device, host)

    def cusolverDnXpotrf(
        self, handle: int, options: int, triangle: int, n: int, type_: int, a: int, step: int, computed: int,
        device: int, device_bytes: int, host: int, host_bytes: int, info: int,
    ) -> None:  # fmt: skip
        kind, is_lower = _int(type_), _int(triangle) == LOWER
        self.require(kind == _int(computed) and step >= n > 0 and _int(triangle) in (LOWER, UPPER), "potrf")
        room = self._given(("potrf", n, kind), device, device_bytes, host, host_bytes)

        def work() -> None:
            numbers(info, 1)[0] = algebra.cholesky(matrix(a, n, n, step, kind), is_lower)

        self._work(handle, room, work)

    def cusolverDnXgeqrf_bufferSize(
        self, handle: int, options: int, m: int, n: int, type_: int, a: int, step: int, tau_type: int, tau: int,
        computed: int, device: int, host: int,
    ) -> None:  # fmt: skip
        self.require(handle in self.streams and options in self.options, "no handle")
        self._bytes_for(("geqrf", m, n, _int(type_)), device, host)

    def cusolverDnXgeqrf(
        self, handle: int, options: int, m: int, n: int, type_: int, a: int, step: int, tau_type: int, tau: int,
        computed: int, device: int, device_bytes: int, host: int, host_bytes: int, info: int,
    ) -> None:  # fmt: skip
        kind = _int(type_)
        self.require({kind} == {_int(tau_type), _int(computed)} and step >= m > 0 and n > 0, "geqrf")
        room = self._given(("geqrf", m, n, kind), device, device_bytes, host, host_bytes)

        def work() -> None:
            algebra.qr(matrix(a, m, n, step, kind), numbers(tau, min(m, n), TYPES[kind]))
            numbers(info, 1)[0] = 0

        self._work(handle, room, work)

    def cusolverDnXsyevd_bufferSize(
        self, handle: int, options: int, vectors: int, triangle: int, n: int, type_: int, a: int, step: int,
        value_type: int, values: int, computed: int, device: int, host: int,
    ) -> None:  # fmt: skip
        self.require(handle in self.streams and options in self.options, "no handle")
        self._bytes_for(("syevd", _int(vectors), n, _int(type_)), device, host)

    def cusolverDnXsyevd(
        self, handle: int, options: int, vectors: int, triangle: int, n: int, type_: int, a: int, step: int,
        value_type: int, values: int, computed: int, device: int, device_bytes: int, host: int, host_bytes: int,
        info: int,
    ) -> None:  # fmt: skip
        kind, real = _int(type_), _int(value_type)
        self.require((_int(computed), real) == (kind, REALS[kind]) and step >= n > 0, "syevd")
        self.require({_int(vectors), _int(triangle)} <= {0, 1}, "flags")
        room = self._given(("syevd", _int(vectors), n, kind), device, device_bytes, host, host_bytes)

        def work() -> None:
            found = numbers(values, n, TYPES[real])
            numbers(info, 1)[0] = algebra.eigenvalues(
                matrix(a, n, n, step, kind), found, is_lower=_int(triangle) == LOWER, has_vectors=bool(_int(vectors))
            )

        self._work(handle, room, work)

    def cusolverDnXgesvd_bufferSize(
        self, handle: int, options: int, left: int, right: int, m: int, n: int, type_: int, a: int, step: int,
        value_type: int, values: int, u_type: int, u: int, u_step: int, vt_type: int, vt: int, vt_step: int,
        computed: int, device: int, host: int,
    ) -> None:  # fmt: skip
        self.require(handle in self.streams and options in self.options, "no handle")
        self._bytes_for(("gesvd", chr(left & 0xFF), chr(right & 0xFF), m, n, _int(type_)), device, host)

    def cusolverDnXgesvd(
        self, handle: int, options: int, left: int, right: int, m: int, n: int, type_: int, a: int, step: int,
        value_type: int, values: int, u_type: int, u: int, u_step: int, vt_type: int, vt: int, vt_step: int,
        computed: int, device: int, device_bytes: int, host: int, host_bytes: int, info: int,
    ) -> None:  # fmt: skip
        kind, real, modes = _int(type_), _int(value_type), (chr(left & 0xFF), chr(right & 0xFF))
        types = {_int(computed), _int(u_type), _int(vt_type)}
        self.require(types == {kind} and real == REALS[kind] and modes[0] == modes[1], "gesvd")
        self.require(m >= n > 0, "cuSOLVER takes no matrix of fewer rows than columns")
        self.require(step >= m and u_step >= m and vt_step >= n and modes[0] in "ASN", "sizes, or a mode")
        room = self._given(("gesvd", *modes, m, n, kind), device, device_bytes, host, host_bytes)

        def work() -> None:
            given, found = matrix(a, m, n, step, kind), numbers(values, n, TYPES[real])
            u_columns = m if modes[0] == "A" else n
            vectors = None
            if modes[0] != "N":
                vectors = matrix(u, m, u_columns, u_step, kind), matrix(vt, n, n, vt_step, kind)
            numbers(info, 1)[0] = algebra.singular_values(given, found, vectors)

        self._work(handle, room, work)

    # ---- functions of each type, which for complex numbers are called ungqr and unmqr ---------------------------

    def getrf_bufferSize(self, type_: int, handle: int, m: int, n: int, a: int, step: int, out: int) -> None:
        self._elements_for(("getrf", _int(m), _int(n), type_), out)

    def getrf(
        self, type_: int, handle: int, m: int, n: int, a: int, step: int, device: int, pivots: int, info: int
    ) -> None:
        rows, columns = _int(m), _int(n)
        self.require(_int(step) >= rows > 0 and columns > 0, "getrf")
        room = self._room(("getrf", rows, columns, type_), device, type_)

        def work() -> None:
            found = numbers(pivots, min(rows, columns))
            numbers(info, 1)[0] = algebra.lu(matrix(a, rows, columns, _int(step), type_), found)

        self._work(handle, room, work)

    def potrfBatched(
        self, type_: int, handle: int, triangle: int, n: int, a: int, step: int, info: int, entries: int
    ) -> None:
        n, step, entries, is_lower = _int(n), _int(step), _int(entries), _int(triangle) == LOWER
        self.require(step >= n > 0 and entries > 0 and _int(triangle) in (LOWER, UPPER), "potrfBatched")

        def work() -> None:
            for entry, address in enumerate(addresses(a, entries)):
                factor = matrix(address, n, n, step, type_)
                numbers(info, entries)[entry] = algebra.cholesky(factor, is_lower)
                factor[np.triu_indices(n, 1) if is_lower else np.tril_indices(n, -1)] = np.nan

        self.give(handle, work)

    def orgqr_bufferSize(
        self, type_: int, handle: int, m: int, n: int, k: int, a: int, step: int, tau: int, out: int
    ) -> None:
        self._elements_for(("orgqr", _int(m), _int(n), _int(k), type_), out)

    def orgqr(
        self, type_: int, handle: int, m: int, n: int, k: int, a: int, step: int, tau: int, device: int, elements: int,
        info: int,
    ) -> None:  # fmt: skip
        rows, columns, count = _int(m), _int(n), _int(k)
        self.require(_int(step) >= rows >= columns >= count >= 0 and columns > 0, "orgqr")
        room = self._room(("orgqr", rows, columns, count, type_), device, type_, _int(elements))

        def work() -> None:
            algebra.unitary(matrix(a, rows, columns, _int(step), type_), numbers(tau, count, TYPES[type_]))
            numbers(info, 1)[0] = 0

        self._work(handle, room, work)

    def ormqr_bufferSize(
        self, type_: int, handle: int, side: int, operation: int, m: int, n: int, k: int, a: int, step: int, tau: int,
        c: int, c_step: int, out: int,
    ) -> None:  # fmt: skip
        self._elements_for(("ormqr", _int(side), _int(operation), _int(m), _int(n), _int(k), type_), out)

    def ormqr(
        self, type_: int, handle: int, side: int, operation: int, m: int, n: int, k: int, a: int, step: int, tau: int,
        c: int, c_step: int, device: int, elements: int, info: int,
    ) -> None:  # fmt: skip
        side, operation, m, n, k, step, c_step = map(_int, (side, operation, m, n, k, step, c_step))
        order = n if side else m
        self.require(step >= order >= k >= 0 and c_step >= m > 0 and n > 0, "ormqr")
        self.require(side in (0, 1) and operation in ((0, 2) if type_ > 1 else (0, 1)), "flags")
        room = self._room(("ormqr", side, operation, m, n, k, type_), device, type_, _int(elements))

        def work() -> None:
            reflectors = matrix(a, order, k, step, type_)
            algebra.multiply(
                reflectors, numbers(tau, k, TYPES[type_]), matrix(c, m, n, c_step, type_), is_left=not side,
                is_adjoint=operation != 0,
            )  # fmt: skip
            numbers(info, 1)[0] = 0

        self._work(handle, room, work)


class MockCublas(_Library):
    """cuBLAS."""

    INVALID, INTERNAL, NO_MEMORY = 7, 14, 3

    def cublasCreate_v2(self, out: int) -> None:
        self.streams[self.create(out)] = 0

    def cublasDestroy_v2(self, handle: int) -> None:
        del self.streams[handle]

    def cublasSetStream_v2(self, handle: int, stream: int) -> None:
        self.require(handle in self.streams, "no handle")
        self.streams[handle] = stream

    def trsm_v2(
        self, type_: int, handle: int, side: int, triangle: int, operation: int, diagonal: int, m: int, n: int,
        factor: int, a: int, a_step: int, b: int, b_step: int,
    ) -> None:  # fmt: skip
        solve = self._solution(type_, side, triangle, operation, diagonal, m, n, factor, a_step, b_step)
        self.give(handle, lambda: solve(a, b))

    def trsmBatched(
        self, type_: int, handle: int, side: int, triangle: int, operation: int, diagonal: int, m: int, n: int,
        factor: int, a: int, a_step: int, b: int, b_step: int, entries: int,
    ) -> None:  # fmt: skip
        solve = self._solution(type_, side, triangle, operation, diagonal, m, n, factor, a_step, b_step)
        count = _int(entries)

        def work() -> None:
            for left, right in zip(addresses(a, count), addresses(b, count), strict=True):
                solve(left, right)

        self.give(handle, work)

    def _solution(
        self, type_: int, side: int, triangle: int, operation: int, diagonal: int, m: int, n: int, factor: int,
        a_step: int, b_step: int,
    ) -> Callable[[int, int], None]:  # fmt: skip
        """Solves equations of the matrices at two addresses."""
        side, triangle, operation, diagonal, m, n, a_step, b_step = map(
            _int, (side, triangle, operation, diagonal, m, n, a_step, b_step)
        )
        order = n if side else m
        self.require(a_step >= order > 0 and b_step >= m > 0 and n > 0, "sizes")
        self.require({side, triangle, diagonal} <= {0, 1} and operation in (0, 1, 2), "flags")
        self.require(_scalar(factor, type_) == 1, "a factor")

        def solve(a: int, b: int) -> None:
            left = matrix(a, order, order, a_step, type_)
            right = matrix(b, m, n, b_step, type_)
            algebra.solve_triangle(
                left, right, is_left=not side, is_lower=triangle == LOWER, operation="NTC"[operation],
                has_ones=bool(diagonal),
            )  # fmt: skip

        return solve

    def getrfBatched(
        self, type_: int, handle: int, n: int, a: int, step: int, pivots: int, info: int, entries: int
    ) -> None:
        n, step, entries = _int(n), _int(step), _int(entries)
        self.require(step >= n > 0 and entries > 0, "getrfBatched")

        def work() -> None:
            rows = numbers(pivots, entries * n).reshape(entries, n)
            for entry, address in enumerate(addresses(a, entries)):
                numbers(info, entries)[entry] = algebra.lu(matrix(address, n, n, step, type_), rows[entry])

        self.give(handle, work)

    def geam(
        self, type_: int, handle: int, operation: int, added_operation: int, m: int, n: int, factor: int, a: int,
        a_step: int, added_factor: int, added: int, added_step: int, c: int, c_step: int,
    ) -> None:  # fmt: skip
        operation, added_operation, m, n, a_step, added_step, c_step = map(
            _int, (operation, added_operation, m, n, a_step, added_step, c_step)
        )
        self.require(_scalar(factor, type_) == 1 and _scalar(added_factor, type_) == 0, "factors")
        self.require(operation == 1 and m > 0 and n > 0 and a_step >= n and c_step >= m and a != c, "geam")
        self.require((added, added_step, added_operation) == (c, c_step, 0), "what is added")

        def work() -> None:
            matrix(c, m, n, c_step, type_)[...] = matrix(a, n, m, a_step, type_).T

        self.give(handle, work)


def _functions(mock: type, prefix: str, typed: Sequence[str]) -> list[str]:
    """The names of a library's functions, with those of each type."""
    plain = [name for name in vars(mock) if name.startswith(prefix)]
    return plain + [f"{prefix}{letter}{_named(name, letter)}" for name in typed for letter in LETTERS]


SOLVER_TYPED = (
    "getrf", "getrf_bufferSize", "potrfBatched", "orgqr", "orgqr_bufferSize", "ormqr", "ormqr_bufferSize",
)  # fmt: skip
CUBLAS_TYPED = ("trsm_v2", "trsmBatched", "getrfBatched", "geam")


def _named(name: str, letter: str) -> str:
    """The name of a function for a type: those of orthogonal matrices are others for unitary ones."""
    return name.replace("or", "un", 1) if letter in "CZ" and name.startswith("or") else name


def _of_each_type(mock: MockFunctions, prefix: str, typed: Sequence[str]) -> None:
    for name in typed:
        for letter, type_ in LETTERS.items():
            setattr(mock, f"{prefix}{letter}{_named(name, letter)}", functools.partial(getattr(mock, name), type_))


def _dispatch(name: str, *arguments: int) -> int:
    mock = mock_solver() if name.startswith("cusolver") else mock_cublas()
    return mock.call(name, arguments)


@functools.cache
def solver_library() -> Path:
    """The library, whose functions call the mock."""
    names = _functions(MockSolver, "cusolverDn", SOLVER_TYPED)
    return make_library("libcusolver.so.12", names, _dispatch, closed=MockSolver.INTERNAL)


@functools.cache
def cublas_library() -> Path:
    """The library, whose functions call the mock."""
    names = _functions(MockCublas, "cublas", CUBLAS_TYPED)
    return make_library("libcublas.so.13", names, _dispatch, closed=MockCublas.INTERNAL)


@functools.cache
def mock_solver() -> MockSolver:
    """The library of this process."""
    solver_library()
    mock = MockSolver()
    _of_each_type(mock, "cusolverDn", SOLVER_TYPED)
    return mock


@functools.cache
def mock_cublas() -> MockCublas:
    """The library of this process."""
    cublas_library()
    mock = MockCublas()
    _of_each_type(mock, "cublas", CUBLAS_TYPED)
    return mock
