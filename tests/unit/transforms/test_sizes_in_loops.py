# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions of the patterns of loops on sizes that each iteration reads from data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import shlo_disc.numpy as sizes
from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.transforms.decisions import OUTCOMES
from tests.unit.transforms.deciding import Function, taken


def selecting(step: Callable[..., Any]) -> Function:
    return lambda x: lax.fori_loop(0, x.shape[0], lambda i, h: step(sizes.flatnonzero(h[:, 0] > 0), x, h), x)


def kept_rows(at: jax.Array, x: jax.Array, h: jax.Array) -> Any:
    """A product of rows from outside, of which each iteration has another number."""
    return h + (jnp.broadcast_to(x[0], (at.shape[0], 4)) @ x.T).sum(0)[:, None]


def squared_count(at: jax.Array, x: jax.Array, h: jax.Array) -> Any:
    """A product of matrices of one size, whose elements are the number of rows."""
    count = jnp.full((4, 4), at.shape[0], jnp.float32)
    return h @ (count @ count)


@pytest.mark.parametrize("step", [kept_rows, squared_count])
def test_what_has_another_size_in_each_iteration_stays_in_a_loop(step: Callable[..., Any]) -> None:
    before = OUTCOMES.copy()
    done = run_pipeline(import_stage(selecting(step), "cpu", Options(), (("b, 4", "float32"),)), last="simplify")
    assert (OUTCOMES - before)["hoist-invariant.has-invariant-sizes", False] > 0
    assert taken(done, "hoist-invariant") == 0


def counted_by_selection(x: jax.Array) -> Any:
    """A loop whose bound is another size in each iteration."""
    goes_on = lambda c: c[0] < sizes.flatnonzero(c[1][:, 0] > 0).shape[0]  # noqa: E731
    return lax.while_loop(goes_on, lambda c: (c[0] + 1, c[1] - 1), (0, x))[1]


def scan_of_repeated_rows(x: jax.Array) -> Any:
    """Products of a scanned row with a matrix from outside, as many times as each iteration selects."""

    def step(h: jax.Array, row: jax.Array) -> Any:
        at = sizes.flatnonzero(h > 0)
        return h + (jnp.broadcast_to(row, (at.shape[0], 4)) @ weights).sum(), None

    weights = x[:4].T
    return lax.scan(step, x[0], x)[0]


def recurrent_selection(x: jax.Array) -> Any:
    """Rows that do not meet, but for the count of some of them."""

    def step(h: jax.Array, row: jax.Array) -> Any:
        at = sizes.flatnonzero(row > 0)
        return jnp.tanh(h + at.shape[0]), None

    return lax.scan(step, x, x)[0]


@pytest.mark.parametrize(
    ("condition", "function"),
    [
        ("counted-loop.has-one-bound", counted_by_selection),
        ("hoist-scanned-product.has-invariant-sizes", scan_of_repeated_rows),
        ("recurrence.reads-no-sizes", recurrent_selection),
    ],
)
def test_sizes_that_each_iteration_reads(condition: str, function: Function) -> None:
    before = OUTCOMES.copy()
    done = run_pipeline(import_stage(function, "cpu", Options(), (("4*b, 4", "float32"),)), last="fuse")
    assert (OUTCOMES - before)[condition, False] > 0
    assert taken(done, "hoist-scanned-product") == taken(done, "recurrence") == 0
