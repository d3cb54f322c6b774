# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Densities and kernels of NumPyro: the number of data has the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.hmc_util import velocity_verlet
from numpyro.infer.util import log_density

from corpus.registry import integers, key, normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _regression(x: Any, y: Any) -> None:
    weights = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    scale = numpyro.sample("s", dist.HalfNormal(1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ weights, scale + 0.1), obs=y)


def _logits(x: Any, y: Any) -> None:
    weights = numpyro.sample("w", dist.Laplace(0.0, 1.0).expand([3]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=x @ weights), obs=y)


@program(tolerance=1e-3)
def joint_density(size: int) -> Built:
    def evaluate(weights: Any, scale: Any, x: Any, y: Any) -> Any:
        return log_density(_regression, (x, y), {}, {"w": weights, "s": scale})[0]

    return evaluate, (normal(3), abs(normal()) + 0.5, normal(size, 3), normal(size, seed=1))


@program(tolerance=1e-3)
def density_gradient(size: int) -> Built:
    def evaluate(weights: Any, x: Any, y: Any) -> Any:
        return jax.grad(lambda w: log_density(_logits, (x, y), {}, {"w": w})[0])(weights)

    return evaluate, (normal(3), normal(size, 3), integers(2, size))


@program(tolerance=1e-3)
def leapfrog(size: int) -> Built:
    def evaluate(weights: Any, momentum: Any, x: Any, y: Any) -> Any:
        def potential(p: Any) -> Any:
            return -log_density(_logits, (x, y), {}, {"w": p})[0]

        init, update = velocity_verlet(potential, lambda mass, r: 0.5 * jnp.sum(r * r))
        state = update(0.01, jnp.ones(3), init(weights, momentum))
        return state.z, state.r

    return evaluate, (normal(3), normal(3, seed=1), normal(size, 3), integers(2, size))


@program(tolerance=1e-3)
def svi_step(size: int) -> Built:
    guide = AutoNormal(_regression)
    svi = SVI(_regression, guide, numpyro.optim.Adam(0.01), Trace_ELBO())

    def loss(seed: Any, x: Any, y: Any) -> Any:
        state = svi.init(seed, x, y)
        state, value = svi.update(state, x, y)
        return value, svi.get_params(state)

    return loss, (key(), normal(size, 3), normal(size, seed=1))


@program(tolerance=1e-3)
def nuts_step(size: int) -> Built:
    from numpyro.infer import NUTS

    def sample(seed: Any, x: Any, y: Any) -> Any:
        kernel = NUTS(_logits, max_tree_depth=3, adapt_step_size=False, step_size=0.1)
        state = kernel.init(seed, 0, None, (x, y), {})
        return kernel.sample(state, (x, y), {}).potential_energy

    return sample, (key(), normal(size, 3), integers(2, size))


@program(tolerance=1e-3)
def mixture(size: int) -> Built:
    def evaluate(means: Any, x: Any) -> Any:
        mixing = dist.Categorical(probs=jnp.ones(3) / 3)
        return dist.MixtureSameFamily(mixing, dist.Normal(means, 1.0)).log_prob(x).sum()

    return evaluate, (normal(3), normal(size))


@program(tolerance=1e-3)
def samples_of_gamma(size: int) -> Built:
    def draw(seed: Any, rate: Any) -> Any:
        return dist.Gamma(2.0, rate).sample(seed), dist.Poisson(rate).log_prob(jnp.floor(rate))

    return draw, (key(), abs(normal(size)) + 0.5)


@program(tolerance=1e-3)
def hidden_markov(size: int) -> Built:
    """The forward algorithm, a scan over as many observations as the size."""

    def evaluate(transitions: Any, seen: Any) -> Any:
        rows = jax.nn.log_softmax(transitions)

        def step(alpha: Any, y: Any) -> Any:
            emitted = dist.Normal(jnp.arange(3.0), 1.0).log_prob(y)
            return jax.nn.logsumexp(alpha[:, None] + rows, axis=0) + emitted, None

        return jax.nn.logsumexp(jax.lax.scan(step, jnp.zeros(3), seen)[0])

    return evaluate, (normal(3, 3), normal(size))
