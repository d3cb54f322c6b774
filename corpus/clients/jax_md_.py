# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Energies, forces and steps of JAX MD: the number of particles has the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax_md import energy, minimize, quantity, simulate, space

from corpus.registry import key, normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]
_BOX = 6.0


def _positions(size: int) -> Any:
    return (normal(size, 2) * 2) % _BOX


@program(tolerance=1e-3)
def soft_sphere(size: int) -> Built:
    displacement, _ = space.periodic(_BOX)
    return energy.soft_sphere_pair(displacement), (_positions(size),)


@program(tolerance=1e-3)
def lennard_jones_forces(size: int) -> Built:
    displacement, _ = space.periodic(_BOX)
    return quantity.force(energy.lennard_jones_pair(displacement, sigma=0.5)), (_positions(size),)


@program(tolerance=1e-3)
def morse(size: int) -> Built:
    displacement, _ = space.free()
    return energy.morse_pair(displacement), (_positions(size),)


@program(tolerance=2e-3)
def nve_step(size: int) -> Built:
    displacement, shift = space.periodic(_BOX)
    _, apply = simulate.nve(energy.soft_sphere_pair(displacement), shift, 1e-3)

    def step(position: Any, momentum: Any, force: Any) -> Any:
        state = simulate.NVEState(position, momentum, force, jnp.float32(1.0))
        state = apply(apply(state))
        return state.position, state.momentum

    return step, (_positions(size), normal(size, 2, seed=1), normal(size, 2, seed=2) * 0)


@program(tolerance=2e-3)
def fire_descent(size: int) -> Built:
    displacement, shift = space.periodic(_BOX)
    init, apply = minimize.fire_descent(energy.soft_sphere_pair(displacement), shift)

    def descend(position: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, state: apply(state), init(position)).position

    return descend, (_positions(size),)


@program(tolerance=2e-3)
def brownian(size: int) -> Built:
    displacement, shift = space.periodic(_BOX)
    init, apply = simulate.brownian(energy.soft_sphere_pair(displacement), shift, 1e-3, 0.1)

    def step(seed: Any, position: Any) -> Any:
        return apply(init(seed, position)).position

    return step, (key(), _positions(size))


@program(tolerance=1e-3)
def stillinger_weber(size: int) -> Built:
    displacement, _ = space.periodic(20.0)
    return energy.stillinger_weber(displacement), (abs(normal(size, 3)) * 3,)
