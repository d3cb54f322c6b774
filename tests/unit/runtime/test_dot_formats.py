# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime's products of narrow elements against exact ones: every format and layout, words that are not full."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from shlo_disc.lowering_cpu.micro_kernels.gemm_format import FORMATS, format_of
from shlo_disc.lowering_cpu.options import CpuOptions
from shlo_disc.runtime import Client, _native
from shlo_disc.shape_dialect.dtypes import BY_NUMPY
from tests.unit.runtime.test_dot import HOST, WIDTHS, run, run_packed

DTYPES = (ml_dtypes.bfloat16, np.float16, np.int8, np.uint8, np.int32)

TARGETS = [*(CpuOptions(bits) for bits in WIDTHS), HOST, CpuOptions(min(HOST.vector_bits, 256), is_x86=False)]
"""By their widths alone, with all that this processor has, and without instructions of x86."""

SIZES = [(1, 1, 1), (3, 31, 2), (5, 33, 3), (6, 5, 4), (12, 64, 5), (13, 32, 129), (14, 65, 257), (15, 7, 1540),
         (29, 17, 7), (2, 3, 0), (75, 300, 40)]  # fmt: skip
"""Both sides of words of 2 and 4 elements, of tiles of 5 to 14 rows, and of chunks of 384 words."""


@pytest.fixture(scope="module")
def device() -> _native.Processors:
    return Client(threads=2).native_device


def random(shape: tuple[int, ...], order: str, dtype: type, rng: np.random.Generator) -> np.ndarray:
    """Stored by rows, by columns, or in neither way; integers of all values."""
    whole = (*shape, 2) if order == "gaps" else shape[::-1] if order == "columns" else shape
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        array = rng.integers(limits.min, limits.max, whole, dtype, endpoint=True)
    else:
        array = rng.standard_normal(whole).astype(dtype)
    return array[..., 0] if order == "gaps" else array.T if order == "columns" else array


def check(
    device: _native.Processors, dtype: type, size: tuple[int, int, int], orders: str, options: CpuOptions
) -> None:
    m, n, k = size
    rng = np.random.default_rng(m * 1000 + n)
    order_a, order_b, order_c = orders
    a, b = random((m, k), order_a, dtype, rng), random((k, n), order_b, dtype, rng)
    is_integer = np.issubdtype(dtype, np.integer)
    sums = np.int32 if is_integer else np.float32
    for compute in (run, run_packed):
        whole = np.full((n, m + 2) if order_c == "columns" else (m, n + 2), 7, sums)
        c = (whole.T if order_c == "columns" else whole)[:m, :n]
        compute(device, a, b, c, options)
        if is_integer:
            np.testing.assert_array_equal(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32))
        else:
            left, right = a.astype(np.float64), b.astype(np.float64)
            error = np.abs(c - left @ right)
            assert (error <= 8 * np.finfo(np.float32).eps * (np.abs(left) @ np.abs(right))).all()
        c[...] = 7
        assert (whole == 7).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("options", TARGETS, ids=lambda o: f"{o.vector_bits}-{len(o.features)}-{o.is_x86}")
def test_every_format(device: _native.Processors, options: CpuOptions, dtype: type) -> None:
    for size in SIZES:
        check(device, dtype, size, ("rows", "rows", "rows"), options)
    orders = ("rows", "columns", "gaps")
    for layout in itertools.product(orders, orders, ("rows", "columns")):
        check(device, dtype, (15, 37, 11), layout, options)


def test_special_values(device: _native.Processors) -> None:
    """Infinities, NaNs, halves of all magnitudes: a product with 1 is the element, in every format."""
    for dtype, options in itertools.product((ml_dtypes.bfloat16, np.float16), TARGETS):
        bits = np.arange(1 << 16, dtype=np.uint16).view(dtype).reshape(-1, 256)
        one = np.eye(256, dtype=dtype)
        finite = bits[np.isfinite(bits.astype(np.float32)).all(1)]
        c = np.empty(finite.shape, np.float32)
        run(device, finite, one, c, options)
        want = finite.astype(np.float32)
        if format_of(BY_NUMPY[np.dtype(dtype).name].mlir, options).multiplier.startswith("bf16x2"):
            want[np.abs(want) < np.finfo(np.float32).tiny] = 0  # the instruction takes subnormal numbers for zeros
        np.testing.assert_array_equal(c, want)
        for value in (np.inf, -np.inf, np.nan):
            a, c = np.full((3, 5), value, dtype), np.empty((3, 40), np.float32)
            run(device, a, np.ones((5, 40), dtype), c, options)
            np.testing.assert_array_equal(c, np.full((3, 40), value, np.float32))


def test_every_format_is_chosen_somewhere() -> None:
    avx512 = CpuOptions(512, features=frozenset({"avx512bf16", "avx512vnni"}))
    amx = CpuOptions(512, features=avx512.features | {"amx-tile", "amx-bf16", "amx-int8"})
    elements = {f.element for f in FORMATS}
    assert {format_of(e, options) for e in elements for options in (CpuOptions(256), avx512, amx)} == set(FORMATS)
    assert format_of("bf16", CpuOptions(256, features=amx.features)).multiplier == "f32"
