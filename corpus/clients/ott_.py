# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimal transport by OTT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from ott.geometry import costs, geometry, pointcloud
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn
from ott.tools import soft_sort

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


@program(tolerance=2e-3)
def sinkhorn_of_points(size: int) -> Built:
    """Both clouds have the size."""

    def solve(x: Any, y: Any) -> Any:
        found = sinkhorn.Sinkhorn(max_iterations=40)(
            linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.5))
        )
        return found.matrix, found.reg_ot_cost

    return solve, (normal(size, 3), normal(size, 3, seed=1))


@program(tolerance=2e-3)
def sinkhorn_of_costs(size: int) -> Built:
    """One side has the size, the kernel is of a matrix of costs, and the marginals differ."""

    def solve(cost: Any, a: Any) -> Any:
        problem = linear_problem.LinearProblem(geometry.Geometry(jnp.square(cost), epsilon=0.3), a=a / a.sum())
        return sinkhorn.Sinkhorn(lse_mode=False, max_iterations=30)(problem).f

    return solve, (normal(size, 6), abs(normal(size, seed=1)) + 0.1)


@program(tolerance=2e-3)
def cosine_costs(size: int) -> Built:
    def costs_of(x: Any, y: Any) -> Any:
        return pointcloud.PointCloud(x, y, cost_fn=costs.Cosine()).cost_matrix

    return costs_of, (normal(size, 5), normal(7, 5, seed=1))


@program(tolerance=5e-3)
def soft_sorted(size: int) -> Built:
    def sort(x: Any) -> Any:
        return soft_sort.sort(x, axis=0, epsilon=0.1, max_iterations=30)

    return sort, (normal(size),)


@program(tolerance=5e-3)
def soft_ranks(size: int) -> Built:
    def ranks(x: Any) -> Any:
        return soft_sort.ranks(x, axis=-1, num_targets=4, epsilon=0.1, max_iterations=30)

    return ranks, (normal(2, size),)
