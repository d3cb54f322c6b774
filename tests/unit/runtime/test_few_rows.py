# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of few rows or columns against float64 NumPy: each layout, with gaps, in batches, without a byte too far.

Sizes lie on both sides of what the runtime decides at: 2, 3, 18, 48 and 128 rows, 64 columns, 128 terms, a vector,
strips of 1 to 8 vectors for up to 6 or 8 rows, 192 or 128 rows of a strip (96 or 64 of f64), 12 columns and 4, 6 or 8
rows of the other operand together, chunks of 4,096 terms (2,048 of f64) and of as many columns, 256 KiB and 24 MiB of
the other operand.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap

import numpy as np
import pytest

from shlo_disc.lowering_cpu.options import CpuOptions
from shlo_disc.runtime import Client, _native
from tests.unit.runtime.test_dot import HOST, WIDTHS, laid_out, run

ROWS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 18, 19)
SIZES = [
    (1, 1),
    (7, 5),
    (8, 127),
    (9, 128),
    (16, 129),
    (63, 64),
    (64, 131),
    (65, 33),
    (97, 257),
    (2053, 9),
    (517, 131),
    (20, 4099),
]
"""(n, k)."""
STRIPS = [
    (64, 1),
    (79, 97),
    (96, 3),
    (107, 129),
    (128, 2),
    (150, 5),
    (173, 96),
    (184, 128),
    (193, 4),
    (75, 193),
    (91, 385),
]
ORDERS = ("rows", "columns", "gaps")


Devices = list[_native.Processors]


@pytest.fixture(scope="module")
def devices() -> Devices:
    """One of one thread, and one of two."""
    return [Client(threads=threads).native_device for threads in (1, 2)]


Reference = tuple[np.ndarray, np.ndarray]
"""The exact product, and how far a result may be from it."""


def reference(a: np.ndarray, b: np.ndarray) -> Reference:
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    scale = np.matmul(np.abs(wide_a), np.abs(wide_b))
    return np.matmul(wide_a, wide_b), 4 * np.sqrt(a.shape[-1]) * np.finfo(a.dtype).eps * scale


