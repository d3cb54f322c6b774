# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gaussian processes by tinygp: the number of data has the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from tinygp import GaussianProcess, kernels

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _data(size: int) -> tuple[Any, Any]:
    x = np.sort(normal(size)) + np.arange(size, dtype=np.float32)
    return x, np.sin(x)


@program(tolerance=1e-3)
def log_probability(size: int) -> Built:
    def evaluate(scale: Any, x: Any, y: Any) -> Any:
        return GaussianProcess(kernels.ExpSquared(scale), x, diag=0.1).log_probability(y)

    return evaluate, (np.float32(1.5), *_data(size))


@program(tolerance=1e-3)
def gradient(size: int) -> Built:
    def evaluate(scale: Any, x: Any, y: Any) -> Any:
        def loss(scale: Any) -> Any:
            kernel = scale[0] ** 2 * kernels.Matern32(scale[1])
            return -GaussianProcess(kernel, x, diag=0.1).log_probability(y)

        return jax.value_and_grad(loss)(scale)

    return evaluate, (np.float32([1.2, 0.7]), *_data(size))


@program(tolerance=1e-3)
def condition(size: int) -> Built:
    def evaluate(x: Any, y: Any, asked: Any) -> Any:
        _, found = GaussianProcess(kernels.RationalQuadratic(1.5, alpha=0.5), x, diag=0.1).condition(y, asked)
        return found.loc, found.variance

    return evaluate, (*_data(size), np.linspace(0, 3, 7, dtype=np.float32))


@program(tolerance=1e-3)
def quasiseparable(size: int) -> Built:
    def evaluate(x: Any, y: Any) -> Any:
        kernel = kernels.quasisep.Matern32(1.5)
        return GaussianProcess(kernel, x, diag=0.1).log_probability(y)

    return evaluate, _data(size)


@program(tolerance=1e-3)
def points_of_the_plane(size: int) -> Built:
    def evaluate(x: Any, y: Any) -> Any:
        kernel = kernels.ExpSquared(1.5) + kernels.DotProduct() * 0.1
        return GaussianProcess(kernel, x, diag=0.5).log_probability(y)

    return evaluate, (normal(size, 2), normal(size))


@program(tolerance=1e-3)
def samples(size: int) -> Built:
    def evaluate(seed: Any, x: Any) -> Any:
        return GaussianProcess(kernels.Matern52(1.5), x, diag=0.1).sample(seed, shape=(3,))

    return evaluate, (np.array([0, 1], np.uint32), _data(size)[0])
