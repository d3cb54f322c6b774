# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Roots, minima and least squares by Optimistix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optimistix as optx

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _cubic(y: Any, args: Any) -> Any:
    return y**3 + y - args


def _squares(y: Any, args: Any) -> Any:
    return jnp.sum((y - args) ** 2 + 0.1 * y**4)


def _residuals(y: Any, args: Any) -> Any:
    x, seen = args
    return y[0] * jnp.exp(-y[1] * x) - seen


@program(tolerance=1e-3)
def newton(size: int) -> Built:
    def solve(y: Any, args: Any) -> Any:
        return optx.root_find(_cubic, optx.Newton(1e-4, 1e-4), y, args, max_steps=32, throw=False).value

    return solve, (normal(size), normal(size, seed=1))


@program(tolerance=1e-3)
def chord(size: int) -> Built:
    def solve(y: Any, args: Any) -> Any:
        return optx.root_find(_cubic, optx.Chord(1e-3, 1e-3), y, args, max_steps=64, throw=False).value

    return solve, (0 * normal(size) + 0.5, 0.1 * normal(size, seed=1) + 0.6)


@program(tolerance=1e-3)
def bfgs(size: int) -> Built:
    def solve(y: Any, args: Any) -> Any:
        return optx.minimise(_squares, optx.BFGS(1e-4, 1e-4), y, args, max_steps=64, throw=False).value

    return solve, (normal(size), normal(size, seed=1))


@program(tolerance=5e-3)
def nelder_mead(size: int) -> Built:
    def solve(y: Any, args: Any) -> Any:
        return optx.minimise(
            lambda y, a: jnp.mean((y[0] - a) ** 2), optx.NelderMead(1e-4, 1e-4), y, args, max_steps=64, throw=False
        ).value

    return solve, (normal(1), normal(size, seed=1))


@program(tolerance=2e-3)
def levenberg_marquardt(size: int) -> Built:
    def solve(y: Any, x: Any, seen: Any) -> Any:
        return optx.least_squares(
            _residuals, optx.LevenbergMarquardt(1e-4, 1e-4), y, (x, seen), max_steps=64, throw=False
        ).value

    x = abs(normal(size))
    return solve, (normal(2) * 0 + 0.8, x, (2 * jnp.exp(-x)).__array__())


@program(tolerance=2e-3)
def gauss_newton(size: int) -> Built:
    def solve(y: Any, x: Any, seen: Any) -> Any:
        return optx.least_squares(
            _residuals, optx.GaussNewton(1e-4, 1e-4), y, (x, seen), max_steps=64, throw=False
        ).value

    x = abs(normal(size))
    return solve, (normal(2) * 0 + 0.8, x, (2 * jnp.exp(-x)).__array__())


@program(tolerance=1e-3)
def fixed_point(size: int) -> Built:
    def solve(y: Any) -> Any:
        return optx.fixed_point(lambda y, _: jnp.cos(y), optx.FixedPointIteration(1e-4, 1e-4), y, throw=False).value

    return solve, (normal(size),)


@program(tolerance=2e-3)
def implicit_gradient(size: int) -> Built:
    def derived(y: Any, args: Any) -> Any:
        def total(args: Any) -> Any:
            return jnp.sum(optx.root_find(_cubic, optx.Newton(1e-4, 1e-4), y, args, max_steps=32, throw=False).value)

        return jax.grad(total)(args)

    return derived, (normal(size), normal(size, seed=1))
