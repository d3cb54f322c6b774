# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime's batched matrix product against NumPy: layouts, strides, batches, degenerate sizes."""

from __future__ import annotations

import ctypes
import functools
import itertools
import mmap
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import cython_blas

from shlo_disc.driver.compilation import cpu_named
from shlo_disc.lowering import codegen
from shlo_disc.lowering_cpu.micro_kernels.gemm_format import FORMATS
from shlo_disc.lowering_cpu.micro_kernels.gemm_kernel import GemmTile, micro_kernels, tile_of
from shlo_disc.lowering_cpu.options import CpuOptions
from shlo_disc.runtime import Client, _native, native_module
from shlo_disc.runtime.native_module import install_blas
from shlo_disc.shape_dialect.dtypes import BY_NUMPY
from shlo_disc.shape_dialect.mlir import ir

THREADS = (1, 2, 3)
HOST = CpuOptions.of(cpu_named("host"))
WIDTHS = [bits for bits in (128, 256, 512) if bits <= HOST.vector_bits]


@pytest.fixture(scope="module", params=THREADS)
def device(request: pytest.FixtureRequest) -> _native.Processors:
    assert install_blas()
    return Client(threads=request.param).native_device


_compiling = threading.Lock()


def tile_code(
    element: str, vector_bits: int, features: frozenset[str], is_x86: bool
) -> tuple[_native.ObjectCode, GemmTile]:
    """The micro-kernels for an element type: one object for all threads, whose code lives as long as the process."""
    with _compiling:
        return _tile_code(element, vector_bits, features, is_x86)


@functools.cache
def _tile_code(
    element: str, vector_bits: int, features: frozenset[str], is_x86: bool
) -> tuple[_native.ObjectCode, GemmTile]:
    tile = tile_of(element, CpuOptions(vector_bits, features=features, is_x86=is_x86))
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("\n".join(text for _, text in micro_kernels(tile)))
        codegen.lower_to_llvm(module)
        text = codegen.to_llvm_ir(module)
    data = codegen.compile_to_object(text, codegen.CpuTarget.host(), 1, {tile.name})
    return _native.ObjectCode(data), tile


