# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of few rows with weights that are passed or computed, with what follows them, against XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.op_check import run_xla

ROWS = (1, 2, 3, 4, 8, 18, 19)


def plain(x: Any, w: Any, c: Any) -> Any:
    return jnp.tanh(x @ w * 0.1 + c)


def transposed(x: Any, w: Any, c: Any) -> Any:
    return jnp.tanh(x @ w.T * 0.1 + c)


def computed(x: Any, w: Any, c: Any) -> Any:
    return x @ jnp.cos(w) + c, x @ jnp.sin(w).T


def columns(x: Any, w: Any, c: Any) -> Any:
    return jnp.tanh(w @ x.T * 0.1 + c[:, None])


def rows_of_results(x: Any, w: Any, c: Any) -> Any:
    y = x @ w.T
    return y - y.mean(-1, keepdims=True), (w @ x.T).mean(0)


def side_by_side(x: Any, w: Any, c: Any) -> Any:
    return jnp.tanh(x @ w[:70].T * 0.1), x @ w[70:].T, x @ w


FUNCTIONS = (plain, transposed, computed, columns, rows_of_results, side_by_side)
CASES = [
    *((function, 143, "float32", 2) for function in FUNCTIONS),
    *((function, 131, "float64", 1) for function in (computed, columns)),
    *((function, 150, "bfloat16", 2) for function in (transposed, side_by_side)),
]


@pytest.mark.parametrize(("function", "size", "dtype", "threads"), CASES)
def test_passed_or_computed_weights(function: Callable[..., Any], size: int, dtype: str, threads: int) -> None:
    args = ((f"b, {size}", dtype), (f"{size}, {size}", dtype), (f"{size}", dtype))
    with jax.enable_x64(True):
        executable = shlo_disc.compile(function, args=args, options=shlo_disc.Options(threads=threads))
    eps = float(jnp.finfo(dtype).eps)
    rng = np.random.default_rng(size)
    for b in ROWS:
        shapes = ((b, size), (size, size), (size,))
        values = [rng.standard_normal(s).astype(jnp.dtype(dtype)) for s in shapes]
        want, got = run_xla(function, values), executable(*values)
        pairs = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
        for ours, theirs in pairs:
            np.testing.assert_allclose(
                np.asarray(ours, np.float64),
                np.asarray(theirs, np.float64),
                rtol=4 * eps,
                atol=16 * eps * np.sqrt(size),
            )
