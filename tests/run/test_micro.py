# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory-bound example programs and their gradients: XLA's numbers at every shape, and few kernels."""

from __future__ import annotations

import functools
from typing import Any

import jax
import pytest

import shlo_disc
from examples import micro
from examples.model import relative_error

TOLERANCE = 1e-5
SHAPES = [(1, 2), (1, 64), (3, 16), (2, 34), (7, 30), (5, 32), (17, 130), (64, 66), (2, 1000), (33, 256), (1, 9000)]

# For the program and its gradient.
KERNELS = {
    "softmax": (1, 1),
    "layernorm": (1, 3),
    "gelu_bias": (1, 2),
    "rmsnorm_rope": (2, 3),
    "cross_entropy": (1, 2),
}


@functools.cache
def compiled(name: str, gradient: bool) -> Any:
    """One executable for all shapes."""
    return shlo_disc.compile(micro.export(name, gradient=gradient))


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", micro.PROGRAMS)
def test_matches_xla_at_every_shape(name: str, gradient: bool) -> None:
    executable, xla = compiled(name, gradient), jax.jit(micro.function(name, gradient))
    for n, d in SHAPES:
        inputs = micro.make_inputs(name, n, d, gradient=gradient)
        got = jax.tree.leaves(executable(*inputs))
        want = jax.tree.leaves(xla(*inputs))
        assert relative_error(got, want) <= TOLERANCE, (n, d)
    assert executable.compile_count == 1


@pytest.mark.parametrize("name", micro.PROGRAMS)
def test_kernel_counts(name: str) -> None:
    assert tuple(len(compiled(name, gradient).kernels) for gradient in (False, True)) == KERNELS[name]
