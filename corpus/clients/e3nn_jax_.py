# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Equivariant functions by e3nn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp

from corpus.registry import integers, key, normal, program, weights

Built = tuple[Callable[..., Any], tuple[Any, ...]]


@program()
def spherical_harmonics(size: int) -> Built:
    def apply(x: Any) -> Any:
        return e3nn.spherical_harmonics("0e + 1o + 2e", x, normalize=True).array

    return apply, (normal(size, 3),)


@program()
def tensor_product(size: int) -> Built:
    def apply(x: Any, y: Any) -> Any:
        first, second = e3nn.IrrepsArray("2x0e + 1o", x), e3nn.IrrepsArray("0e + 1o", y)
        return e3nn.tensor_product(first, second).array

    return apply, (normal(size, 5), normal(size, 4))


@program()
def spherical_harmonics_gradient(size: int) -> Built:
    def apply(x: Any) -> Any:
        return jax.grad(lambda x: jnp.sum(e3nn.spherical_harmonics("1o + 2e", x, normalize=False).array ** 3))(x)

    return apply, (normal(size, 3),)


@program()
def gate(size: int) -> Built:
    def apply(x: Any) -> Any:
        return e3nn.gate(e3nn.IrrepsArray("3x0e + 1o + 1e", x)).array

    return apply, (normal(size, 9),)


@program()
def radial_basis(size: int) -> Built:
    def apply(r: Any) -> Any:
        return e3nn.bessel(r, 6, 2.0), e3nn.soft_envelope(r, 2.0)

    return apply, (abs(normal(size)) + 0.1,)


@program()
def linear_flax(size: int) -> Built:
    layer = e3nn.flax.Linear("4x0e + 2x1o")
    x = e3nn.IrrepsArray("2x0e + 1o", normal(size, 5))
    found = weights(layer.init, key(), x)

    def apply(weights: Any, x: Any) -> Any:
        return layer.apply(weights, e3nn.IrrepsArray("2x0e + 1o", x)).array

    return apply, (found, normal(size, 5))


@program()
def message_passing(size: int) -> Built:
    """Sums of what edges bring, by node; twice as many edges as nodes."""

    def apply(positions: Any, senders: Any, receivers: Any) -> Any:
        steps = positions[senders] - positions[receivers]
        messages = e3nn.spherical_harmonics("0e + 1o", steps, normalize=False)
        return e3nn.scatter_sum(messages, dst=receivers, output_size=positions.shape[0]).array

    return apply, (normal(size, 3), integers(size, 2 * size), integers(size, 2 * size, seed=1))
