# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions whose partitioning is the user's: `jax.experimental.custom_partitioning`. See `device_checks.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding

from tests.pjrt.device_programs import Devices, P, case, grid, laid
from tests.pjrt.program_table import ramp


def defined(function: Callable[..., Any], lowered: Callable[..., Any], rule: str, **factors: Any) -> Any:
    """A function of which each device computes `lowered` of its parts, under the shardings that are proposed."""
    wrapped = custom_partitioning(function)

    def partition(mesh: Any, arguments: Any, results: Any) -> Any:
        shardings = [jax.tree.map(lambda s: s.sharding, tree) for tree in (results, arguments)]
        return mesh, lowered, *shardings

    wrapped.def_partition(partition, sharding_rule=rule, **factors)
    return wrapped


@case
def rows_by_their_own_rule(devices: Devices) -> Any:
    """A sort, which the compiler would gather, of rows that stay where they are; a tree of arguments, two results."""
    f = defined(
        lambda tree: (jnp.sort(tree[0] + tree[1], axis=1), tree[0].sum(1)),
        lambda tree: (jnp.sort(tree[0] + tree[1], axis=1), tree[0].sum(1)),
        "i j, i j -> i j, i",
        need_replication_factors=("j",),
    )
    mesh = grid(devices)
    a, b = laid(mesh, ramp(8, 4), "x"), laid(mesh, ramp(8, 4)[::-1], "x")
    found = jax.jit(lambda a, b: [2 * r for r in f((a, b))])(a, b)
    assert all(r.sharding.spec[0] == "x" for r in found)
    return found


@case
def shardings_that_the_callback_changes(devices: Devices) -> Any:
    """The callback asks for other shardings than those proposed, of arguments and of results."""

    @custom_partitioning
    def f(a: Any) -> Any:
        return jnp.cumsum(a, axis=0)

    def partition(mesh: Any, arguments: Any, results: Any) -> Any:
        columns = NamedSharding(arguments[0].sharding.mesh, P(None, ("y", "x")))
        return mesh, lambda a: jnp.cumsum(a, axis=0), columns, (columns,)

    f.def_partition(partition, sharding_rule="i j -> i j")
    return jax.jit(lambda a: f(a) + a)(laid(grid(devices), ramp(8, 4), "x", "y"))


@case
def factors_of_dimensions(devices: Devices) -> Any:
    f = defined(
        lambda a, b: a.reshape(8) + b,
        lambda a, b: a.reshape(-1) + b,
        "(i k) j, (i k j) -> (i k j)",
        i=2,
        k=2,
        need_replication_factors=("k",),
    )
    mesh = grid(devices)
    return jax.jit(f)(laid(mesh, ramp(4, 2), "x"), laid(mesh, ramp(8), "x"))
