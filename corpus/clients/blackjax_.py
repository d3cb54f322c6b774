# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of the samplers of BlackJAX: the number of data has the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp

from corpus.registry import key, normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _stepped(make: Callable[[Any], Any], size: int) -> Built:
    """Two steps of a sampler for a regression."""

    def sample(seed: Any, weights: Any, x: Any, y: Any) -> Any:
        def density(w: Any) -> Any:
            return -0.5 * jnp.sum((x @ w - y) ** 2) - 0.5 * jnp.sum(w * w)

        sampler = make(density)
        state = sampler.init(weights)
        for one in jax.random.split(seed, 2):
            state, _ = sampler.step(one, state)
        return state.position

    return sample, (key(), normal(3), normal(size, 3), normal(size, seed=1))


@program(tolerance=2e-3)
def hmc(size: int) -> Built:
    return _stepped(lambda density: blackjax.hmc(density, 1e-2, jnp.ones(3), 3), size)


@program(tolerance=2e-3)
def nuts(size: int) -> Built:
    return _stepped(lambda density: blackjax.nuts(density, 1e-2, jnp.ones(3), max_num_doublings=3), size)


@program(tolerance=2e-3)
def mala(size: int) -> Built:
    return _stepped(lambda density: blackjax.mala(density, 1e-2), size)


@program(tolerance=2e-3)
def random_walk(size: int) -> Built:
    return _stepped(
        lambda density: blackjax.additive_step_random_walk(
            density, blackjax.mcmc.random_walk.normal(0.1 * jnp.ones(3))
        ),
        size,
    )


@program(tolerance=2e-3)
def elliptical_slice(size: int) -> Built:
    def sample(seed: Any, position: Any, x: Any, y: Any) -> Any:
        def likelihood(w: Any) -> Any:
            return -0.5 * jnp.sum((x @ w - y) ** 2)

        sampler = blackjax.elliptical_slice(likelihood, mean=jnp.zeros(3), cov=jnp.ones(3))
        return sampler.step(seed, sampler.init(position))[0].position

    return sample, (key(), normal(3), normal(size, 3), normal(size, seed=1))


@program(tolerance=2e-3)
def sgld(size: int) -> Built:
    def sample(seed: Any, weights: Any, x: Any) -> Any:
        sampler = blackjax.sgld(lambda w, batch: -jnp.mean(batch @ w) - 0.5 * w)
        return sampler.step(seed, weights, x, 1e-2)

    return sample, (key(), normal(3), normal(size, 3))


@program(tolerance=2e-3)
def chains(size: int) -> Built:
    """As many chains of a sampler as the size."""

    def sample(seed: Any, positions: Any) -> Any:
        sampler = blackjax.mala(lambda w: -0.5 * jnp.sum(w * w), 1e-2)
        states = jax.vmap(sampler.init)(positions)
        seeds = jax.random.split(seed, positions.shape[0])
        return jax.vmap(sampler.step)(seeds, states)[0].position

    return sample, (key(), normal(size, 3))
