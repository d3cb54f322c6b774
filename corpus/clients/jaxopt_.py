# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Solvers of JAXopt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jaxopt

from corpus.registry import integers, normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _ridge(weights: Any, data: Any) -> Any:
    x, y = data
    return jnp.mean((x @ weights - y) ** 2) + 0.1 * jnp.sum(weights**2)


def _solved(solver: Any, size: int, *more: Any) -> Built:
    def solve(weights: Any, x: Any, y: Any) -> Any:
        return solver.run(weights, *more, data=(x, y)).params

    return solve, (normal(3), normal(size, 3), normal(size, seed=1))


@program(tolerance=2e-3)
def gradient_descent(size: int) -> Built:
    return _solved(jaxopt.GradientDescent(_ridge, maxiter=10, stepsize=0.1), size)


@program(tolerance=2e-3)
def lbfgs(size: int) -> Built:
    return _solved(jaxopt.LBFGS(_ridge, maxiter=5), size)


@program(tolerance=2e-3)
def lasso(size: int) -> Built:
    solver = jaxopt.ProximalGradient(_ridge, prox=jaxopt.prox.prox_lasso, maxiter=10, stepsize=0.1)
    return _solved(solver, size, 0.1)


@program(tolerance=2e-3)
def gauss_newton(size: int) -> Built:
    def solve(weights: Any, x: Any, y: Any) -> Any:
        return jaxopt.GaussNewton(lambda w: x @ w - y, maxiter=3).run(weights).params

    return solve, (normal(3), normal(size, 3), normal(size, seed=1))


@program(tolerance=2e-3)
def projected_simplex(size: int) -> Built:
    """The number of unknowns has the size."""

    def project(x: Any) -> Any:
        return jaxopt.projection.projection_simplex(x), jaxopt.projection.projection_l2_ball(x, 1.0)

    return project, (normal(size),)


@program(tolerance=2e-3)
def implicit_gradient(size: int) -> Built:
    def derived(strength: Any, x: Any, y: Any) -> Any:
        def loss(strength: Any) -> Any:
            def inner(w: Any, s: Any) -> Any:
                return jnp.mean((x @ w - y) ** 2) + s * jnp.sum(w**2)

            solver = jaxopt.GradientDescent(inner, maxiter=20, stepsize=0.1, implicit_diff=True)
            return jnp.sum(solver.run(jnp.zeros(3), strength).params ** 2)

        return jax.grad(loss)(strength)

    return derived, (abs(normal()) + 0.1, normal(size, 3), normal(size, seed=1))


@program(tolerance=2e-3)
def bisection_and_losses(size: int) -> Built:
    def evaluate(logits: Any, labels: Any) -> Any:
        return jax.vmap(jaxopt.loss.multiclass_logistic_loss)(labels, logits).mean()

    return evaluate, (normal(size, 4), integers(4, size))


@program(tolerance=2e-3)
def scipy_conjugate_gradients(size: int) -> Built:
    def solve(a: Any, b: Any) -> Any:
        return jaxopt.linear_solve.solve_cg(lambda x: a.T @ (a @ x) + x, b, maxiter=20)

    return solve, (normal(size, size) * 0.3, normal(size, seed=1))
