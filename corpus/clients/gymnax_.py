# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of environments of Gymnax, as many at a time as the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnax
import jax

from corpus.registry import integers, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _steps(name: str, size: int, actions: int, steps: int = 3) -> Built:
    environment, params = gymnax.make(name)

    def run(seeds: Any, actions: Any) -> Any:
        keys = jax.vmap(jax.random.key)(seeds)
        seen, state = jax.vmap(environment.reset, (0, None))(keys, params)

        def step(carry: Any, _: Any) -> Any:
            _, state = carry
            seen, state, reward, done, *_ = jax.vmap(environment.step, (0, 0, 0, None))(keys, state, actions, params)
            return (seen, state), (reward, done)

        (seen, _), rewards = jax.lax.scan(step, (seen, state), None, length=steps)
        return seen, rewards

    return run, (integers(100, size), integers(actions, size, seed=1))


@program()
def cart_pole(size: int) -> Built:
    return _steps("CartPole-v1", size, 2)


@program(tolerance=1e-4)
def acrobot(size: int) -> Built:
    return _steps("Acrobot-v1", size, 3)


@program()
def minatar_breakout(size: int) -> Built:
    return _steps("Breakout-MinAtar", size, 3)


@program()
def catch(size: int) -> Built:
    return _steps("Catch-bsuite", size, 3)


@program()
def four_rooms(size: int) -> Built:
    return _steps("FourRooms-misc", size, 4)
