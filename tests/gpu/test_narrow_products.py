# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights of narrow integers and floats in whole programs for GPUs: few rows read a weight as it is, more
multiply one that is written, by cuBLASLt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.gpu.checks import compiled, run_on_gpu
from tests.gpu.emulated import fresh_client, loaded
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_blas import MockBlas
from tests.gpu.mock_driver import MockDriver
from tests.gpu.test_products import blas as blas
from tests.gpu.test_products import library_client
from tests.run.dequantized_programs import GROUPED, WHOLE, Program, near, terms_of, zeros_of_halves
from tests.run.test_dequantized_16_bits import FORMS, NUMPY
from tests.run.test_dequantized_neighbours import NEXT

pytestmark = needs_mock_driver

SHAPES = (((64, 70, 16), (1, 2, 3, 16, 17)), ((192, 48, 32), (1, 3, 65)), ((600, 37, 600), (2, 17)))
"""Terms, columns, and terms of a group; and numbers of rows."""

BF16 = np.dtype(ml_dtypes.bfloat16)


def specs_of(arrays: Sequence[np.ndarray]) -> list[tuple[str, str]]:
    return [(", ".join(map(str, a.shape)), a.dtype.name) for a in arrays]


def narrow_kernels(executable: Any) -> list[str]:
    """The kernels of products that read narrow weights."""
    return [
        kernel.name for kernel in executable.kernels if kernel.name.startswith("product_") and "_by_" in kernel.name
    ]


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("form", FORMS)
def test_products_of_16_bits(form: Callable[..., Any], name: str) -> None:
    """Sums in f32 are those of the rounded weights, in the program's own type these are rounded."""
    dtype = NUMPY[name]
    for (k, n, g), rows in SHAPES:
        weight, arrays = form(dtype, k, n, g)

        def both(x: Any, *arrays: Any, weight: Any = weight) -> Any:
            w = weight(*arrays)
            return lax.dot(x, w, preferred_element_type=jnp.float32)

        def own(x: Any, *arrays: Any, weight: Any = weight) -> Any:
            return x @ weight(*arrays)

        rounded = np.asarray(weight(*map(jnp.asarray, arrays))).astype(np.float64)
        calls = [(np.random.default_rng(m).standard_normal((m, k)).astype(dtype), *arrays) for m in rows]
        for function in (both, own):
            executable = compiled(function, [(f"m, {k}", dtype.name), *specs_of(arrays)], strict=True)
            assert len(narrow_kernels(executable)) == 1 and len(executable.kernels) == 2
            for (x, *_), got in zip(calls, run_on_gpu(executable, calls), strict=True):
                left = x.astype(np.float64)
                exact, limit = left @ rounded, 4 * np.sqrt(k + 1) * 2.0**-23 * (np.abs(left) @ np.abs(rounded)) + 1e-30
                limit += 0 if function is both else 2.0 ** -(8 if name == "bf16" else 11) * np.abs(exact)
                assert got.dtype == (np.float32 if function is both else dtype)
                assert (np.abs(got.astype(np.float64) - exact) <= limit).all()


@pytest.mark.parametrize("form", [*WHOLE, *GROUPED, zeros_of_halves])
@pytest.mark.slow
def test_products_of_f32(form: Callable[..., Program]) -> None:
    for (k, n, g), rows in SHAPES[:2]:
        program = form(k, n, g)
        function, weights = program
        executable = compiled(function, [(f"m, {terms_of(program)}", "float32"), *specs_of(weights)], strict=True)
        assert len(narrow_kernels(executable)) == 1 and len(executable.kernels) == 2
        weight = np.asarray(function.__dict__["weight"](*map(jnp.asarray, weights)))
        calls = [(np.random.default_rng(m).standard_normal((m, k), np.float32), *weights) for m in rows]
        for (x, *_), got in zip(calls, run_on_gpu(executable, calls), strict=True):
            near(got, x, weight)


# ---- what follows, and many rows ------------------------------------------------------------------------------------


def weight_of(q: Any, s: Any) -> Any:
    return q.astype(jnp.bfloat16) * s


def followed(x: Any, q: Any, s: Any, b: Any) -> Any:
    return jax.nn.gelu(x @ weight_of(q, s) + b)


def scaled_later(x: Any, q: Any, s: Any, b: Any) -> Any:
    return (x @ q.astype(jnp.bfloat16)) * s


def with_bias(x: Any, q: Any, s: Any, b: Any) -> Any:
    return lax.dot(x, weight_of(q, s), preferred_element_type=jnp.float32) + b.astype(jnp.float32)


def on_the_left(x: Any, q: Any, s: Any, b: Any) -> Any:
    return weight_of(q, s).T @ x.T


def of_more_axes(x: Any, q: Any, s: Any, b: Any) -> Any:
    return x.reshape(-1, 2, 64) @ weight_of(q, s)


def of_one_row(x: Any, q: Any, s: Any, b: Any) -> Any:
    return x[1] @ weight_of(q, s)


def in_a_loop(x: Any, q: Any, s: Any, b: Any) -> Any:
    def step(_: Any, sign: Any) -> Any:
        return jnp.sign(((x * sign) @ weight_of(q, s)).astype(jnp.float32).sum()).astype(x.dtype)

    return lax.fori_loop(0, 2, step, jnp.ones((), x.dtype))


