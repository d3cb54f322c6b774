# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms: every kind, lengths of every sort, batches and lengths that are symbols.

Compared with XLA's transforms and, in double precision, with NumPy's. The tolerance is relative to the largest element:
the error of a transform grows with the logarithm of its length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from shlo_disc.errors import ShapeError, UnsupportedError
from tests.run.op_check import compile_function, run_xla

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 30, 32, 49, 61, 64, 67, 97, 128, 202, 240, 343, 1000, 1009)
"""Powers, products, primes below and above the largest radix, and multiples of a large prime."""

LANES = 8
"""Lines that are transformed together."""


def data(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng([*shape, len(dtype)])
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if "complex" in dtype else real).astype(dtype)


def near(got: Any, want: Any, factor: float = 8.0) -> None:
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        size = np.max(np.abs(b), initial=0.0)
        np.testing.assert_allclose(a, b, rtol=0, atol=factor * float(np.finfo(a.dtype).eps) * max(size, 1e-30))


def check(function: Callable[..., Any], spec: str, dtype: str, shapes: list[tuple[int, ...]]) -> None:
    executable = compile_function(function, [(spec, dtype)])
    for shape in shapes:
        x = data(shape, dtype)
        near(executable(x), run_xla(function, [x]))


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int) -> None:
    """Against NumPy in double precision; both directions, and single precision, at batches around the vector width."""
    both = compile_function(lambda x: (jnp.fft.fft(x), jnp.fft.ifft(x)), [(f"b, {n}", "complex128")])
    single = compile_function(jnp.fft.fft, [(f"b, {n}", "complex64")])
    for b in (1, 7, 9):
        x = data((b, n), "complex128")
        near(both(x), (np.fft.fft(x), np.fft.ifft(x)))
        x = x.astype(np.complex64)
        near(single(x), np.fft.fft(x.astype(np.complex128)).astype(np.complex64))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 15, 16, 34, 67, 134, 1000])
def test_real(n: int) -> None:
    function = lambda x: (jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x), n=n), jnp.fft.hfft(x, n=n))  # noqa: E731
    executable = compile_function(function, [(f"b, {n}", "float64")])
    for b in (1, 9):
        x = data((b, n), "float64")
        near(executable(x), (np.fft.rfft(x), x, np.fft.hfft(x, n)), 16)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_lines_without_elements(dtype: str) -> None:
    """A length of 0 has no factors to be found."""
    for function in (jnp.fft.fft, jnp.fft.ifft, jnp.fft.fft2, lambda x: jnp.fft.fft(x, axis=0)):
        check(function, "b, 0", dtype, [(1, 0), (3, 0)])
        check(function, "0, 4", dtype, [(0, 4)])
    back = lambda x: lax.fft(x, "IRFFT", (0,))  # noqa: E731
    check(back, "3, 0", dtype, [(3, 0)])


