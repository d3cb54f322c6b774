# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Differential equations by Diffrax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax.numpy as jnp

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _decay(t: Any, y: Any, args: Any) -> Any:
    return -y + jnp.sin(t)


def _solve(solver: Any, size: int, controller: Any = None, adjoint: Any = None) -> Built:
    """Save a solution for a state of 3 at as many times as the size."""
    kept = {} if adjoint is None else {"adjoint": adjoint}

    def solve(y0: Any, times: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(_decay), solver, times[0], times[-1], 0.05, y0,
            saveat=diffrax.SaveAt(ts=times), max_steps=256,
            stepsize_controller=controller or diffrax.ConstantStepSize(), **kept,
        ).ys  # fmt: skip

    return solve, (normal(3), jnp.linspace(0.0, 1.0, size).__array__())


@program()
def euler(size: int) -> Built:
    return _solve(diffrax.Euler(), size)


@program()
def heun(size: int) -> Built:
    return _solve(diffrax.Heun(), size)


@program(tolerance=1e-3)
def tsit5(size: int) -> Built:
    return _solve(diffrax.Tsit5(), size, diffrax.PIDController(rtol=1e-3, atol=1e-4))


@program(tolerance=1e-3)
def kvaerno3(size: int) -> Built:
    return _solve(diffrax.Kvaerno3(), size, diffrax.PIDController(rtol=1e-3, atol=1e-4))


@program(tolerance=1e-3)
def batch_of_states(size: int) -> Built:
    """The state has the size, and the times are fixed."""

    def solve(y0: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(_decay), diffrax.Tsit5(), 0.0, 1.0, 0.1, y0, max_steps=64,
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-4),
        ).ys  # fmt: skip

    return solve, (normal(size, 3),)


@program(tolerance=1e-3)
def gradient_through_solve(size: int) -> Built:
    import jax

    def loss(rate: Any, y0: Any) -> Any:
        def field(t: Any, y: Any, args: Any) -> Any:
            return -args * y

        found = diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Heun(), 0.0, 1.0, 0.1, y0, args=rate, max_steps=32)
        return jnp.sum(found.ys**2)

    return jax.grad(loss), (normal(3), normal(size, 3))


@program()
def linear_interpolation(size: int) -> Built:
    def at(times: Any, values: Any, asked: Any) -> Any:
        control = diffrax.LinearInterpolation(times, values)
        return jnp.stack([control.evaluate(asked[i]) for i in range(3)])

    return at, (jnp.linspace(0.0, 1.0, size).__array__(), normal(size, 2), normal(3) * 0.1 + 0.5)


@program(tolerance=1e-3)
def brownian_motion(size: int) -> Built:
    from corpus.registry import key

    def solve(seed: Any, y0: Any) -> Any:
        motion = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=y0.shape, key=seed)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(_decay),
            diffrax.ControlTerm(lambda t, y, args: _diagonal(y), motion),
        )
        return diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.1, y0, max_steps=16).ys

    def _diagonal(y: Any) -> Any:
        import lineax

        return lineax.DiagonalLinearOperator(0.1 * jnp.ones_like(y))

    return solve, (key(), normal(size))
