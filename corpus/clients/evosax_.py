# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of evolution strategies of evosax; the number of parameters, or of the population, has the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES, PSO, DifferentialEvolution, Open_ES, SimpleGA

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _generation(make: Callable[..., Any], size: int, population: int = 8) -> Built:
    def run(x: Any) -> Any:
        strategy = make(population_size=population, solution=x)
        params = strategy.default_params
        key = jax.random.key(0)
        start = x if make in (CMA_ES, Open_ES) else jnp.stack([x * (i + 1) for i in range(population)])
        if make in (CMA_ES, Open_ES):
            state = strategy.init(key, start, params)
        else:
            state = strategy.init(key, start, jnp.sum(start**2, axis=-1), params)
        asked, state = strategy.ask(key, state, params)
        state, _ = strategy.tell(key, asked, jnp.sum(asked**2, axis=-1), state, params)
        return asked, state.best_fitness

    return run, (normal(size),)


@program(tolerance=2e-3)
def cma_es(size: int) -> Built:
    return _generation(CMA_ES, size)


@program(tolerance=2e-3)
def open_es(size: int) -> Built:
    return _generation(Open_ES, size)


@program(tolerance=2e-3)
def swarm(size: int) -> Built:
    return _generation(PSO, size)


@program(tolerance=2e-3)
def differential(size: int) -> Built:
    return _generation(DifferentialEvolution, size)


@program(tolerance=2e-3)
def genetic(size: int) -> Built:
    return _generation(SimpleGA, size)
