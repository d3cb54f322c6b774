# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions whose sizes follow in several ways: holes in the input, negative padding, gradients of strided ones."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.run.op_check import random_array

ORDER = ("NCH", "OIH", "NCH")
PADDINGS = ((0, 0), (-1, -1), (-1, 0), (0, -1), (1, 1), (-2, 1), (-3, 3), (-2, 2))


def padded(x: np.ndarray, padding: tuple[int, int], holes: int) -> np.ndarray:
    """`x` with zeros between its elements, and around them or less of them: what XLA:CPU gets wrong in places."""
    spread = np.zeros((*x.shape[:2], (x.shape[2] - 1) * holes + 1), x.dtype)
    spread[:, :, ::holes] = x
    low, high = padding
    spread = spread[:, :, max(-low, 0) : spread.shape[2] - max(-high, 0)]
    return np.pad(spread, ((0, 0), (0, 0), (max(low, 0), max(high, 0))))


@pytest.mark.parametrize(("kernel", "holes"), list(itertools.product((1, 3), (1, 2, 3))))
@pytest.mark.parametrize("padding", PADDINGS)
def test_holes_in_the_input(padding: tuple[int, int], kernel: int, holes: int) -> None:
    def convolve(x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(x, w, (1,), (padding,), (holes,), dimension_numbers=ORDER)

    run = shlo_disc.compile(convolve, args=(("2, 3, h + 5", "float32"), (f"4, 3, {kernel}", "float32")))
    w = random_array((4, 3, kernel), "float32", 1)
    for h in (1, 4, 12):
        x = random_array((2, 3, h + 5), "float32")
        whole = padded(x, padding, holes)
        parts = [whole[:, :, i : whole.shape[2] - kernel + 1 + i] for i in range(kernel)]
        want = sum(np.einsum("nch,oc->noh", part, w[:, :, i]) for i, part in enumerate(parts))
        np.testing.assert_allclose(run(x, w), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", ["b, 2*h, 2*w, 4", "b, 9, 7, 4", "b, 2*h, 6*w, 4"])
@pytest.mark.parametrize("strides", [(2, 2), (1, 2), (2, 1)])
@pytest.mark.parametrize("kernel", [1, 2])
def test_gradients_of_strided_convolutions(shape: str, strides: tuple[int, int], kernel: int) -> None:
    def loss(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.sum(
            lax.conv_general_dilated(x, w, strides, "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2
        )

    gradient = jax.grad(loss, (0, 1))
    run = shlo_disc.compile(gradient, args=((shape, "float32"), (f"{kernel}, {kernel}, 4, 3", "float32")))
    w = random_array((kernel, kernel, 4, 3), "float32", 1)
    for b, h, wide in ((1, 1, 1), (2, 4, 3)):
        sizes = sizes_of(shape, b, h, wide)
        x = random_array(sizes, "float32")
        for got, want in zip(run(x, w), jax.jit(gradient)(x, w), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def sizes_of(shape: str, b: int, h: int, w: int) -> tuple[int, ...]:
    """The sizes of a shape that is written as "b, 2*h, 9"."""
    values = {"b": b, "h": h, "w": w}
    parts = [part.strip().split("*") for part in shape.split(",")]
    return tuple(int(np.prod([values.get(p, 0) or int(p) for p in part])) for part in parts)
