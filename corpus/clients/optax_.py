# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of the optimisers of Optax, and its losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from corpus.registry import integers, normal, program, weights

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _stepped(optimizer: Any, size: int) -> Built:
    """A step of a linear regression whose batch has the size."""
    start = {"w": normal(4, 3), "b": normal(3)}
    state = weights(optimizer.init, start)

    def step(weights: Any, state: Any, x: Any, y: Any) -> Any:
        gradients = jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(weights)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state

    return step, (start, state, normal(size, 4), normal(size, 3))


@program()
def sgd_momentum(size: int) -> Built:
    return _stepped(optax.sgd(0.1, momentum=0.9, nesterov=True), size)


@program()
def adamw(size: int) -> Built:
    return _stepped(optax.adamw(1e-3), size)


@program()
def clipped_schedule(size: int) -> Built:
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 10, 100)
    return _stepped(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule)), size)


@program()
def adafactor(size: int) -> Built:
    return _stepped(optax.adafactor(1e-2, min_dim_size_to_factor=2), size)


@program()
def lion_of_growing_weights(size: int) -> Built:
    """The weights have the size."""
    optimizer = optax.lion(1e-3)
    start = normal(size, 3)
    state = weights(optimizer.init, start)

    def step(weights: Any, state: Any) -> Any:
        updates, state = optimizer.update(jnp.sin(weights), state, weights)
        return optax.apply_updates(weights, updates), state

    return step, (start, state)


@program()
def cross_entropy(size: int) -> Built:
    def loss(logits: Any, labels: Any) -> Any:
        return jax.value_and_grad(lambda x: optax.losses.softmax_cross_entropy_with_integer_labels(x, labels).mean())(
            logits
        )

    return loss, (normal(size, 5), integers(5, size))


@program(tolerance=1e-3)
def ctc_loss(size: int) -> Built:
    """The time has the size."""

    def loss(logits: Any, labels: Any) -> Any:
        return optax.losses.ctc_loss(logits, jnp.zeros(logits.shape[:2]), labels, jnp.zeros(labels.shape))

    return loss, (normal(2, size, 5), integers(4, 2, 3) + 1)


@program(tolerance=1e-3)
def lbfgs(size: int) -> Built:
    def solve(x: Any) -> Any:
        def value(x: Any) -> Any:
            return jnp.sum((x - 1) ** 2) + jnp.sum(x**4)

        optimizer = optax.lbfgs(memory_size=3)
        found = jax.value_and_grad(value)
        state = optimizer.init(x)
        for _ in range(2):
            f, g = found(x)
            updates, state = optimizer.update(g, state, x, value=f, grad=g, value_fn=value)
            x = optax.apply_updates(x, updates)
        return x

    return solve, (normal(size),)