def check(
    devices: Devices, a: np.ndarray, b: np.ndarray, c: np.ndarray, want: Reference, options: CpuOptions = HOST
) -> None:
    """c = a @ b on each device, which is compared."""
    for device in devices:
        c[...] = np.nan
        run(device, a, b, c, options)
        assert (np.abs(c - want[0]) <= want[1]).all(), (a.shape, b.shape, np.abs(c - want[0]).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_few_rows_or_columns(devices: Devices, dtype: type, size: tuple[int, int]) -> None:
    n, k = size
    rng = np.random.default_rng(n)
    for order_b in ORDERS:
        b = laid_out((k, n), order_b, dtype, rng)
        for rows, order_a in itertools.product(ROWS if k < 4096 else (3, 8), ("rows", "columns")):
            a = laid_out((rows, k), order_a, dtype, rng)
            exact, bound = reference(a, b)
            for order_c in ("rows", "columns"):
                check(devices, a, b, result((rows, n), order_c, dtype), (exact, bound))
                check(devices, b.T, a.T, result((n, rows), order_c, dtype), (exact.T, bound.T))


def result(shape: tuple[int, int], order: str, dtype: type) -> np.ndarray:
    """An array for a result that is stored by rows or by columns."""
    return np.empty(shape, dtype, "C" if order == "rows" else "F")


@pytest.mark.parametrize("n", [2063, 2064, 2080])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_fetched_ahead(devices: Devices, dtype: type, n: int) -> None:
    """A line of the cache more or less than the columns; rows below and above 24 MiB, of which some are left over."""
    rng = np.random.default_rng(n)
    least = (24 << 20) // (n * np.dtype(dtype).itemsize)
    whole = np.resize(rng.standard_normal((501, n)).astype(dtype), (least + 5, n))
    for k in (least, least + 1, least + 5):
        a, b = laid_out((4, k), "rows", dtype, rng), whole[:k]
        exact, bound = reference(a, b)
        for rows in (1, 2, 3, 4):
            check(devices, a[:rows], b, np.empty((rows, n), dtype), (exact[:rows], bound[:rows]), CpuOptions(256))


@pytest.mark.parametrize("vector_bits", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_width(devices: Devices, dtype: type, vector_bits: int) -> None:
    rng = np.random.default_rng(0)
    for rows, order in itertools.product((1, 3, 6, 8, 13, 18), ("rows", "columns")):
        a, b = laid_out((rows, 300), "rows", dtype, rng), laid_out((300, 101), order, dtype, rng)
        check(devices, a, b, np.empty((rows, 101), dtype), reference(a, b), CpuOptions(vector_bits))


@pytest.mark.parametrize("vector_bits", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_strips_of_each_width(devices: Devices, dtype: type, vector_bits: int) -> None:
    """Each number of rows, with strips of each number of vectors, the last of which is full or not.

    Rows of the other operand are parts of longer ones, as of a slice, so that they span enough bytes for strips.
    """
    rng = np.random.default_rng(4)
    for n, k in STRIPS:
        b = laid_out((k, (256 << 10) // k), "rows", dtype, rng)[:, 7 : 7 + n]
        for rows in (*range(1, 20), 24, 25, 36, 43, 48, 49, 80, 127, 128, 129):
            a = laid_out((rows, k), "rows", dtype, rng)
            check(devices, a, b, np.empty((rows, n), dtype), reference(a, b), CpuOptions(vector_bits))


def test_rows_that_come_from_memory(devices: Devices) -> None:
    rng = np.random.default_rng(5)
    b = rng.standard_normal((12503, 512), np.float32)
    a = rng.standard_normal((4, len(b)), np.float32)
    exact, bound = reference(a, b)
    for rows, vector_bits in itertools.product((1, 2, 3, 4), WIDTHS):
        c = np.empty((rows, 512), np.float32)
        check(devices, a[:rows], b, c, (exact[:rows], bound[:rows]), CpuOptions(vector_bits))


@pytest.mark.parametrize("batch", [(3,), (2, 5), (2, 1, 3)])
def test_batches(devices: Devices, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    for rows, order in itertools.product((1, 3, 5), ("rows", "columns")):
        a, b = (
            laid_out((*batch, rows, 140), "rows", np.float32, rng),
            laid_out((*batch, 140, 70), order, np.float32, rng),
        )
        for right in (b, np.broadcast_to(b[(0,) * len(batch)], b.shape)):
            check(devices, a, right, np.empty((*batch, rows, 70), np.float32), reference(a, right))


def test_a_left_hand_side_that_is_broadcast(devices: Devices) -> None:
    rng = np.random.default_rng(2)
    for shape, order in itertools.product(((1, 200), (3, 1), (1, 1)), ("rows", "columns")):
        a = np.broadcast_to(rng.standard_normal(shape).astype(np.float32), (3, 200))
        b = laid_out((200, 90), order, np.float32, rng)
        check(devices, a, b, np.empty((3, 90), np.float32), reference(a, b))


def guarded(array: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy that begins or ends at a page that no one may touch. The pages are never freed."""
    page = mmap.PAGESIZE
    inner = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, inner + 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for side in (address, address + page + inner):
        assert protect(side, page, 0) == 0
    first = page + (inner - array.nbytes if at_end else 0)
    copy = np.frombuffer(memory, array.dtype, array.size, first).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_outside_is_touched(devices: Devices, dtype: type, at_end: bool) -> None:
    rng = np.random.default_rng(3)
    for rows, (n, k) in itertools.product((1, 3, 4, 8, 18), ((65, 7), (67, 131), (9, 129), (13, 300), (1003, 131))):
        a, b = (guarded(rng.standard_normal(s).astype(dtype), at_end) for s in ((rows, k), (k, n)))
        weights = guarded(np.ascontiguousarray(b.T), at_end)
        columns = guarded(np.ascontiguousarray(a.T), at_end)
        c, c_columns = guarded(np.zeros((rows, n), dtype), at_end), guarded(np.zeros((n, rows), dtype), at_end)
        exact, bound = reference(a, b)
        check(devices, a, b, c, (exact, bound))
        check(devices, a, weights.T, c, (exact, bound))
        check(devices, weights, columns, c_columns, (exact.T, bound.T))
        check(devices, b.T, columns, c_columns, (exact.T, bound.T))
