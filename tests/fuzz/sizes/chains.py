# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random functions of a vector whose steps depend on its size, and the sizes at which they are called."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Step = Callable[[Any], Any]

SMALLEST, LARGEST = 24, 90
"""Sizes: after each chain something is left of the smallest, and no step sees a window that is larger than it."""

_MOST_STEPS = 4


def _offset(pick: random.Random) -> tuple[str, Step]:
    start, end = pick.randint(0, 2), pick.randint(0, 2)
    return f"x[{start}:n-{end}]", lambda x: x[start : x.shape[0] - end]


def _half(pick: random.Random) -> tuple[str, Step]:
    k, is_first = pick.choice((2, 3)), pick.random() < 0.5
    if is_first:
        return f"x[:n//{k}]", lambda x: x[: x.shape[0] // k]
    return f"x[n//{k}:]", lambda x: x[x.shape[0] // k :]


def _whole(pick: random.Random) -> tuple[str, Step]:
    """The largest multiple, as rows."""
    k = pick.choice((2, 3, 4))
    return f"x[:n//{k}*{k}].reshape(-1, {k}).sum(1)", lambda x: x[: x.shape[0] // k * k].reshape(-1, k).sum(1)


def _rest(pick: random.Random) -> tuple[str, Step]:
    k = pick.choice((2, 3, 4))
    return f"x[n%{k}:]", lambda x: x[x.shape[0] % k :]


def _padded(pick: random.Random) -> tuple[str, Step]:
    """To a multiple, as rows."""
    k = pick.choice((2, 3, 4))
    return f"pad(x, -n%{k}).reshape({k}, -1)", lambda x: jnp.pad(x, (0, -x.shape[0] % k)).reshape(k, -1).sum(0)


def _strided(pick: random.Random) -> tuple[str, Step]:
    start, k = pick.randint(0, 2), pick.choice((2, 3))
    return f"x[{start}::{k}]", lambda x: x[start::k]


def _gradient(pick: random.Random) -> tuple[str, Step]:
    start, k = pick.randint(0, 2), pick.choice((2, 3))
    return f"grad of x[{start}::{k}]", jax.grad(lambda x: (x[start::k] ** 2).sum())


def _pool(pick: random.Random) -> tuple[str, Step]:
    window, stride, padding = pick.choice((2, 3, 5)), pick.choice((1, 2, 3)), pick.choice(("SAME", "VALID"))

    def step(x: Any) -> Any:
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (window,), (stride,), padding)

    if pick.random() < 0.5:
        return f"pool {window} {stride} {padding}", step
    return f"grad of pool {window} {stride} {padding}", jax.grad(lambda x: (step(x) ** 2).sum())


def _convolution(pick: random.Random) -> tuple[str, Step]:
    window, stride, padding = pick.choice((2, 3, 5)), pick.choice((1, 2, 3)), pick.choice(("SAME", "VALID"))
    kernel = np.linspace(-1, 1, window, dtype=np.float32)[None, None]

    def step(x: Any) -> Any:
        return jax.lax.conv_general_dilated(x[None, None], kernel, (stride,), padding)[0, 0]

    if pick.random() < 0.5:
        return f"convolution {window} {stride} {padding}", step
    return f"grad of convolution {window} {stride} {padding}", jax.grad(lambda x: (step(x) ** 2).sum())


def _kernels(pick: random.Random) -> tuple[str, Step]:
    """A kernel for each element: as many groups as there are elements."""
    stride, padding = pick.choice((1, 2)), pick.choice(("SAME", "VALID"))

    def convolve(line: Any, kernel: Any) -> Any:
        return jax.lax.conv_general_dilated(line[None, None], kernel[None, None], (stride,), padding).sum()

    def step(x: Any) -> Any:
        return jax.vmap(convolve)(jnp.stack([x, 2 * x, x * x], 1), jnp.stack([x, x - 1], 1))

    if pick.random() < 0.5:
        return f"kernels {stride} {padding}", step
    return f"grad of kernels {stride} {padding}", jax.grad(lambda x: (step(x) ** 2).sum())


def _halves(pick: random.Random) -> tuple[str, Step]:
    """The two ends, that overlap or not."""
    k = pick.choice((2, 3))
    return f"x[:n//{k}] + x[n-n//{k}:]", lambda x: x[: x.shape[0] // k] + x[x.shape[0] - x.shape[0] // k :]


def _rotated(pick: random.Random) -> tuple[str, Step]:
    k = pick.choice((2, 3))
    return f"roll(x, n//{k})", lambda x: jnp.roll(x, x.shape[0] // k)


def _interleaved(pick: random.Random) -> tuple[str, Step]:
    return "interleave", lambda x: jnp.stack([x[: x.shape[0] // 2], x[x.shape[0] // 2 :][: x.shape[0] // 2]], 1).ravel()


STEPS = (
    _offset, _half, _whole, _rest, _padded, _strided, _gradient, _pool, _convolution, _halves, _rotated, _interleaved,
)  # fmt: skip


def chain_of(seed: int) -> tuple[str, Callable[[Any], Any], list[int]]:
    """The function of a seed, in words and as it is, and twelve different sizes."""
    pick = random.Random(seed)
    steps = [pick.choice(STEPS)(pick) for _ in range(pick.randint(1, _MOST_STEPS))]

    def function(x: Any) -> Any:
        for _, step in steps:
            if x.shape[0] >= 6:  # enough for every step; the size at which it stops depends on the chain alone
                x = step(jnp.sin(x))
        return x

    sizes = pick.sample(range(SMALLEST * 4, LARGEST * 4), 12)
    if pick.random() < 0.2:
        steps.append(_kernels(pick))
    return "; ".join(text for text, _ in steps), function, sizes


__all__ = ["chain_of"]
