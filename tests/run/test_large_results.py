# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results that leave the caches before anybody reads them: written past the caches, where whole lines are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.lowering_cpu.emitters.frame import STREAM_BYTES


@pytest.mark.parametrize("columns", [16, 24, 48, 50])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8_e4m3fn", "int8", "float64"])
def test_rows_that_fill_lines_and_others(dtype: str, columns: int) -> None:
    """Rows of 24 halves, or of 48, end within a line."""

    def function(x: jax.Array, b: jax.Array) -> jax.Array:
        return x + b[:, None]

    with jax.enable_x64(dtype == "float64"):
        executable = shlo_disc.compile(function, args=[(f"s, {columns}", dtype), ("s", dtype)])
        for rows in (3, STREAM_BYTES // 4 // columns - 1, STREAM_BYTES // 4 // columns + 1):
            small = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns) % 7
            x, b = jnp.asarray(small, dtype), jnp.asarray(np.arange(rows) % 5, dtype)
            assert (np.asarray(executable(x, b)) == np.asarray(x + b[:, None])).all()
