# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over rows of a few elements: several vectors that are rows together, and rows that are left over.

The numbers of rows lie on both sides of such a period and of a work item, for registers of 256 and of 512 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import shlo_disc
from shlo_disc.options import Options
from tests.run.op_check import random_array

ROWS = (1, 2, 7, 8, 9, 15, 16, 17, 33, 341, 342, 687, 2001)
TARGETS = ("x86-64-v3", "x86-64-v4")


def mixed(x: Any, row: Any, column: Any) -> tuple[Any, ...]:
    """Selections from values of rows, of columns and of places, and from reversals of both."""
    ones = (1,) * (x.ndim - 1)
    shared = row.reshape(-1, *ones)
    places = jnp.arange(x.shape[0]).reshape(-1, *ones) % 3 + jnp.arange(x.shape[-1])
    chosen = jnp.where(places % 2 == 0, x, shared)
    return chosen, jnp.where(x == column, shared, x[::-1]), jnp.where(chosen == x, x[..., ::-1], column)


def interleaved(x: Any, row: Any, column: Any) -> tuple[Any, ...]:
    wide = jnp.concatenate([x, jnp.broadcast_to(column, x.shape)], -1)
    return jnp.stack([x, x[::-1]], -1), wide, jnp.concatenate([wide, x], -1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "dtype", ["float32", "int8", "bool", *(pytest.param(d, marks=pytest.mark.slow) for d in ("float64", "bfloat16"))]
)
@pytest.mark.parametrize("function", [mixed, interleaved])
@pytest.mark.parametrize("shape", [(3,), (6,), (5,), (3, 2), (2, 3), (2, 2), (3, 1, 4), (7, 3)], ids=str)
def test_rows_of_few(shape: tuple[int, ...], function: Callable[..., Any], dtype: str, target: str) -> None:
    args = [(f"n, {', '.join(map(str, shape))}", dtype), ("n", dtype), (str(shape[-1]), dtype)]
    with jax.enable_x64(True):
        executable = shlo_disc.compile(function, args=args, options=Options(cpu=target))
        for rows in ROWS:
            sizes = ((rows, *shape), (rows,), shape[-1:])
            inputs = [random_array(size, dtype, seed) for seed, size in enumerate(sizes)]
            for found, wanted in zip(executable(*inputs), jax.jit(function)(*inputs), strict=True):
                np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted), err_msg=f"{rows} rows")


@pytest.mark.parametrize("columns", [3, 6])
def test_what_a_row_shares_is_read_by_vectors(columns: int) -> None:
    args = ((f"n, {columns}", "float32"), ("n", "float32"))
    executable = shlo_disc.compile(lambda x, row: x / row[:, None], args=args)
    code = str(executable.listing("kernels"))
    assert "vector.shuffle" in code and "vector.gather" not in code
