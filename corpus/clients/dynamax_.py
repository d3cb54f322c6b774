# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State-space models of Dynamax over sequences whose length has the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from dynamax.hidden_markov_model import hmm_filter, hmm_posterior_mode, hmm_smoother, parallel_hmm_smoother
from dynamax.linear_gaussian_ssm import LinearGaussianSSM, lgssm_filter, lgssm_smoother

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _chain(size: int) -> tuple[Any, ...]:
    return normal(3), normal(3, 3, seed=1), normal(size, 3, seed=2)


@program(tolerance=1e-3)
def filtered(size: int) -> Built:
    def run(start: Any, steps: Any, likelihoods: Any) -> Any:
        found = hmm_filter(jax.nn.softmax(start), jax.nn.softmax(steps), likelihoods)
        return found.marginal_loglik, found.filtered_probs

    return run, _chain(size)


@program(tolerance=1e-3)
def smoothed(size: int) -> Built:
    def run(start: Any, steps: Any, likelihoods: Any) -> Any:
        found = hmm_smoother(jax.nn.softmax(start), jax.nn.softmax(steps), likelihoods)
        return found.smoothed_probs, found.trans_probs

    return run, _chain(size)


@program(tolerance=1e-3)
def smoothed_in_parallel(size: int) -> Built:
    def run(start: Any, steps: Any, likelihoods: Any) -> Any:
        return parallel_hmm_smoother(jax.nn.softmax(start), jax.nn.softmax(steps), likelihoods).smoothed_probs

    return run, _chain(size)


@program()
def most_likely_states(size: int) -> Built:
    def run(start: Any, steps: Any, likelihoods: Any) -> Any:
        return hmm_posterior_mode(jax.nn.softmax(start), jax.nn.softmax(steps), likelihoods)

    return run, _chain(size)


def _linear() -> Any:
    model = LinearGaussianSSM(2, 2)
    params, _ = model.initialize(jax.random.key(0))
    return params


@program(tolerance=2e-3)
def kalman_filter(size: int) -> Built:
    def run(emissions: Any) -> Any:
        found = lgssm_filter(_linear(), emissions)
        return found.marginal_loglik, found.filtered_means

    return run, (normal(size, 2),)


@program(tolerance=2e-3)
def kalman_smoother(size: int) -> Built:
    def run(emissions: Any) -> Any:
        found = lgssm_smoother(_linear(), emissions)
        return found.smoothed_means, found.smoothed_covariances

    return run, (normal(size, 2),)


@program(tolerance=5e-3)
def gradient_of_a_likelihood(size: int) -> Built:
    def run(scale: Any, emissions: Any) -> Any:
        return jax.grad(lambda s: lgssm_filter(_linear(), emissions * s).marginal_loglik)(scale)

    return run, (jnp.float32(0.7), normal(size, 2))
