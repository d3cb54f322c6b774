# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses and returns of RLax over trajectories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import rlax

from corpus.registry import integers, normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


@program()
def lambda_returns(size: int) -> Built:
    return (
        lambda r, d, v: rlax.lambda_returns(r, d, v, 0.9),
        (normal(size), abs(normal(size, seed=1)) % 1, normal(size, seed=2)),
    )


@program()
def vtrace_of_batches(size: int) -> Built:
    """Trajectories of 6 steps, as many as the size."""

    def errors(v: Any, next_v: Any, r: Any, d: Any, rho: Any) -> Any:
        return jax.vmap(rlax.vtrace)(v, next_v, r, d, rho)

    return errors, (
        *(normal(size, 6, seed=i) for i in range(3)),
        abs(normal(size, 6)) % 1,
        abs(normal(size, 6, seed=4)),
    )


@program()
def categorical_projection(size: int) -> Built:
    """Distributions over 11 atoms."""

    def project(z: Any, p: Any) -> Any:
        return jax.vmap(rlax.categorical_l2_project, (0, 0, None))(z, jax.nn.softmax(p), jnp.linspace(-1.0, 1.0, 11))

    return project, (jnp.sort(normal(size, 11), axis=-1), normal(size, 11, seed=1))


@program()
def double_q_loss(size: int) -> Built:
    def loss(q: Any, a: Any, r: Any, d: Any, value: Any, selector: Any) -> Any:
        errors = jax.vmap(rlax.double_q_learning)(q, a, r, d, value, selector)
        return jax.grad(
            lambda q: jnp.mean(rlax.huber_loss(jax.vmap(rlax.double_q_learning)(q, a, r, d, value, selector)))
        )(q), errors

    batch = normal(size), abs(normal(size, seed=1)) % 1
    return loss, (normal(size, 4), integers(4, size), *batch, normal(size, 4, seed=2), normal(size, 4, seed=3))


@program()
def policy_gradient_of_sequences(size: int) -> Built:
    def loss(logits: Any, actions: Any, advantages: Any) -> Any:
        return rlax.policy_gradient_loss(logits, actions, advantages, jnp.ones_like(advantages))

    return loss, (normal(size, 5), integers(5, size), normal(size))


@program()
def truncated_advantages(size: int) -> Built:
    def advantages(r: Any, d: Any, v: Any) -> Any:
        return rlax.truncated_generalized_advantage_estimation(r, d, 0.95, v)

    return advantages, (normal(size), abs(normal(size, seed=1)) % 1, normal(size + 1, seed=2))
