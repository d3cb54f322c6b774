# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrices of narrow integers that are stored in any order, with scales and zero points for any of their digits.

Most are no layout that the runtime has: all are right, whether they are read as integers or written.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.dequantized_programs import f32

NAMES = "e", "k", "k", "n", "n"
"""The index that each digit is part of: matrices, rows or columns."""


def _parameter(rng: np.random.Generator, sizes: list[int]) -> np.ndarray:
    """One that is the same along some digits: often it has those of all columns or of no row, as programs have."""
    has = rng.random(5) < 0.5
    if rng.random() < 0.5:
        has[1:] = [rng.random() < 0.5, False, *[rng.random() < 0.7] * 2]
    shape = [size if own else 1 for size, own in zip(sizes, has, strict=True)]
    return rng.uniform(0.5, 1.5, shape).astype(np.float32)


def _program(rng: np.random.Generator) -> tuple[Any, tuple[np.ndarray, ...], tuple[int, int, int]]:
    """A weight (e, k, n), what it is computed of, and its sizes."""
    sizes = [int(rng.choice([1, 2, 3])), *(int(size) for size in rng.choice([1, 2, 3, 8, 16, 24], 4))]
    e, k, n = sizes[0], sizes[1] * sizes[2], sizes[3] * sizes[4]
    stored = (
        rng.permutation(5) if rng.random() < 0.3 else np.asarray([[0, 1, 2, 3, 4], [0, 3, 4, 1, 2]][rng.integers(2)])
    )
    back = np.argsort(stored)
    pairs = int(np.flatnonzero(stored == rng.choice([2, 4]))[0]) if rng.random() < 0.4 else -1  # of these digits
    if pairs >= 0 and sizes[stored[pairs]] % 2:
        pairs = -1
    is_behind = bool(rng.random() < 0.4)
    how = str(rng.choice(["times", "over", "bias", "zero", "table"]))

    def weight(q: Any, s: Any, z: Any, t: Any) -> Any:
        if pairs >= 0:
            halves = [q & 15, q >> 4]
            q = jnp.concatenate(halves, pairs) if is_behind else jnp.stack(halves, pairs + 1)
        q = q.reshape([sizes[axis] for axis in stored]).transpose(back)
        values = t[q & 15] if how == "table" and pairs < 0 else f32(q)
        if how == "zero":
            values = (values - z) * s
        elif how == "bias":
            values = values * s + z
        else:
            values = values / s if how == "over" else values * s
        return values.reshape(e, k, n)

    shape = [sizes[axis] for axis in stored]
    if pairs >= 0:
        shape[pairs] //= 2
    q = rng.integers(0, 256, shape).astype(np.uint8)
    arrays = q, _parameter(rng, sizes), _parameter(rng, sizes) * 4, rng.uniform(-1, 1, 16).astype(np.float32)
    return weight, arrays, (e, k, n)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(s, marks=pytest.mark.slow) for s in range(4, 150))])
def test_random_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(3):
        weight, arrays, (e, k, n) = _program(rng)

        def function(x: Any, *arrays: Any, weight: Any = weight) -> Any:
            return jnp.einsum("ebk,ekn->ebn", x, weight(*arrays))

        specs = [(", ".join(map(str, a.shape)), a.dtype.name) for a in arrays]
        threads = int(rng.choice([1, 2, 3]))
        executable = shlo_disc.compile(
            function, args=((f"{e}, m, {k}", "float32"), *specs), options=shlo_disc.Options(threads=threads)
        )
        wanted = np.asarray(jax.jit(weight)(*arrays), np.float64)
        for m in (1, 5, 40):
            x = rng.standard_normal((e, m, k)).astype(np.float32)
            exact, scale = (f(x.astype(np.float64)) @ f(wanted) for f in (np.asarray, np.abs))
            got = np.asarray(executable(x, *arrays))
            assert (np.abs(got - exact) <= 4 * np.sqrt(k + 1) * 2.0**-23 * scale + 1e-5 * np.abs(wanted).max()).all()
