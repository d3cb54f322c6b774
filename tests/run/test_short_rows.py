# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of a few columns, which lie in the lanes of vectors: every reduction, element type and number of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.options import Options

Function = Callable[[Any], Any]

ROWS = (1, 7, 16, 33, 1031)


def softmax(x: Any) -> Any:
    return jax.nn.softmax(x, axis=-1)


def moments(x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 0.5), mean[..., 0]


def beside(x: Any) -> Any:
    """Values beside the rows: a number for each column, one for each row, and rows that lie elsewhere."""
    n, d = x.shape[-2:]
    return (x * jnp.arange(1.0, d + 1, dtype=x.dtype) + x[..., :1]).sum(-1), (x[..., ::-1, ::-1] * x).max(-1)


def halves(x: Any) -> Any:
    """A combination that depends on the order."""
    return lax.reduce(x, jnp.zeros((), x.dtype), lambda a, b: a * 0.5 + b, (x.ndim - 1,))


def digits(x: Any) -> Any:
    """The same of integers."""
    return lax.reduce(x, jnp.zeros((), x.dtype), lambda a, b: a * 3 + b, (x.ndim - 1,))


def two_axes(x: Any) -> Any:
    """Rows along two axes, one of them of size 1."""
    y = jnp.stack([x, x + 1], -2)[..., None]
    return y.sum((-3, -2, -1)), y - y.max((-3, -2, -1), keepdims=True)


def written_over(x: Any) -> Any:
    """A result that may lie where its operand did."""
    y = jnp.cumsum(x, axis=-2)
    return y - y.min(-1, keepdims=True)


FLOATS: dict[str, Function] = {
    "sum": lambda x: x.sum(-1),
    "product": lambda x: x.prod(-1),
    "maximum": lambda x: x.max(-1),
    "argmax": lambda x: jnp.argmax(x, -1),
    "argmin and min": lambda x: (jnp.argmin(x, -1), x.min(-1)),
    "norm": lambda x: jnp.linalg.norm(x, axis=-1),
    "unit": lambda x: x / (1 + jnp.linalg.norm(x, axis=-1, keepdims=True)),
    "softmax": softmax,
    "log of softmax": lambda x: jax.nn.log_softmax(x, axis=-1),
    "logsumexp": lambda x: jax.nn.logsumexp(x, axis=-1),
    "any": lambda x: (x > 1).any(-1),
    "moments": moments,
    "beside": beside,
    "halves": halves,
    "two axes": two_axes,
    "written over": written_over,
}

OF_EXTREMES = ("maximum", "argmin and min", "beside", "two axes", "written over")
"""Functions in which XLA loses a NaN where rows are many."""

INTEGERS: dict[str, Function] = {
    "sum": lambda x: x.sum(-1),
    "argmax": lambda x: jnp.argmax(x, -1),
    "or": lambda x: lax.reduce(x, jnp.zeros((), x.dtype), lax.bitwise_or, (x.ndim - 1,)),
    "share": lambda x: x // (1 + x.max(-1, keepdims=True)),
    "digits": digits,
}

TOLERANCES = {"float64": 1e-13, "float32": 3e-6, "bfloat16": 3e-2, "float16": 4e-3}


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(shape[0])
    values = rng.integers(0, 50, shape) if "int" in dtype else rng.integers(-8, 9, shape) / 4
    return values.astype(jnp.dtype(dtype))


def check(
    function: Function, columns: int, dtype: str, cpu: str, outer: tuple[int, ...] = (), special: tuple[float, ...] = ()
) -> None:
    """At all numbers of rows, without and with special numbers."""
    with jax.enable_x64(True):
        dims = ", ".join([*map(str, outer), "n", str(columns)])
        executable = shlo_disc.compile(function, args=((dims, dtype),), options=Options(cpu=cpu, guard_pages=True))
        for n in ROWS:
            x = numbers((*outer, n, columns), dtype)
            for number in (None, *special):
                if number is not None:
                    x[..., n // 2, columns - 1] = number
                expected = jax.tree.leaves(jax.jit(function)(x))
                for got, wanted in zip(jax.tree.leaves(executable(x)), expected, strict=True):
                    assert got.dtype == wanted.dtype
                    got, wanted = np.asarray(got), np.asarray(wanted)
                    if dtype in TOLERANCES and wanted.dtype.kind != "i" and wanted.dtype != bool:
                        got, wanted = got.astype(np.float64), wanted.astype(np.float64)
                        np.testing.assert_allclose(got, wanted, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype] * 4)
                    else:
                        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("columns", [*range(2, 10), 12, 15, 16, 17])
