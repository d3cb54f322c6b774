# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions whose numbers of groups are sizes: few programs for seven sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from tests.pjrt.streams import Stream

SIZES = (1, 2, 3, 5, 8, 9, 16)
Function = Callable[..., Any]
Make = Callable[[int], tuple[np.ndarray, ...]]


def draw(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def convolution(stride: int = 1, padding: Any = "VALID", **options: Any) -> Function:
    """One of as many spatial dimensions as the operands have."""
    return lambda x, w: lax.conv_general_dilated(x, w, (stride,) * (x.ndim - 2), padding, **options)


def gradients(function: Function) -> Function:
    """The gradients of the sum of squares, by both arguments."""
    return jax.grad(lambda x, w: (function(x, w) ** 2).sum(), (0, 1))


def depthwise(x: Any, w: Any) -> Any:
    """Two features of the result for each of the input."""
    return convolution(padding="SAME", feature_group_count=x.shape[1])(x, w)


def batch_groups(x: Any, w: Any) -> Any:
    return convolution(2, "SAME", batch_group_count=w.shape[0] // 3)(x, w)


def lines(n: int) -> tuple[np.ndarray, ...]:
    return draw(n, 2, 3, 11), draw(n, 5, 3, 4)


def images(n: int) -> tuple[np.ndarray, ...]:
    return draw(n, 2, 4, 9, 7), draw(n, 3, 4, 3, 2)


def channels(n: int) -> tuple[np.ndarray, ...]:
    return draw(2, n, 13), draw(2 * n, 1, 3)


def more_features(n: int) -> tuple[np.ndarray, ...]:
    """Twelve features of the input in groups of some."""
    return draw(2, 12, 9), draw(12, n if 12 % n == 0 else 4, 3)


STRIDED = convolution(2, "SAME")
HALVES = convolution(padding=[(1, 2)], feature_group_count=2, rhs_dilation=(2,))
CASES: dict[str, tuple[Function, Make]] = {
    "kernels of lines": (jax.vmap(convolution()), lines),
    "kernels of lines, SAME, stride 2": (jax.vmap(STRIDED), lines),
    "kernels of images": (jax.vmap(convolution()), images),
    "kernels of images, SAME, stride 2": (jax.vmap(STRIDED), images),
    "kernels of two groups": (jax.vmap(HALVES), lambda n: (draw(n, 2, 4, 11), draw(n, 6, 2, 3))),
    "kernels and lengths": (jax.vmap(STRIDED), lambda n: (draw(n, 2, 3, 2 * n + 6), draw(n, 5, 3, 4))),
    "one line each": (jax.vmap(convolution()), lambda n: (draw(n, 1, 1, 11), draw(n, 1, 1, 4))),
    "gradients of each": (jax.vmap(gradients(STRIDED)), lines),
    "gradients of all": (gradients(jax.vmap(STRIDED)), lines),
    "gradients of all, images": (gradients(jax.vmap(STRIDED)), images),
    "gradients of all, two groups": (gradients(jax.vmap(HALVES)), lambda n: (draw(n, 2, 4, 11), draw(n, 6, 2, 3))),
    "depthwise": (depthwise, channels),
    "gradients of depthwise": (gradients(depthwise), channels),
    "batch groups": (batch_groups, lambda n: (draw(2 * n, 2, 11), draw(3 * n, 2, 4))),
    "gradients of batch groups": (gradients(batch_groups), lambda n: (draw(2 * n, 2, 11), draw(3 * n, 2, 4))),
}
CASES |= {
    "kernels of points": (jax.vmap(convolution()), lambda n: (draw(n, 2, 3), draw(n, 5, 3))),
    "complex kernels": (jax.vmap(STRIDED), lambda n: tuple(np.complex64(1j) * x + 1 for x in lines(n))),
    "groups of more features": (lambda x, w: convolution(feature_group_count=12 // w.shape[1])(x, w), more_features),
}
FAST = ("kernels of lines, SAME, stride 2", "gradients of all", "depthwise")


@pytest.mark.parametrize("name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_groups_that_follow_a_size(name: str) -> None:
    """With the results of XLA. JAX writes some gradients of a single group as another program."""
    function, make = CASES[name]
    stream = Stream(function)
    for n in SIZES:
        stream.check(*make(n))
    assert not stream.reasons
    assert stream.how.count("compiled") <= 2 and stream.how.count("compiled_symbolic") <= 2, stream.how


def test_one_group_behind_several() -> None:
    """The symbolic program has a group for each kernel, and one is as good as any number."""
    stream = Stream(jax.vmap(STRIDED))
    assert [stream.check(*lines(n)) for n in (2, 5, 1)] == ["compiled", "compiled_symbolic", "instance"]


def test_another_number_of_groups_of_the_same_sizes() -> None:
    """Only the number of groups tells the programs apart, and the size of the window's features."""
    stream = Stream(lambda x, w: x)
    for groups in (2, 4, 3, 6, 12, 1):
        stream.function = lambda x, w, groups=groups: convolution(feature_group_count=groups)(x, w)
        stream.check(draw(2, 12, 9), draw(12, 12 // groups, 3))
    assert stream.how.count("compiled") == 1 and stream.how.count("compiled_symbolic") <= 2, stream.how
