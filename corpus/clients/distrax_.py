# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distributions of Distrax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import distrax
import jax
import jax.numpy as jnp

from corpus.registry import integers, key, normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


@program()
def normal_density(size: int) -> Built:
    def evaluate(mean: Any, x: Any) -> Any:
        found = distrax.MultivariateNormalDiag(mean, jnp.ones_like(mean))
        return found.log_prob(x), found.entropy()

    return evaluate, (normal(3), normal(size, 3))


@program()
def categorical_samples(size: int) -> Built:
    def draw(seed: Any, logits: Any) -> Any:
        return distrax.Categorical(logits=logits).sample_and_log_prob(seed=seed)

    return draw, (key(), normal(size, 4))


@program(tolerance=1e-3)
def full_covariance(size: int) -> Built:
    """The number of dimensions has the size."""

    def evaluate(a: Any, x: Any) -> Any:
        scale = jnp.tril(a) + 3 * jnp.eye(a.shape[0])
        return distrax.MultivariateNormalTri(jnp.zeros(a.shape[0]), scale).log_prob(x)

    return evaluate, (normal(size, size), normal(2, size))


@program()
def flow(size: int) -> Built:
    def evaluate(shift: Any, x: Any) -> Any:
        bijector = distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(shift, jnp.exp(shift))])
        base = distrax.Normal(jnp.zeros_like(shift), jnp.ones_like(shift))
        return distrax.Transformed(base, bijector).log_prob(jnp.tanh(x) * 0.9)

    return evaluate, (normal() * 0.1, normal(size))


@program(tolerance=1e-3)
def spline(size: int) -> Built:
    def evaluate(weights: Any, x: Any) -> Any:
        return distrax.RationalQuadraticSpline(weights, -2.0, 2.0).forward_and_log_det(x)

    return evaluate, (normal(size, 13), normal(size) * 0.5)


@program()
def divergence_gradient(size: int) -> Built:
    def evaluate(logits: Any, others: Any) -> Any:
        def divergence(logits: Any) -> Any:
            return jnp.sum(distrax.Categorical(logits=logits).kl_divergence(distrax.Categorical(logits=others)))

        return jax.grad(divergence)(logits)

    return evaluate, (normal(size, 4), normal(size, 4, seed=1))


@program()
def hidden_markov(size: int) -> Built:
    def evaluate(logits: Any, seen: Any) -> Any:
        model = distrax.HMM(
            distrax.Categorical(logits=logits[0]), distrax.Categorical(logits=logits),
            distrax.Normal(jnp.arange(3.0), jnp.ones(3)),
        )  # fmt: skip
        return model.forward(seen)[0]

    return evaluate, (normal(3, 3), normal(size))


@program()
def one_hot_and_bernoulli(size: int) -> Built:
    def evaluate(logits: Any, x: Any) -> Any:
        first = distrax.Independent(distrax.Bernoulli(logits=logits), 1)
        return first.log_prob(x), distrax.OneHotCategorical(logits=logits).mode()

    return evaluate, (normal(size, 4), integers(2, size, 4))
