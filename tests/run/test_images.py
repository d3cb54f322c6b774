# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""jax.image.resize from and to sizes that are symbols: each method compiled once and compared with XLA."""

from __future__ import annotations

import jax
import pytest

from tests.run.op_check import check

SIZES = [{"b": b, "h": h, "w": w} for b, h, w in [(1, 1, 1), (2, 7, 5), (1, 16, 17), (3, 33, 12), (1, 15, 64)]]


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic", "lanczos3"])
def test_resize(method: str) -> None:
    """XLA rounds the sampling positions, up to the image's size, otherwise: hence ulps of 1, not of the result."""

    def resize(image: jax.Array) -> jax.Array:
        b, h, w, channels = image.shape
        return jax.image.resize(image, (b, 2 * h + 1, w + 3, channels), method)

    check(resize, [("b, h, w, 4", "float32")], SIZES, ulps=128, floor=1)


def test_shrinking_with_antialiasing() -> None:
    def shrink(image: jax.Array) -> jax.Array:
        b, h, w, channels = image.shape
        return jax.image.resize(image, (b, h, w, channels), "linear")

    sizes = [{"b": 1, "h": h, "w": w} for h, w in [(1, 1), (5, 7), (16, 17)]]
    check(shrink, [("b, 2*h, 3*w, 3", "float32")], sizes, ulps=128, floor=1)