PROGRAMS = (followed, scaled_later, with_bias, on_the_left, of_more_axes, of_one_row, in_a_loop)


def arguments(m: int) -> list[np.ndarray]:
    """Integers, so that all sums are exact."""
    rng = np.random.default_rng(m)
    x, s, b = (rng.integers(-2, 3, shape).astype(BF16) for shape in ((2 * m, 64), (48,), (48,)))
    return [x, rng.integers(-9, 9, (64, 48)).astype(np.int8), s, b]


def program(function: Callable[..., Any], rows: str = "2*m", **options: Any) -> Any:
    specs = [(f"{rows}, 64", "bfloat16"), ("64, 48", "int8"), ("48", "bfloat16"), ("48", "bfloat16")]
    return shlo_disc.compile(
        function, target="cuda:sm_90a", args=tuple(specs), options=shlo_disc.Options(**{"strict": True, **options})
    )


def check(run: Any, function: Callable[..., Any], m: int) -> None:
    given = arguments(m)
    got, want = np.asarray(run(*given)), np.asarray(jax.jit(function)(*given))
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("function", PROGRAMS)
def test_programs(driver: MockDriver, blas: MockBlas, function: Callable[..., Any]) -> None:
    """Up to 64 rows no weight is written, and no product is the library's; a loop of no elements is not launched."""
    executable = program(function)
    assert narrow_kernels(executable)
    for client, has_library in ((fresh_client(), False), (library_client(), True)):
        run = loaded(executable, client)
        for m in (1, 3, 32, 33, 3):
            driver.launches.clear()
            blas.products.clear()
            check(run, function, m)
            written = [name for name in driver.launches if name.startswith("loop_convert") and "slice" in name]
            is_many = m == 33 and function is not of_one_row
            products = 2 if function is in_a_loop else 1
            assert len(written) == (products if is_many else 0)
            assert len(blas.products) == (products if is_many and has_library else 0)


def test_a_call_that_comes_again_is_a_graph(driver: MockDriver) -> None:
    client = fresh_client()
    run = loaded(program(followed), client)
    for m in (3, 33, 3, 33, 3, 33):
        check(run, followed, m)
    assert client.device(0).launch_stats()["replays"] >= 2


def test_rows_that_are_known() -> None:
    """Few rows have no weight that may be written; many have no kernel that reads narrow ones."""
    few, many = (program(followed, rows) for rows in ("64", "65"))
    assert [len(narrow_kernels(one)) for one in (few, many)] == [1, 0]
    assert [len(one.kernels) for one in (few, many)] == [1, 2]
    assert "arena = 0" in few.as_text("host") and "arena = 0" not in many.as_text("host")


@pytest.mark.slow
def test_weights_are_rounded_as_without_fusions() -> None:
    """To the last bit: each result is an element of the weight."""
    rng = np.random.default_rng(0)
    fused, plain = (program(followed, "m", max_fusions=number) for number in (None, 0))
    assert not narrow_kernels(plain)
    q, s, b = arguments(1)[1:]
    s = rng.uniform(0.5, 1.5, s.shape).astype(BF16)
    calls = [(np.eye(m, 64, 5, BF16), q, s, b) for m in (3, 16, 17)]
    for got, want in zip(run_on_gpu(fused, calls), run_on_gpu(plain, calls), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("function", NEXT)
def test_programs_next_to_these_stay(function: Callable[..., Any]) -> None:
    specs = [("m, 40", "float32"), ("40, 24", "int8"), ("24", "float32")]
    assert not narrow_kernels(compiled(function, specs))


@pytest.mark.parametrize("right", ["float8_e4m3fn", "float8_e5m2"])
def test_both_sides_are_floats_of_8_bits(right: str) -> None:
    """They become bf16, which has all of them."""

    def stored(x: Any, w: Any) -> Any:
        return lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)

    k, n = 64, 24
    w = np.linspace(-3, 3, k * n).reshape(k, n).astype(np.float32).astype(right)
    calls = [(np.random.default_rng(m).standard_normal((m, k)).astype(np.float32).astype("float8_e4m3fn"), w)
             for m in (1, 17, 70)]  # fmt: skip
    for function in (stored, lambda x, w: stored(-x, -w)):
        executable = compiled(function, [(f"m, {k}", "float8_e4m3fn"), (f"{k}, {n}", right)], strict=True)
        for (x, _), got in zip(calls, run_on_gpu(executable, calls), strict=True):
            exact = x.astype(np.float64) @ w.astype(np.float64)
            np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5 * abs(exact).max())


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_convolutions_of_floats_of_8_bits(dtype: str) -> None:
    def function(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", preferred_element_type=jnp.float32)

    executable = compiled(function, [("b, 4, 8, 8", dtype), ("16, 4, 3, 3", dtype)], strict=True)
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32).astype(dtype) for shape in ((2, 4, 8, 8), (16, 4, 3, 3)))
    (got,) = run_on_gpu(executable, [(x, w)])
    wanted = jax.jit(function)(x.astype(np.float32), w.astype(np.float32))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)
