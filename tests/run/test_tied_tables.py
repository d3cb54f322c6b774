# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables whose rows are looked up and multiplied by: bound or constant, they are in memory as packed forms alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.options import Options
from tests.c.c_api import Program

Function = Callable[[Any, Any], Any]


def plain(w: Any, t: Any) -> Any:
    return jnp.tanh(w[t]) @ w.T


def normalised(w: Any, t: Any) -> Any:
    """Rows that a kernel walks over twice."""
    x = w[t] * 8
    x = x - x.mean(-1, keepdims=True)
    return (x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)) @ w.T


def of_the_last(w: Any, t: Any) -> Any:
    """Several rows are looked up for each that is multiplied; an epilogue reads the sums."""
    return jax.nn.log_softmax(w[t].mean(1) @ w.T)


def filled(w: Any, t: Any) -> Any:
    return jnp.take(w, t, axis=0, mode="fill", fill_value=0.25) @ w.T


def with_shorter_rows(w: Any, t: Any) -> Any:
    """A part of each row is looked up, and another of the row before."""
    d = w.shape[1]
    x = lax.concatenate([w[t, : d // 3], w[t - 1, d // 3 :]], t.ndim)
    return jnp.tanh(x) @ w.T


def one_column(w: Any, t: Any) -> Any:
    return w[t, 1], jnp.tanh(w[t]) @ w.T


def of_one_row(w: Any, t: Any) -> Any:
    x = lax.dynamic_index_in_dim(w, t[0, 0], keepdims=True)
    return jnp.tanh(x) @ w.T + t.sum()


def twice(w: Any, t: Any) -> Any:
    """Two kernels look up rows, and two products multiply by them."""
    x = jnp.tanh(w[t])
    return (x * 2) @ w.T, jax.nn.relu(jnp.cos(w[t[:, ::-1]]) @ w.T)


FUNCTIONS: dict[str, Function] = {
    f.__name__: f for f in (plain, normalised, of_the_last, filled, with_shorter_rows, one_column, of_one_row, twice)
}
CALLS = ((1, 1), (2, 7), (3, 32), (19, 17))
"""Sizes of the tokens."""

TOLERANCES = {"float64": 1e-13, "float32": 5e-6, "float16": 4e-3, "bfloat16": 3e-2}
"""Parts of the largest result, which roundings of the element type may make: of sums of up to 257 terms, and before."""

TABLES = ((50, 64), (97, 33), (1001, 5), (33, 257))


def table_of(rows: int, columns: int, dtype: str) -> np.ndarray:
    return np.random.default_rng(rows).standard_normal((rows, columns)).astype(dtype)


def tokens_of(rows: int, shape: tuple[int, ...]) -> np.ndarray:
    """Also from the end, and beyond both."""
    return np.random.default_rng(shape[0]).integers(-rows - 3, rows + 3, shape, dtype=np.int32)


def assert_right(got: Any, expected: Any, dtype: str) -> None:
    for actual, wanted in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        actual, wanted = np.asarray(actual), np.asarray(wanted)
        assert actual.shape == wanted.shape
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
        np.testing.assert_allclose(actual / scale, wanted / scale, atol=TOLERANCES[dtype], rtol=0)


def ways(function: Function, w: np.ndarray, options: Options, folder: Path) -> dict[str, Callable[[Any], Any]]:
    """The program with the table passed, bound, as a constant, from a file of packed forms, and bound in C."""
    dtype = str(w.dtype)
    passed = shlo_disc.compile(function, args=((w.shape, dtype), ("b, s", "int32")), options=options)
    assert passed.artifact.header["packed_only"] == [0]
    constant = shlo_disc.compile(lambda t: function(jnp.asarray(w), t), args=(("b, s", "int32"),), options=options)
    assert constant.artifact.header["packed_only"]
    constant.save(folder / "packed", prepack=True)
    found = {
        "passed": lambda t: passed(w, t),
        "bound": passed.bind(w),
        "constant": constant,
        "packed": shlo_disc.load(folder / "packed", trust=True),
    }
    return found if dtype == "bfloat16" else found | {"in C": Program(passed.artifact.serialize()).bind(w)}


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("shape", TABLES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers(name: str, shape: tuple[int, int], dtype: str, cpu: str, tmp_path: Path) -> None:
    w = table_of(*shape, dtype)
    with jax.enable_x64(dtype == "float64"):
        for call in ways(FUNCTIONS[name], w, Options(cpu=cpu), tmp_path).values():
            for sizes in CALLS:
                tokens = tokens_of(shape[0], sizes)
                expected = jax.jit(FUNCTIONS[name])(w, tokens)
                assert_right(call(tokens), expected, dtype)


def test_a_file_has_the_table_once(tmp_path: Path) -> None:
    w = table_of(4096, 64, "float32")
    executable = shlo_disc.compile(lambda t: plain(jnp.asarray(w), t), args=(("b, s", "int32"),))
    executable.save(tmp_path / "packed", prepack=True)
    assert w.nbytes < (tmp_path / "packed").stat().st_size < 1.5 * w.nbytes
