# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are read from data, as numbers in what is fused with products: each runs when the size is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
import shlo_disc.numpy as dnp


def _window(x: Any) -> Any:
    image = x[None, :, :, None]
    return lax.conv_general_dilated(
        image, jnp.ones((3, 3, 1, 4)), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


FUSED: dict[str, Callable[[Any, Any], Any]] = {
    "the epilogue of a product": lambda x, n: (x @ x.T) * n,
    "an epilogue with other operands": lambda x, n: jnp.tanh(x @ x.T + x[:, :1]) / n,
    "the rows of a product": lambda x, n: jax.nn.softmax((x @ x.T) / n, -1),
    "attention": lambda x, n: jax.nn.softmax((x @ x.T) / n, -1) @ x,
    "two products of one operand": lambda x, n: (x @ x.T) * n + (x @ jnp.ones((4, 1))) - n,
    "a convolution": lambda x, n: _window(x) * n,
    "a reduction": lambda x, n: (x * n).sum(-1) / n,
    "a loop": lambda x, n: lax.fori_loop(0, 3, lambda _, c: c @ jnp.eye(4) * n, x),
    "a scan": lambda x, n: lax.scan(lambda c, row: (c + row * n, c), jnp.zeros(4), x)[1],
}


@pytest.mark.parametrize("name", FUSED)
def test_a_size_that_is_read_from_data_as_a_number(name: str) -> None:
    function = FUSED[name]
    strict = shlo_disc.Options(strict=True)
    specs = (("b, 4", "float32"), ("m", "bool"))
    compiled = shlo_disc.compile(lambda x, m: function(x, dnp.flatnonzero(m).shape[0]), args=specs, options=strict)
    rng = np.random.default_rng(0)
    for b, m in ((1, 1), (5, 7), (17, 8), (33, 64)):
        x = rng.standard_normal((b, 4)).astype(np.float32)
        mask = np.arange(m) % 3 == 0
        expected = function(jnp.asarray(x), int(mask.sum()))
        np.testing.assert_allclose(compiled(x, mask), expected, rtol=3e-5, atol=3e-5)
