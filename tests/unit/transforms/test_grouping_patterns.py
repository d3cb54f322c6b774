# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions for ops to become one kernel: for each a program that meets all others of its pattern."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import shlo_disc
from tests.unit.transforms.deciding import Function, compiled, taken

SIZES = {"b": 5, "s": 7, "t": 3, "n": 6}


def rows_and_wider_ones(x: jax.Array, y: jax.Array) -> jax.Array:
    return y * jnp.sum(jnp.exp(x), 1)[:, None]


def divided_by_the_sum_of_all(x: jax.Array) -> jax.Array:
    return x / jnp.sum(x)


def reversed_and_not(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.rev(jnp.exp(y), (0,)) + jnp.tanh(x)


def rows_and_their_reverse(x: jax.Array) -> jax.Array:
    y = jax.nn.softmax(x, 1)
    return y + lax.rev(y, (0,))


def sums_along_the_other_axis(x: jax.Array, y: jax.Array) -> jax.Array:
    """The sums of rows stand at the columns of a matrix of as many columns."""
    e = jnp.exp(x)
    return e + y * jnp.sum(e, 1)[None, :]


def sums_and_softmax(x: jax.Array, y: jax.Array) -> jax.Array:
    """The columns of the one are rows of the other."""
    return jnp.sum(jnp.exp(x), 2) + jax.nn.softmax(y, 1)


def sum_of_what_is_repeated(a: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.broadcast_to(jnp.exp(a), x.shape), 1) + x[:, 0]


def reduced_with_its_reverse(x: jax.Array) -> tuple[jax.Array, ...]:
    e = jnp.exp(x)
    zero = jnp.float32(0)
    return tuple(lax.reduce((e, lax.rev(e, (0,))), (zero, zero), lambda a, b: (a[0] + b[0], a[1] + b[1]), [1]))


def reversed_softmax(x: jax.Array) -> jax.Array:
    return lax.rev(jax.nn.softmax(x, 1), (0,))


def reversed_product(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.rev(x @ y, (0,))


REFUSED: list[tuple[str, Function, list[str], dict[str, int]]] = [
    ("elementwise-fusion.equal-sizes", rows_and_wider_ones, ["b, s", "b, t"], {"elementwise-fusion": 0}),
    ("elementwise-fusion.reads-an-axis", divided_by_the_sum_of_all, ["b, s"], {"elementwise-fusion": 0}),
    ("merge-fusions.is-aligned", reversed_and_not, ["b, s", "b, s"], {"merge-fusions": 0}),
    ("merge-fusions.moves-nothing-reduced", rows_and_their_reverse, ["b, s"], {"merge-fusions": 0}),
    ("merge-fusions.reads-in-place", sums_along_the_other_axis, ["n, n", "n, n"], {"merge-fusions": 0}),
    ("merge-fusions.same-columns", sums_and_softmax, ["b, s, t", "b, s"], {"merge-fusions": 0}),
    ("row-reduce-fusion.whole-domain", sum_of_what_is_repeated, ["s", "b, s"], {"row-reduce-fusion": 0}),
    ("row-reduce-fusion.reduce-has-no-cycle", reduced_with_its_reverse, ["b, s"], {"row-reduce-fusion": 1}),
    ("absorb-producer.is-loop", reversed_softmax, ["b, s"], {"absorb-producer": 0}),
    ("absorb-producer.is-loop", reversed_product, ["b, s", "s, n"], {"absorb-producer": 0}),
]


@pytest.mark.parametrize(("condition", "function", "shapes", "decisions"), REFUSED)
def test_what_stays_apart(condition: str, function: Function, shapes: list[str], decisions: dict[str, int]) -> None:
    done, failed = compiled(function, *shapes)
    assert condition in failed
    assert {name: taken(done, name) for name in decisions} == decisions


@pytest.mark.parametrize(("function", "shapes"), [(f, shapes) for _, f, shapes, _ in REFUSED])
def test_results(function: Function, shapes: list[str]) -> None:
    scope = export.SymbolicScope()
    dims = [export.symbolic_shape(s, scope=scope) for s in shapes]
    specs = [jax.ShapeDtypeStruct(d, jnp.float32) for d in dims]
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal([SIZES[str(d)] for d in own]).astype(np.float32) for own in dims]
    got = shlo_disc.compile(export.export(jax.jit(function))(*specs))(*arrays)
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(jax.jit(function)(*arrays)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