def test_imaginary_parts_that_cannot_be() -> None:
    """A transform back to reals ignores the imaginary parts of the first element and the middle one."""
    for n in (8, 9):
        x = data((3, n // 2 + 1), "complex64")
        check(lambda y, n=n: jnp.fft.irfft(y, n=n), f"b, {n // 2 + 1}", "complex64", [x.shape])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_several_axes(dtype: str) -> None:
    check(jnp.fft.fft2, "b, 6, 10", dtype, [(1, 6, 10), (5, 6, 10)])
    check(jnp.fft.ifftn, "3, 4, 7", dtype, [(3, 4, 7)])
    check(lambda x: jnp.fft.fft(x, axis=0), "12, b", dtype, [(12, 1), (12, 20)])
    check(lambda x: jnp.fft.irfft2(x), "b, 6, 6", dtype, [(2, 6, 6)])
    check(lambda x: jnp.fft.irfftn(x, (4, 6, 11)), "4, 6, 6", dtype, [(4, 6, 6)])


def test_real_along_several_axes() -> None:
    check(jnp.fft.rfft2, "b, 6, 9", "float32", [(1, 6, 9), (3, 6, 9)])
    check(jnp.fft.rfftn, "4, 5, 8", "float64", [(4, 5, 8)])


def test_symbolic_lengths() -> None:
    """One compile for every length, primes among them."""
    forward = compile_function(lambda x: (jnp.fft.fft(x), jnp.fft.ifft(x)), [("b, n", "complex64")])
    real = compile_function(jnp.fft.rfft, [("n", "float32")])
    for n in (1, 2, 7, 16, 67, 120, 257):
        x = data((3, n), "complex64")
        near(forward(x), run_xla(lambda x: (jnp.fft.fft(x), jnp.fft.ifft(x)), [x]))
        near(real(x[0].real.copy()), run_xla(jnp.fft.rfft, [x[0].real.copy()]))


def test_symbolic_lengths_of_several_axes() -> None:
    function = lambda x: lax.fft(lax.fft(x, "RFFT", x.shape), "IRFFT", x.shape)  # noqa: E731
    executable = compile_function(function, [("m, n", "float64")])
    for shape in ((1, 1), (3, 8), (17, 5), (40, 40)):
        x = data(shape, "float64")
        near(executable(x), x)


def weighted(values: jax.Array) -> jax.Array:
    """A sum that depends on each element, and on its place."""
    places = jnp.cumsum(jnp.ones_like(jnp.real(values)), axis=-1)
    return jnp.sum(places * jnp.abs(values + (0.5 - 0.25j if jnp.iscomplexobj(values) else 0.5)) ** 2)


GRADIENTS = {
    "to half a spectrum": lambda x: weighted(jnp.fft.rfft(x)),
    "to half a spectrum of several axes": lambda x: weighted(jnp.fft.rfft2(x)),
    "from half a spectrum": lambda x: weighted(lax.fft(jnp.fft.rfft(x) * (1 + 2j), "IRFFT", x.shape[-1:])),
    "from half a spectrum of several axes": lambda x: weighted(
        lax.fft(jnp.fft.rfft2(x) * (1 + 2j), "IRFFT", x.shape[-2:])
    ),
    "of complex numbers": lambda x: weighted(jnp.fft.ifft2(jnp.fft.fft(x + 1j * x**2))),
}


@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_by_symbolic_lengths(name: str, order: int) -> None:
    """JAX's own transposes take a symbolic length to be odd."""
    first = jax.grad(GRADIENTS[name])
    gradient = first if order == 1 else jax.grad(lambda x: jnp.sum(first(x) ** 3))
    executable = compile_function(gradient, [("m, n", "float64")])
    for shape in ((1, 1), (2, 1), (3, 4), (2, 9)):
        x = data(shape, "float64")
        with jax.enable_x64(True):
            near(executable(x), jax.jit(gradient)(x), 1024)


def test_convolution_by_transforms() -> None:
    def function(x: jax.Array, y: jax.Array) -> jax.Array:
        size = x.shape[0] + y.shape[0] - 1
        spectra = [lax.fft(jnp.pad(v, (0, size - v.shape[0])), "RFFT", (size,)) for v in (x, y)]
        return lax.fft(spectra[0] * spectra[1], "IRFFT", (size,))

    executable = compile_function(function, [("m", "float64"), ("n", "float64")])
    for m, n in ((1, 1), (5, 3), (100, 31)):
        x, y = data((m,), "float64"), data((n,), "float64")
        near(executable(x, y), np.convolve(x, y), 64)


def test_not_a_number_stays_in_its_line() -> None:
    executable = compile_function(jnp.fft.fft, [("b, 16", "complex64")])
    x = data((8, 16), "complex64")
    clean = np.asarray(executable(x))
    x[3, 5] = np.nan
    found = np.asarray(executable(x))
    assert np.isnan(found[3]).all()
    np.testing.assert_array_equal(np.delete(found, 3, 0), np.delete(clean, 3, 0))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [7, 24, 67])
def test_lines_wherever_they_lie(n: int, dtype: str) -> None:
    """The same line gives the same bits in every lane, alone, as a row and as a column; neighbours may be anything."""
    rows = compile_function(jnp.fft.fft, [(f"b, {n}", dtype)])
    columns = compile_function(lambda x: jnp.fft.fft(x, axis=0), [(f"{n}, b", dtype)])
    for b in (LANES - 1, LANES, LANES + 1, 2 * LANES + 3):
        x = data((b, n), dtype)
        x[1] = np.nan
        x[2] *= 1e20
        want = np.concatenate([np.asarray(rows(x[i : i + 1])) for i in range(b)])
        np.testing.assert_array_equal(np.asarray(rows(x)), want)
        np.testing.assert_array_equal(np.asarray(columns(x.T.copy())).T, want)
        np.testing.assert_array_equal(np.asarray(rows(x[::-1].copy()))[::-1], want)


@pytest.mark.parametrize("n", [12, 15, 67, 134])
def test_real_lines_beside_others(n: int) -> None:
    """Sums of reals are real, and nothing of a line is found in another one."""
    both = compile_function(lambda x: (jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x), n=n)), [(f"b, {n}", "float32")])
    for b in (1, LANES, LANES + 3):
        x = data((b, n), "float32")
        clean = [np.asarray(a) for a in both(x)]
        assert not clean[0][:, 0].imag.any()
        assert n % 2 or not clean[0][:, n // 2].imag.any()
        x[0] = np.inf
        for found, want in zip(both(x), clean, strict=True):
            np.testing.assert_array_equal(np.asarray(found)[1:], want[1:])


@pytest.mark.parametrize("n", [65536, 30000, 8190, 10007])
def test_long_lines(n: int) -> None:
    """One line, whose own values are lanes, with any number of threads."""
    for dtype in ("complex64", "complex128"):
        x = data((1, n), dtype)
        want = np.fft.fft(x.astype(np.complex128)).astype(dtype)
        found: list[np.ndarray] = []
        for threads in (1, 3):
            options = shlo_disc.Options(threads=threads)
            with jax.enable_x64(True):
                executable = shlo_disc.compile(jnp.fft.fft, args=((f"b, {n}", dtype),), options=options)
            found.append(np.asarray(executable(x)))
        near(found[0], want)
        np.testing.assert_array_equal(*found)


def test_large() -> None:
    """Longer than what is transformed eight at a time."""
    x = data((2, 3 * 4096), "complex64")
    near(compile_function(jnp.fft.fft, [("b, 12288", "complex64")])(x), np.fft.fft(x).astype(np.complex64))


def custom_text(parameters: str, result: str = "tensor<?x4xcomplex<f32>>") -> str:
    return f"""func.func @main(%x: tensor<?x4xcomplex<f32>>) -> {result} {{
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xcomplex<f32>>) -> tensor<i32>
      %four = stablehlo.constant dense<4> : tensor<1xi32>
      %first = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %s = stablehlo.concatenate %first, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %r = stablehlo.custom_call @shlo_disc.fft(%x, %s) {{indices_of_shape_operands = dense<[1]> : tensor<1xi64>,
        mhlo.backend_config = {{{parameters}}}}} : (tensor<?x4xcomplex<f32>>, tensor<2xi32>) -> {result}
      return %r : {result} }}"""


def test_custom_call() -> None:
    x = data((5, 4), "complex64")
    near(shlo_disc.compile(custom_text("kind = 0 : i64, rank = 1 : i64"))(x), np.fft.fft(x).astype(np.complex64))


@pytest.mark.parametrize(
    ("parameters", "pattern"),
    [
        ("kind = 0 : i64", "needs the integers"),
        ("kind = 4 : i64, rank = 1 : i64", "a kind from 0 to 3"),
        ("kind = 0 : i64, rank = 3 : i64", "one to three axes"),
        ("kind = 3 : i64, rank = 1 : i64", "goes from complex<f32> to f32"),
    ],
)
def test_custom_calls_that_do_not_fit(parameters: str, pattern: str) -> None:
    with pytest.raises(UnsupportedError, match=pattern):
        shlo_disc.compile(custom_text(parameters))


def test_length_is_checked() -> None:
    text = """func.func @main(%x: tensor<?x?xcomplex<f32>>) -> tensor<?x8xcomplex<f32>> {
      %r = stablehlo.fft %x, type = FFT, length = [8] : (tensor<?x?xcomplex<f32>>) -> tensor<?x8xcomplex<f32>>
      return %r : tensor<?x8xcomplex<f32>> }"""
    executable = shlo_disc.compile(text)
    with pytest.raises(ShapeError):
        executable(data((2, 9), "complex64"))
