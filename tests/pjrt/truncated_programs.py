# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices of a fixed length under plain `jax.jit`, which JAX leaves out of arrays that are no longer.

Run with the plugin, XLA's CPU, and numbers of the orders of sizes to try; prints what failed or differed, as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "first": lambda x: x[:4].sum(0),
    "last": lambda x: x[-4:].sum(0),
    "columns": lambda x: x[:, :3].max(1),
    "softmax": lambda x: jax.nn.softmax(x[:, :8].sum(1)),
    "both": lambda x: jnp.tanh(x[:4, :3]) + x[:4, :3].sum(),
    "alone": lambda x: x[:, :3],
}
ORDERS = ((7, 9, 3, 5, 4, 2, 1, 12), (12, 8, 1, 2, 3, 4), (3, 2, 9, 1, 7, 8), (9, 2, 11, 1, 4, 5))


def faults(orders: list[tuple[int, ...]]) -> Iterator[str]:
    """Calls that fail, or whose results are not those of XLA."""
    draw = np.random.default_rng(1).standard_normal
    for name, function in FUNCTIONS.items():
        jitted = jax.jit(function)
        for order in orders:
            for shape in zip(order, (*order[1:], order[0]), strict=True):
                x = draw(shape, dtype=np.float32)
                with jax.default_device(jax.devices("cpu")[0]):
                    want = np.asarray(jax.jit(function)(x))
                try:
                    np.testing.assert_allclose(jitted(x), want, rtol=1e-5, atol=1e-6)
                except Exception as error:
                    yield f"{name} at {shape}: {error}"


if __name__ == "__main__":
    print(json.dumps(list(faults([ORDERS[int(number)] for number in sys.argv[1:]]))))
