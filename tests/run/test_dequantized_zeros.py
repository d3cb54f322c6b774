# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Zero points of 32 and 64 bits of which nothing is known, as PT2E has them.

Differences may wrap, or be no number that an f32 has.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.dequantized_programs import near, random

ROWS = (1, 3, 17, 40)


def by_columns(x: Any, q: Any, z: Any, s: Any) -> Any:
    return x @ ((q.astype(z.dtype) - z).astype(jnp.float32) * s)


def as_pytorch(x: Any, q: Any, z: Any, s: Any) -> Any:
    """As a linear layer dequantises (n, k) for each channel."""
    return x @ ((q.T.astype(z.dtype) - z[:, None]).astype(jnp.float32) * s[:, None]).T


def in_groups(x: Any, q: Any, z: Any, s: Any) -> Any:
    k, n = q.shape
    z = jnp.stack([z, z + 1])[:, None]
    return x @ ((q.reshape(2, k // 2, n).astype(z.dtype) - z).astype(jnp.float32) * s).reshape(k, n)


def expected(function: Any, q: np.ndarray, z: np.ndarray, s: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        if function is in_groups:
            z = np.stack([z, z + z.dtype.type(1)]).repeat(len(q) // 2, axis=0)
        return (q.astype(z.dtype) - z).astype(np.float32) * s


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("function", [by_columns, as_pytorch, in_groups])
def test_zero_points_of_any_integer(function: Any, dtype: str) -> None:
    k, n = 64, 11
    q, s = random((k, n), "int8"), random((n,), "float32")
    stored = np.ascontiguousarray(q.T) if function is as_pytorch else q
    program = (lambda x, q, z, s: as_pytorch(x, q.T, z, s)) if function is as_pytorch else function
    with jax.enable_x64():
        specs = (("m, 64", "float32"), (", ".join(map(str, stored.shape)), "int8"), ("11", dtype), ("11", "float32"))
        executable = shlo_disc.compile(program, args=specs)
    assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
    limits = np.iinfo(dtype)
    usual = np.arange(-5, 6, dtype=dtype)
    large = usual * np.asarray(2**24 // 5 + 7, dtype)
    wrapping = np.asarray([limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1, -1, 1 << 24, (1 << 24) + 1,
                           -(1 << 24) - 3, limits.max // 3], dtype)  # fmt: skip
    for z in (usual, large, wrapping):
        weight = expected(function, q, z, s)
        for m in ROWS:
            x = np.random.default_rng(m).standard_normal((m, k), np.float32)
            near(np.asarray(executable(x, stored, z, s)), x, weight)


def test_each_difference_is_rounded_once() -> None:
    """Rows of the identity give the weights themselves."""
    q = np.arange(-128, 128, dtype=np.int8)[:, None].repeat(9, 1)
    z = np.asarray([0, 127, (1 << 24) - 1, 1 << 24, -(1 << 24), -(1 << 24) + 1, 99, -5, 12345678], np.int32)
    function = lambda x, q, z: x @ (q.astype(jnp.int32) - z).astype(jnp.float32)  # noqa: E731
    args = (("m, 256", "float32"), ("256, 9", "int8"), ("9", "int32"))
    executable = shlo_disc.compile(function, args=args)
    assert [kernel.name for kernel in executable.kernels] == ["dequantized_dot"]
    x = np.eye(256, dtype=np.float32)
    wanted = (q.astype(np.int64) - z).astype(np.float32)
    np.testing.assert_array_equal(executable(x, q, z), wanted)
    np.testing.assert_array_equal(executable(x[:3], q, z), wanted[:3])