def words_of(a: np.ndarray, b: np.ndarray, c: np.ndarray, packed: int, options: CpuOptions) -> list[int]:
    """c = a @ b with whatever strides the three arrays have; they have the same leading batch dimensions."""

    def strides(array: np.ndarray) -> list[int]:
        return [stride // array.itemsize for stride in array.strides]

    def padded(values: list[int]) -> list[int]:
        return values + [0] * (4 - len(values))

    sa, sb, sc = strides(a), strides(b), strides(c)
    batch = list(c.shape[:-2])
    code, tile = tile_code(BY_NUMPY[a.dtype.name].mlir, options.vector_bits, options.features, options.is_x86)
    words = [FORMATS.index(tile.format), len(batch), *padded(batch)]
    words += [*padded(sa[:-2]), *padded(sb[:-2]), *padded(sc[:-2])]
    words += [a.shape[-2], b.shape[-1], a.shape[-1]]
    words += [sa[-2], sa[-1], sb[-2], sb[-1], sc[-2], sc[-1]]
    words += [array.__array_interface__["data"][0] for array in (a, b, c)]
    return [*words, packed, code.function(tile.name), tile.rows, tile.columns]


def run(device: _native.Processors, a: np.ndarray, b: np.ndarray, c: np.ndarray, options: CpuOptions = HOST) -> None:
    _native.dot(device, words_of(a, b, c, 0, options))


def run_packed(device: _native.Processors, a: np.ndarray, b: np.ndarray, c: np.ndarray, options: CpuOptions) -> None:
    """The same with b packed beforehand."""
    words = words_of(a, b, c, 0, options)
    packed = np.full(_native.pack_right(device, words, 0) * c.itemsize, 0xFF, np.uint8)
    address = packed.__array_interface__["data"][0]
    _native.pack_right(device, words, address)
    _native.dot(device, words_of(a, b, c, address, options))


def laid_out(shape: tuple[int, ...], order: str, dtype: type, rng: np.random.Generator) -> np.ndarray:
    """A random array whose last two dimensions are stored by rows, by columns, or by rows with gaps."""
    *batch, rows, columns = shape
    if order == "columns":
        return rng.standard_normal((*batch, columns, rows)).astype(dtype).swapaxes(-1, -2)
    gap = 3 if order == "gaps" else 0
    return rng.standard_normal((*batch, rows, columns + gap)).astype(dtype)[..., :columns]


SIZES = [
    (1, 1, 1),
    (1, 7, 5),
    (9, 1, 4),
    (2, 3, 1),
    (5, 33, 17),
    (64, 48, 31),
    (130, 70, 65),
    (3, 400, 64),
    (257, 5, 9),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_every_layout(device: _native.Processors, dtype: type, size: tuple[int, int, int]) -> None:
    m, n, k = size
    rng = np.random.default_rng(m * 1000 + n)
    orders = ("rows", "columns", "gaps")
    for order_a, order_b, order_c in itertools.product(orders, orders, orders):
        a, b = laid_out((m, k), order_a, dtype, rng), laid_out((k, n), order_b, dtype, rng)
        c = laid_out((m, n), order_c, dtype, rng)
        c[...] = np.nan
        run(device, a, b, c)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(c, expected, rtol=0, atol=(1e-4 if dtype == np.float32 else 1e-12) * max(k, 1))


EDGES = [(1, 1, 1), (4, 31, 63), (6, 32, 64), (7, 33, 65), (13, 16, 127), (14, 17, 128), (15, 64, 129), (29, 5, 385),
         (43, 40, 1100), (61, 100, 9), (5, 8, 0), (200, 33, 5000)]  # fmt: skip
"""Both sides of tiles, of blocks of 64 along k, of a chunk of 384, and of what is packed at once (1,024; 4,096)."""


@pytest.mark.parametrize("vector_bits", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", EDGES)
def test_packed_or_not(device: _native.Processors, dtype: type, size: tuple[int, int, int], vector_bits: int) -> None:
    m, n, k = size
    rng = np.random.default_rng(m * 1000 + n)
    for order_b, order_c in itertools.product(("rows", "columns"), ("rows", "columns")):
        a, b = laid_out((2, m, k), "rows", dtype, rng), laid_out((2, k, n), order_b, dtype, rng)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        for compute in (run, run_packed):
            c = laid_out((2, m, n), order_c, dtype, rng)
            c[...] = np.nan
            compute(device, a, b, c, CpuOptions(vector_bits))
            atol = np.finfo(dtype).eps * 4 * max(k, 1)
            np.testing.assert_allclose(c, expected, rtol=0, atol=atol)


SHALLOW = [(256, 256, 1), (300, 331, 2), (28, 2400, 7), (1100, 64, 65), (270, 1030, 256), (130, 513, 257)]
"""Large results of little depth: B in one group of panels or in several, both sides of the greatest depth."""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SHALLOW)
def test_outer_products(device: _native.Processors, dtype: type, size: tuple[int, int, int]) -> None:
    m, n, k = size
    rng = np.random.default_rng(m * 1000 + n)
    for order_a, order_b in itertools.product(("rows", "columns"), ("rows", "columns")):
        a, b = laid_out((m, k), order_a, dtype, rng), laid_out((k, n), order_b, dtype, rng)
        whole = np.full((m + 2, n + 5), np.nan, dtype)
        c = whole[1:-1, 2 : n + 2]
        run(device, a, b, c)
        atol = np.finfo(dtype).eps * 4 * max(k, 4)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=0, atol=atol)
        c[...] = np.nan
        assert np.isnan(whole).all()


@pytest.mark.parametrize("batch", [(3,), (2, 5), (2, 1, 3), (2, 3, 1, 2), (40,)])
@pytest.mark.parametrize("size", [(1, 6, 4), (7, 1, 4), (6, 10, 3), (20, 20, 64)])
def test_batches(device: _native.Processors, batch: tuple[int, ...], size: tuple[int, int, int]) -> None:
    m, n, k = size
    rng = np.random.default_rng(7)
    a = laid_out((*batch, m, k), "rows", np.float32, rng)
    b = laid_out((*batch, k, n), "columns", np.float32, rng)
    c = np.full((*batch, m, n), np.nan, np.float32)
    run(device, a, b, c)
    np.testing.assert_allclose(c, a @ b, atol=1e-4)


def test_attention_without_a_transpose(device: _native.Processors) -> None:
    rng = np.random.default_rng(3)
    q, k = (rng.standard_normal((2, 37, 12, 64)).astype(np.float32) for _ in range(2))
    scores = np.empty((2, 12, 37, 37), np.float32)
    run(device, q.transpose(0, 2, 1, 3), k.transpose(0, 2, 3, 1), scores)
    np.testing.assert_allclose(scores, np.einsum("bqhd,bkhd->bhqk", q, k), atol=1e-3)
    out = np.empty((2, 37, 12, 64), np.float32)
    run(device, scores, k.transpose(0, 2, 1, 3), out.transpose(0, 2, 1, 3))
    np.testing.assert_allclose(out, np.einsum("bhqk,bkhd->bqhd", scores, k), rtol=1e-3, atol=1e-2)


def test_a_batch_dimension_that_is_broadcast(device: _native.Processors) -> None:
    a = np.random.default_rng(0).standard_normal((4, 5, 6)).astype(np.float32)
    b = np.broadcast_to(np.random.default_rng(1).standard_normal((6, 7)).astype(np.float32), (4, 6, 7))
    c = np.empty((4, 5, 7), np.float32)
    run(device, a, b, c)
    np.testing.assert_allclose(c, a @ b, atol=1e-5)


def test_operands_that_are_broadcast_along_a_matrix_dimension(device: _native.Processors) -> None:
    a = np.broadcast_to(np.arange(6, dtype=np.float32), (5, 6))
    b = np.broadcast_to(np.arange(7, dtype=np.float32), (6, 7))
    c = np.empty((5, 7), np.float32)
    run(device, a, b, c)
    np.testing.assert_allclose(c, a @ b)


def test_no_depth_gives_zeros(device: _native.Processors) -> None:
    for batch in ((), (3,)):
        c = np.full((*batch, 4, 5), np.nan, np.float32)
        run(device, np.empty((*batch, 4, 0), np.float32), np.empty((*batch, 0, 5), np.float32), c)
        assert (c == 0).all()


@pytest.mark.parametrize("shape", [((0, 4), (4, 5)), ((3, 4), (4, 0)), ((0, 0), (0, 0)), ((0, 3, 4), (0, 4, 5))])
def test_no_result_writes_nothing(device: _native.Processors, shape: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (np.ones(s, np.float32) for s in shape)
    guard = np.full(8, 7.0, np.float32)
    c = np.lib.stride_tricks.as_strided(guard, (a @ b).shape, (a @ b).strides)
    run(device, a, b, c)
    assert (guard == 7).all()


def test_old_contents_never_show(device: _native.Processors) -> None:
    for m, n in ((1, 65), (65, 1), (1, 1), (33, 65)):
        c = np.full((m, n), np.nan, np.float32)
        run(device, np.zeros((m, 8), np.float32), np.ones((8, n), np.float32), c)
        assert (c == 0).all()


def test_a_leading_dimension_beyond_32_bits(device: _native.Processors) -> None:
    """Rows 2**31 + 64 elements apart, in memory that is reserved but never touched between them."""
    stride = (1 << 31) + 64
    no_reserve = 0x4000  # MAP_NORESERVE on Linux
    memory = mmap.mmap(-1, (stride + 16) * 4, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
    flat = np.frombuffer(memory, np.float32)
    a = np.lib.stride_tricks.as_strided(flat, (2, 8), (stride * 4, 4))
    a[...] = np.arange(16).reshape(2, 8)
    b = np.random.default_rng(5).standard_normal((8, 3)).astype(np.float32)
    c = np.empty((2, 3), np.float32)
    run(device, a, b, c)
    np.testing.assert_allclose(c, np.ascontiguousarray(a) @ b, rtol=1e-5)


def test_the_users_thread_setting_is_restored() -> None:
    """Checked in OpenBLAS itself, whose functions SciPy's wheel prefixes."""
    assert install_blas()
    assert _native.blas_controls_threads()
    library = ctypes.CDLL(cython_blas.__file__)
    get, set_ = library.scipy_openblas_get_num_threads, library.scipy_openblas_set_num_threads
    a, c = np.ones((64, 64), np.float32), np.empty((64, 64), np.float32)
    before = get()
    try:
        for threads in (1, 2):
            set_(threads)
            run(Client(threads=2).native_device, a, a, c)
            assert get() == threads
    finally:
        set_(before)


def test_many_callers_at_once(device: _native.Processors) -> None:
    rng = np.random.default_rng(11)
    a, b = (rng.standard_normal((96, 96)).astype(np.float32) for _ in range(2))
    expected, failures = a @ b, []

    def work() -> None:
        c = np.empty((96, 96), np.float32)
        for _ in range(50):
            run(device, a, b, c)
            if not np.allclose(c, expected, atol=1e-3):
                failures.append(c.copy())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_wheels_library_is_the_one_that_scipy_uses() -> None:
    """Found without an import of scipy.linalg, it is the very library that the module's functions call."""
    functions = native_module._blas_of_wheel()
    if functions is None:
        pytest.skip("SciPy does not come from a wheel with OpenBLAS")
    assert functions.keys() == set(native_module._BLAS)
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped = {line.split()[-1] for line in maps if "libscipy_openblas-" in line}
    assert len(mapped) == 1
    code = "import shlo_disc.runtime.native_module as n, sys; assert n.install_blas() and 'scipy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
