# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs far longer or wider than usual: no recursion limit, no limit on arguments."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc


@pytest.mark.slow
def test_a_chain_of_two_thousand_elementwise_ops() -> None:
    def f(x: jax.Array) -> jax.Array:
        for i in range(1000):
            x = x * 0.5 + float(i % 3)
        return x

    executable = shlo_disc.compile(f, args=(("n", "float32"),))
    for n in (1, 31, 33):
        x = np.linspace(-1, 1, n, dtype=np.float32)
        np.testing.assert_allclose(executable(x), np.asarray(f(jnp.asarray(x))), rtol=1e-6)
    assert len(executable.kernels) < 20


def test_a_chain_of_five_hundred_scalars() -> None:
    executable = shlo_disc.compile(lambda *numbers: sum(numbers), args=[((), "int32")] * 500)
    assert executable(*range(500)) == sum(range(500))


@pytest.mark.slow
def test_a_hundred_arguments_of_their_own_sizes() -> None:
    def f(*arrays: jax.Array) -> jax.Array:
        return jnp.stack([a.sum() for a in arrays]).sum()

    executable = shlo_disc.compile(f, args=[(f"n{i}", "float32") for i in range(100)])
    arrays = [np.ones(1 + i % 7, np.float32) for i in range(100)]
    assert executable(*arrays) == sum(a.size for a in arrays)
