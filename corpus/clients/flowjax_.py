# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalising flows of FlowJAX at as many points as the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import Normal, StudentT
from flowjax.flows import block_neural_autoregressive_flow, coupling_flow, masked_autoregressive_flow

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _densities(make: Callable[..., Any], size: int, **options: Any) -> Built:
    def run(x: Any) -> Any:
        flow = make(jax.random.key(0), base_dist=Normal(jnp.zeros(3)), flow_layers=2, **options)
        return flow.log_prob(x)

    return run, (normal(size, 3),)


@program(tolerance=1e-3)
def coupling(size: int) -> Built:
    return _densities(coupling_flow, size, nn_width=8, transformer=RationalQuadraticSpline(knots=5, interval=4))


@program(tolerance=1e-3)
def masked_autoregressive(size: int) -> Built:
    return _densities(masked_autoregressive_flow, size, nn_width=8)


@program(tolerance=1e-3)
def block_autoregressive(size: int) -> Built:
    return _densities(block_neural_autoregressive_flow, size, nn_block_dim=4)


@program(tolerance=2e-3)
def gradients_of_a_flow(size: int) -> Built:
    flow = coupling_flow(jax.random.key(0), base_dist=Normal(jnp.zeros(3)), flow_layers=2, nn_width=8)
    arrays, rest = eqx.partition(flow, eqx.is_inexact_array)

    def run(arrays: Any, x: Any) -> Any:
        return jax.grad(lambda arrays: -eqx.combine(arrays, rest).log_prob(x).mean())(arrays)

    return run, (arrays, normal(size, 3))


@program(tolerance=1e-3)
def student(size: int) -> Built:
    def run(x: Any) -> Any:
        return StudentT(jnp.full(3, 4.0)).log_prob(x)

    return run, (normal(size, 3),)
