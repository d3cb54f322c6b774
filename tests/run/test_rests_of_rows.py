# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rests of rows: registers one by one behind wide vectors, one masked vector behind narrow ones."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc

SIZES = (1, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 127, 128, 129, 131, 255, 257, 1009)
MASKED = re.compile(r"vector\.maskedstore .*?vector<(\d+)xf32>")


def costly(x: jax.Array) -> jax.Array:
    """Worth more than two registers at a time."""
    return jnp.tanh(jnp.sin(x) * 2.5) + x


def cheap(x: jax.Array) -> jax.Array:
    """Moves more than it computes."""
    return x * 2.0 + 1.0


def inputs(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape[-1]).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"])
@pytest.mark.parametrize("function", [costly, cheap])
def test_vectors(function: Callable[..., jax.Array], cpu: str) -> None:
    compiled = shlo_disc.compile(function, args=(("n", "float32"),), options=shlo_disc.Options(cpu=cpu))
    for size in SIZES:
        x = inputs(size)
        np.testing.assert_allclose(compiled(x), jax.jit(function)(x), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("function", [costly, cheap])
def test_rows(function: Callable[..., jax.Array]) -> None:
    swapped = lambda x: function(x).T  # noqa: E731  # keeps two axes
    compiled = shlo_disc.compile(swapped, args=(("m, n", "float32"),))
    for size in SIZES:
        for rows in (1, 3):
            x = inputs(rows, size)
            np.testing.assert_allclose(compiled(x), jax.jit(swapped)(x), rtol=2e-6, atol=2e-6)


def test_elements_do_not_depend_on_their_place() -> None:
    """Lanes of a whole vector and of the rest have the same bits."""
    compiled = shlo_disc.compile(costly, args=(("n", "float32"),))
    x = inputs(1009)
    whole = np.asarray(compiled(x))
    for size in SIZES:
        assert np.array_equal(np.asarray(compiled(x[:size])), whole[:size])


@pytest.mark.parametrize(("function", "registers"), [(costly, 1), (cheap, 2)])
def test_masked_vectors(function: Callable[..., jax.Array], registers: int) -> None:
    options = shlo_disc.Options(cpu="x86-64-v4")
    text = shlo_disc.compile(function, args=(("n", "float32"),), options=options).as_text("kernels")
    assert {int(width) for width in MASKED.findall(text)} == {16 * registers}


def test_rows_of_whole_vectors_have_no_rest() -> None:
    options = shlo_disc.Options(cpu="x86-64-v4")
    text = shlo_disc.compile(costly, args=(("128*n", "float32"),), options=options).as_text("kernels")
    assert "vector<128xf32>" in text or "vector<64xf32>" in text