@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str, columns: int, dtype: str, cpu: str) -> None:
    check(FLOATS[name], columns, dtype, cpu, special=() if name in OF_EXTREMES else (np.nan, np.inf))


@pytest.mark.parametrize("columns", [2, 3, 8, 16])
def test_extremes_of_nan(columns: int) -> None:
    """A NaN is the extreme, and the first one its place."""

    def function(np: Any, x: Any) -> Any:
        top = x.max(-1, keepdims=True)
        return x.max(-1), x.min(-1), np.argmax(x, -1), np.argmin(x, -1), x - top

    run = shlo_disc.compile(lambda x: function(jnp, x), args=((f"n, {columns}", "float32"),))
    for n in ROWS:
        x = numbers((n, columns), "float32")
        x[n // 2, columns - 1] = x[0, 0] = np.nan
        for got, wanted in zip(run(x), function(np, x), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64"])
@pytest.mark.parametrize("columns", [2, 3, 5, 8, 16])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str, columns: int, dtype: str, cpu: str) -> None:
    check(INTEGERS[name], columns, dtype, cpu)


@pytest.mark.parametrize("columns", [3, 8])
@pytest.mark.parametrize("outer", [(3,), (1,), (2, 3)])
@pytest.mark.parametrize("name", ["softmax", "argmax", "beside", "unit", "halves"])
def test_rows_along_several_axes(name: str, outer: tuple[int, ...], columns: int) -> None:
    check(FLOATS[name], columns, "float32", "host", outer)


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("columns", [2, 3, 8, 16])
def test_rows_across_those_of_the_argument(columns: int, opt_level: int) -> None:
    """A transposed argument has as many elements as the rows, which do not follow each other in it."""

    def function(x: Any) -> Any:
        return jnp.argmax(x.T * 2, -1), jax.nn.softmax(x.T + 1, axis=-1)

    options = Options(guard_pages=True, opt_level=opt_level)
    executable = shlo_disc.compile(function, args=((f"{columns}, n", "float32"),), options=options)
    for n in (*ROWS, columns):
        x = numbers((columns, n), "float32")
        for got, wanted in zip(executable(x), jax.jit(function)(x), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=3e-6)


SIZES = ((1, 1), (1, 33), (33, 1), (5, 2), (6, 7), (7, 8), (3, 40))


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"])
@pytest.mark.parametrize("columns", [2, 3, 8, 16])
@pytest.mark.parametrize("name", ["sum", "softmax", "argmax", "moments", "logsumexp", "halves"])
def test_rows_along_two_axes_of_any_size(name: str, columns: int, cpu: str) -> None:
    """A number for each place along the second axis keeps them apart."""

    def function(x: Any, w: Any) -> Any:
        return FLOATS[name](x * w[:, None])

    options = Options(cpu=cpu, guard_pages=True)
    executable = shlo_disc.compile(function, args=((f"b, s, {columns}", "float32"), ("s", "float32")), options=options)
    for sizes in SIZES:
        arrays = numbers((*sizes, columns), "float32"), numbers(sizes[1:], "float32")
        expected = jax.tree.leaves(jax.jit(function)(*arrays))
        for got, wanted in zip(jax.tree.leaves(executable(*arrays)), expected, strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=3e-6, atol=1e-5)


@pytest.mark.parametrize("columns", [3, 10])
@pytest.mark.parametrize("name", ["softmax", "argmax", "logsumexp", "unit"])
def test_rows_of_a_product(name: str, columns: int) -> None:
    """The kernel is called for some rows at a time."""
    w = numbers((40, columns), "float32")

    def function(x: Any) -> Any:
        return FLOATS[name](x @ w + 0.25)

    executable = shlo_disc.compile(function, args=(("n, 40", "float32"),), options=Options(guard_pages=True))
    for n in ROWS:
        x = numbers((n, 40), "float32") / 8
        np.testing.assert_allclose(np.asarray(executable(x)), np.asarray(jax.jit(function)(x)), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("keys", [2, 3, 8])
def test_attention_over_few_keys(keys: int) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ k.swapaxes(1, 2) / 4, axis=-1) @ v

    args = (("b, s, 16", "float32"), (f"b, {keys}, 16", "float32"), (f"b, {keys}, 16", "float32"))
    executable = shlo_disc.compile(function, args=args, options=Options(guard_pages=True))
    for b, s in ((1, 1), (3, 17), (2, 100)):
        arrays = [numbers((b, n, 16), "float32") / 4 for n in (s, keys, keys)]
        got, wanted = executable(*arrays), jax.jit(function)(*arrays)
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=2e-5, atol=1e-5)
