# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that are the same in two samples, or equal to others, and what ops tell of them at other sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.pjrt.streams import Stream

Function = Callable[[Any], Any]


def gradient(function: Function) -> Function:
    """The gradient of the sum of squares."""
    return jax.grad(lambda x: (function(x) ** 2).sum())


def convolution(padding: str) -> Function:
    kernel = np.linspace(-1, 1, 5, dtype=np.float32)[None, None]
    return lambda x: lax.conv_general_dilated(x[None, None], kernel, (3,), padding)


def pooling(padding: str) -> Function:
    return lambda x: lax.reduce_window(x, 0.0, lax.add, (5,), (3,), padding)


def interleaved(x: Any) -> Any:
    half = x.shape[0] // 2
    return jnp.stack([x[:half], x[half:][:half]], 1).ravel()


def wholes(x: Any) -> Any:
    """Whole rows of a half, of which nothing is left over in the first samples."""
    half = x[: x.shape[0] // 2]
    return half[: half.shape[0] // 3 * 3].reshape(-1, 3).sum(1)


def padded_twice(x: Any) -> Any:
    """The first padding tells that the second one, which is the same in the first samples, is to strides, too."""
    inner = lax.conv_general_dilated(x[None, None], np.ones((1, 1, 3), np.float32), (2,), "SAME")
    return lax.reduce_window(inner[0, 0], 0.0, lax.add, (5,), (3,), "SAME")


def parted(x: Any) -> Any:
    """The two halves, and the size that is where the second one starts."""
    half = x.shape[0] // 2
    return x[::2].sum() + jnp.sin(x[:half] + x[x.shape[0] - half :])


CASES: dict[str, tuple[Function, Sequence[int]]] = {
    "the pieces of a roll are cut at one place": (lambda x: jnp.roll(x, x.shape[0] // 3), (9, 7, 14, 8, 12, 20)),
    "a gradient of a strided slice": (gradient(lambda x: x[1::3]), (8, 11, 9, 10, 16)),
    "a gradient of a convolution": (gradient(convolution("VALID")), (11, 14, 12, 13)),
    "a gradient of a convolution, SAME": (gradient(convolution("SAME")), (14, 12, 13, 16)),
    "a gradient of a pooling": (gradient(pooling("VALID")), (11, 14, 12, 13)),
    "a gradient of a pooling, SAME": (gradient(pooling("SAME")), (14, 12, 13, 16)),
    "no padding in both": (lambda x: jnp.pad(x, (0, -x.shape[0] % 4)).reshape(4, -1).sum(0), (8, 12, 9, 14, 19)),
    "parts that are the same": (lambda x: x[: x.shape[0] // 4 * 4].reshape(-1, 4).sum(1), (9, 10, 13, 22)),
    "a half that is the same": (lambda x: jnp.sin(x[x.shape[0] // 2 :]), (18, 19, 27, 30)),
    "a prefix that is the same": (lambda x: jnp.sin(x[: x.shape[0] // 3]), (21, 22, 30, 35)),
    "nothing is left of a rounded size": (wholes, (12, 18, 13, 16, 21)),
    "a padding beside one that changes": (padded_twice, (25, 26, 23, 28, 30, 31)),
    "a slice that is as large as its prefix": (interleaved, (8, 12, 9, 15)),
    "two pieces with a gap": (parted, (8, 12, 9, 15)),
    "two slices of that kind": (lambda x: interleaved(jnp.sin(interleaved(x))), (8, 12, 9, 15)),
    "a scan of a tree": (lambda x: lax.associative_scan(jnp.add, x), (9, 10, 12, 15)),
    "a loop over batches": (lambda x: lax.map(jnp.sin, x, batch_size=4), (9, 10, 13, 22)),
}


QUICK = ("the pieces of a roll are cut at one place", "a gradient of a pooling, SAME", "a loop over batches")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_the_other_sizes_are_instances(name: str) -> None:
    """With the results of XLA."""
    function, sizes = CASES[name]
    stream = Stream(function)
    how = [stream.check(np.random.default_rng(n).standard_normal(n, dtype=np.float32)) for n in sizes]
    assert how == ["compiled", "compiled_symbolic", *["instance"] * (len(sizes) - 2)]


def test_a_start_that_stays_the_same() -> None:
    """A number may be the half of two sizes, and the same at others, too."""
    stream = Stream(lambda x: jnp.sin(x[9:]))
    how = [stream.check(np.arange(n, dtype=np.float32)) for n in (18, 19, 27, 30)]
    assert how == ["compiled", "compiled_symbolic", "compiled_symbolic", "instance"]
