# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gaussian processes of GPJax whose data have the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpjax
import jax.numpy as jnp

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _posterior(kernel: Any, x: Any) -> Any:
    prior = gpjax.gps.Prior(mean_function=gpjax.mean_functions.Zero(), kernel=kernel)
    return prior * gpjax.likelihoods.Gaussian()


@program(tolerance=5e-3)
def predictions(size: int) -> Built:
    def run(x: Any, y: Any, test: Any) -> Any:
        posterior = _posterior(gpjax.kernels.RBF(), x)
        found = posterior.predict(test, train_data=gpjax.Dataset(x, y))
        return found.mean, jnp.diag(found.covariance())

    return run, (normal(size, 1), normal(size, 1, seed=1), normal(4, 1, seed=2))


@program(tolerance=5e-3)
def likelihood(size: int) -> Built:
    def run(x: Any, y: Any) -> Any:
        posterior = _posterior(gpjax.kernels.Matern52() + gpjax.kernels.Periodic(), x)
        return gpjax.objectives.conjugate_mll(posterior, gpjax.Dataset(x, y))

    return run, (normal(size, 1), normal(size, 1, seed=1))
