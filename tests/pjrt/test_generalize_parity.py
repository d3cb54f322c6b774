# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions whose paddings, slices and lengths depend on remainders of sizes: few programs for eight sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.pjrt.streams import Stream

SIZES = (9, 10, 11, 12, 13, 14, 17, 20)
CHANNELS_LAST = ("NHWC", "HWIO", "NHWC")


def draw(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


def convolution(padding: Any, stride: int = 2, window: int = 3, dilation: int = 1) -> Callable[..., Any]:
    kernel = draw(window, window, 3, 4)
    return lambda x, w=kernel: lax.conv_general_dilated(
        x, w, (stride, stride), padding, rhs_dilation=(dilation, dilation), dimension_numbers=CHANNELS_LAST
    )


def gradients(function: Callable[..., Any], *more: Any) -> Callable[..., Any]:
    """The gradients of the sum of squares, by all arguments."""
    count = tuple(range(1 + len(more)))
    return lambda x: jax.grad(lambda *args: (function(*args) ** 2).sum(), count)(x, *more)


def pooling(initial: float, operation: Any, padding: str, window: int = 3) -> Callable[[Any], Any]:
    return lambda x: lax.reduce_window(x, initial, operation, (1, window, window, 1), (1, 2, 2, 1), padding)


def padded(multiple: int) -> Callable[[Any], Any]:
    return lambda x: jnp.pad(x, ((0, 0), (0, -x.shape[1] % multiple))).reshape(3, -1, multiple).sum(2)


def images(n: int) -> np.ndarray:
    return draw(2, n, n, 3)


def rows(n: int) -> np.ndarray:
    return draw(3, n)


KERNEL = draw(3, 3, 3, 4)
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[int], np.ndarray]]] = {
    "SAME": (convolution("SAME"), images),
    "SAME, window 5, stride 3": (convolution("SAME", 3, 5), images),
    "SAME, window 3, stride 4": (convolution("SAME", 4, 3), images),
    "SAME_LOWER": (convolution("SAME_LOWER"), images),
    "padding 1": (convolution([(1, 1), (1, 1)]), images),
    "gradients of SAME": (gradients(convolution("SAME"), KERNEL), images),
    "gradients of SAME, window 5, stride 3": (gradients(convolution("SAME", 3, 5), draw(5, 5, 3, 4)), images),
    "gradients of VALID": (gradients(convolution("VALID"), KERNEL), images),
    "gradients of padding 1": (gradients(convolution([(1, 1), (1, 1)]), KERNEL), images),
    "gradients of a dilated one": (gradients(convolution("VALID", 2, 2, 2), draw(2, 2, 3, 4)), images),
    "maximum": (pooling(-np.inf, lax.max, "SAME"), images),
    "gradient of a maximum": (gradients(pooling(-np.inf, lax.max, "VALID", 2)), images),
    "mean": (lambda x: pooling(0.0, lax.add, "SAME")(x) / pooling(0.0, lax.add, "SAME")(jnp.ones_like(x)), images),
    "gradient of a sum": (gradients(pooling(0.0, lax.add, "VALID")), images),
    "gradient of x[:, ::2]": (gradients(lambda x: x[:, ::2]), rows),
    "gradient of x[:, 1::3]": (gradients(lambda x: x[:, 1::3]), rows),
    "pairs": (lambda x: x[:, : x.shape[1] // 2 * 2].reshape(3, -1, 2).sum(2), rows),
    "a multiple of 4": (padded(4), rows),
    "a multiple of 8": (padded(8), rows),
    "cumsum": (lambda x: jnp.cumsum(x, 1), rows),
    "top_k(n//2)": (lambda x: lax.top_k(x, x.shape[1] // 2), rows),
    "top_k(n - 1)": (lambda x: lax.top_k(x, x.shape[1] - 1), rows),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), rows),
    "rfft": (lambda x: jnp.abs(jnp.fft.rfft(x)), rows),
    "irfft(rfft)": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2, x.shape[1]), rows),
    "two halves": (lambda x: x[:, : x.shape[1] // 2] + x[:, x.shape[1] - x.shape[1] // 2 :], rows),
    "median": (lambda x: jnp.median(x, 1), rows),
    "the middle half": (lambda x: jnp.sin(x[x.shape[0] // 4 : 3 * x.shape[0] // 4]), draw),
    "the middle half of rows": (lambda x: jnp.sin(x[:, x.shape[1] // 4 : 3 * x.shape[1] // 4]), rows),
    "three quarters of rows": (lambda x: jnp.sin(x[:, : 3 * x.shape[1] // 4]), rows),
    "approx_max_k(n//2)": (lambda x: lax.approx_max_k(x, x.shape[1] // 2), rows),
    "approx_min_k of columns": (lambda x: lax.approx_min_k(x, x.shape[0] - 4, 0), lambda n: draw(n, 3)),
    "roll by a third": (lambda x: jnp.roll(x, x.shape[1] // 3, 1), rows),
    "associative_scan": (lambda x: lax.associative_scan(jnp.add, x, axis=1), rows),
    "a stride of a quarter": (lambda x: jnp.sin(x[:: x.shape[0] // 4]), draw),
    "windows of a quarter": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (len(x) // 4,), (len(x) // 4,), "VALID"),
        draw,
    ),
    "batches of 4": (lambda x: lax.map(jnp.sin, x.T, batch_size=4), rows),
}
STRUCTURES = {"associative_scan": 2, "batches of 4": 2}
"""Programs that differ in more than sizes: a tree of one more level, and what is left when whole batches are gone."""
QUICK = ("SAME", "SAME_LOWER", "top_k(n//2)")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_few_programs(name: str) -> None:
    """With the results of XLA, and none that is not general: at most three, and one more for each further structure."""
    function, make = CASES[name]
    stream = Stream(function)
    how = [stream.check(make(n)) for n in SIZES]
    assert not stream.reasons
    structures = STRUCTURES.get(name, 1)
    assert how.count("compiled") == structures
    assert how.count("compiled_symbolic") <= max(2, structures), how


def test_functions_that_are_one_by_chance() -> None:
    """JAX makes one function of two whose arguments have one shape."""
    stream = Stream(lambda x, y: jax.nn.relu(x).sum() + jax.nn.relu(y).sum())
    how = [stream.check(draw(a), draw(b)) for a, b in ((3, 4), (6, 6), (5, 7), (7, 7))]
    assert how == ["compiled", "compiled_symbolic", "instance", "instance"]
