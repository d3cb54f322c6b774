# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms on GPUs by cuFFT, over mocks of the driver and of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import DeviceError
from shlo_disc.runtime import Client, cuda_libraries
from tests.gpu import mock_fft
from tests.gpu.emulated import loaded
from tests.gpu.marks import needs_mock_driver

pytestmark = needs_mock_driver

SIZES = ((1, 1, 1), (2, 3, 4), (3, 1, 5), (1, 7, 2), (2, 4, 8), (5, 2, 31))
"""Sizes: b, h and w."""


@pytest.fixture(autouse=True)
def library() -> Iterator[mock_fft.MockFft]:
    """The mock of cuFFT; nothing that a test did may be a mistake."""
    mock = mock_fft.mock_fft()
    mock.calls.clear()
    yield mock
    mistakes, mock.mistakes[:] = list(mock.mistakes), []
    assert not mistakes


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    real = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        return (real + 1j * rng.standard_normal(shape)).astype(dtype)
    return real.astype(dtype)


def compiled(function: Callable[..., Any], dims: str, dtype: str) -> shlo_disc.Executable:
    return shlo_disc.compile(function, target="cuda:sm_90", args=((dims, dtype),))


COMPLEX: dict[str, Callable[[Any], Any]] = {
    "one axis": jnp.fft.fft,
    "one axis, inverse": jnp.fft.ifft,
    "two axes": jnp.fft.fft2,
    "two axes, inverse": jnp.fft.ifft2,
    "three axes": jnp.fft.fftn,
    "three axes, inverse": jnp.fft.ifftn,
    "the first axis": lambda x: jnp.fft.fft(x, axis=0),
    "the middle axis, inverse": lambda x: jnp.fft.ifft(x, axis=1),
    "with what surrounds it": lambda x: jnp.fft.ifft(2 * jnp.fft.fft(jnp.sin(x)) + 1).real,
}


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(name: str, dtype: str, client: Client) -> None:
    with jax.enable_x64(dtype == "complex128"):
        run = loaded(compiled(COMPLEX[name], "b, h, w", dtype), client)
        for shape in (*SIZES, SIZES[1]):
            x = numbers(shape, dtype)
            got, want = np.asarray(run(x)), np.asarray(COMPLEX[name](jnp.asarray(x)))
            scale = max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(got, want, atol=scale * (2e-6 if dtype == "complex64" else 1e-14))


REAL: dict[str, Callable[[Any], Any]] = {
    "one axis": jnp.fft.rfft,
    "two axes": jnp.fft.rfft2,
    "three axes": jnp.fft.rfftn,
    "there and back, even": lambda x: jnp.fft.irfft(jnp.fft.rfft(x), 8),
    "there and back, odd": lambda x: jnp.fft.irfft(jnp.fft.rfft(x), 9),
    "two axes there and back": lambda x: jax.lax.fft(jnp.fft.rfft2(x), "IRFFT", x.shape[1:]),
    "three axes there and back": lambda x: jax.lax.fft(jnp.fft.rfftn(x), "IRFFT", x.shape),
    "the operand is used again": lambda x: (lambda s: (jnp.fft.irfft(s, 6), jnp.abs(s)))(jnp.fft.rfft(x)),
    "a gradient": jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2)),
}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_real(name: str, dtype: str, client: Client) -> None:
    with jax.enable_x64(dtype == "float64"):
        run = loaded(compiled(REAL[name], "b, h, w", dtype), client)
        for shape in ((2, 3, 4), (1, 2, 6), (3, 4, 10), (2, 2, 7), (2, 3, 4)):
            x = numbers(shape, dtype)
            for got, want in zip(jax.tree.leaves(run(x)), jax.tree.leaves(REAL[name](jnp.asarray(x))), strict=True):
                scale = max(1.0, float(np.abs(want).max(initial=0)))
                np.testing.assert_allclose(got, want, atol=scale * (3e-6 if dtype == "float32" else 1e-13))


def test_nothing_to_transform(library: mock_fft.MockFft, client: Client) -> None:
    run = loaded(compiled(lambda x: jnp.fft.ifft(x) + 1, "b - 1, n", "complex64"), client)
    assert np.asarray(run(numbers((0, 4), np.complex64))).shape == (0, 4)
    assert set(library.calls) <= {"cufftDestroy"}  # by clients of tests before


def test_plans_are_kept(library: mock_fft.MockFft, client: Client) -> None:
    run = loaded(compiled(jnp.fft.fft, "b, n", "complex64"), client)
    for shape in ((2, 5), (3, 5), (2, 5), (3, 5), (2, 5)):
        run(numbers(shape, np.complex64))
    assert library.calls.count("cufftXtMakePlanMany") == 2
    assert library.calls.count("cufftXtExec") == 5


@pytest.mark.slow
def test_few_plans_are_kept(library: mock_fft.MockFft, client: Client) -> None:
    before = len(library.plans)
    run = loaded(compiled(jnp.fft.fft, "b, n", "complex64"), client)
    for n in (*range(1, 300), 1, 299):
        x = numbers((1, n), np.complex64)
        np.testing.assert_allclose(np.asarray(run(x)), np.fft.fft(x), atol=2e-5)
    assert len(library.plans) - before <= 256
    assert library.calls.count("cufftXtMakePlanMany") == 300


def test_a_step_that_fails_names_the_line(library: mock_fft.MockFft, client: Client) -> None:
    run = loaded(compiled(jnp.fft.fft, "b, n", "complex64"), client)
    x = numbers((3, 4), np.complex64)
    library.fails["cufftXtMakePlanMany"] = mock_fft.INTERNAL_ERROR
    with pytest.raises(DeviceError, match=r"a Fourier transform at .*by cuFFT \(GPU \d+\): CUFFT_INTERNAL_ERROR"):
        run(x)
    np.testing.assert_allclose(np.asarray(run(x)), np.fft.fft(x), atol=1e-5)
    library.fails["cufftXtExec"] = 77
    with pytest.raises(DeviceError, match="error 77"):
        run(x)
    np.testing.assert_allclose(np.asarray(run(x)), np.fft.fft(x), atol=1e-5)


def test_a_plan_without_memory_gets_that_of_freed_blocks(library: mock_fft.MockFft, client: Client) -> None:
    run = loaded(compiled(lambda x: jnp.fft.fft(x + 1), "b, n", "complex64"), client)
    x = numbers((3, 4), np.complex64)
    run(x)
    assert client.devices()[0].memory_stats()["cached_bytes"] > 0
    library.fails["cufftXtMakePlanMany"] = mock_fft.ALLOC_FAILED
    np.testing.assert_allclose(np.asarray(run(x[:2])), np.fft.fft(x[:2] + 1), atol=1e-5)
    assert library.calls.count("cufftXtMakePlanMany") == 3
    client.trim()
    library.fails["cufftCreate"] = mock_fft.ALLOC_FAILED
    with pytest.raises(DeviceError, match="CUFFT_ALLOC_FAILED"):
        run(x[:1])


def test_names_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_libraries, "_path_of", lambda library: f"/somewhere/{library}")
    assert cuda_libraries._names_of("cufft", cuda_libraries._FFT) == [
        "/somewhere/cufft",
        "libcufft.so.12",
        "libcufft.so.11",
    ]
