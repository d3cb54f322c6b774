# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are split over blocks, in whole programs: calls one after the other, graphs, loops, several clients."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
import shlo_disc.numpy as data_sizes
from shlo_disc.transforms.decisions import OUTCOMES
from tests.gpu.checks import compiled
from tests.gpu.emulated import fresh_client, loaded
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import MockDriver

pytestmark = needs_mock_driver

SPECS = [("a, b", "float32"), ("c, d", "float32")]


def reductions(x: Any, y: Any) -> tuple[Any, ...]:
    """Sums down columns and along rows, whose scratch memory lies beside what others need."""
    down, along = x.sum(0), y.sum(-1)
    return down * 2, jnp.argmax(y, -1), jnp.outer(along, down), x - down


@functools.cache
def program() -> shlo_disc.Executable:
    return compiled(reductions, SPECS)


def arguments(shapes: tuple[tuple[int, int], ...], seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.random(shape, np.float32) for shape in shapes]


def check(run: Any, shapes: tuple[tuple[int, int], ...], seed: int = 0) -> list[np.ndarray]:
    given = arguments(shapes, seed)
    found = [np.asarray(r) for r in run(*given)]
    for got, want in zip(found, jax.jit(reductions)(*given), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)
    return found


SPLIT, WHOLE = ((200, 33), (2, 8200)), ((5, 3), (7, 40))


def test_calls_of_several_sizes_and_graphs_of_them(driver: MockDriver) -> None:
    """The second call of a size is captured, and each replay finds tickets as the call before has left them."""
    client = fresh_client()
    run = loaded(program(), client)
    for seed in range(4):
        check(run, SPLIT, seed)
        check(run, WHOLE, seed)
    assert client.device(0).launch_stats()["replays"] >= 4
    assert driver.mistakes == []


def test_results_are_the_same_in_each_run_and_on_each_client() -> None:
    first, second = (loaded(program(), fresh_client()) for _ in range(2))
    found = [check(run, SPLIT) for run in (first, second, first, second)]
    for other in found[1:]:
        for got, want in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_loop_launches_a_split_kernel_in_each_iteration() -> None:
    def function(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, y: y + x.sum(0) * (i + 1), x[0])

    run = loaded(compiled(function, [("a, b", "float32")]), fresh_client())
    (x,) = arguments(((130, 5),), 0)
    np.testing.assert_allclose(np.asarray(run(x)), jax.jit(function)(x), rtol=2e-5)


@pytest.mark.parametrize("shapes", [((1, 1), (1, 1)), ((200, 1), (1, 8300))], ids=str)
def test_sizes_of_nothing(shapes: tuple[tuple[int, int], ...]) -> None:
    """Reductions of no rows or columns, and down or along none."""

    def function(x: Any, y: Any) -> Any:
        return x[1:].sum(0), x[:, 1:].sum(0), y[:, 1:].sum(-1), y[1:].sum(-1)

    run = loaded(compiled(function, SPECS), fresh_client())
    given = arguments(shapes, 0)
    for got, want in zip(run(*given), jax.jit(function)(*given), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-5)


def lines(x: Any) -> tuple[Any, ...]:
    """Cumulative ops of a line, positions of what is true in it, and attention of one query over it."""
    keys = x.reshape(1, -1, 4)
    scores = jnp.einsum("bqd,bkd->bqk", keys[:, :1], keys)
    return jnp.cumsum(x), lax.cummax(x, reverse=True), jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), keys)


@pytest.mark.slow
def test_lines_and_few_queries_in_calls_and_graphs(driver: MockDriver) -> None:
    client = fresh_client()
    run = loaded(compiled(lines, [("4 * n", "float32")]), client)
    for length in (8200, 12, 8200, 8200, 8200):
        x = np.random.default_rng(length).random(length, np.float32)
        for got, want in zip(run(x), jax.jit(lines)(x), strict=True):
            np.testing.assert_allclose(np.asarray(got).reshape(want.shape), want, rtol=2e-5)
    assert client.device(0).launch_stats()["replays"] >= 1
    assert driver.mistakes == []


def test_positions_of_what_is_true_in_a_long_mask() -> None:
    run = loaded(compiled(lambda x: data_sizes.flatnonzero(x > 0), [("n", "float32")]), fresh_client())
    for length in (12300, 5, 8192, 8191):
        x = np.random.default_rng(length).standard_normal(length).astype(np.float32)
        np.testing.assert_array_equal(np.asarray(run(x)), np.flatnonzero(x > 0))


@pytest.mark.slow
def test_sorts_of_a_long_line_in_calls_and_graphs(driver: MockDriver) -> None:
    client = fresh_client()
    run = loaded(compiled(lambda x: (jnp.sort(x), jnp.argsort(x)), [("n", "float32")]), client)
    for length in (8200, 12, 8200, 8200, 8200):
        x = np.random.default_rng(length).integers(0, 999, length).astype(np.float32)
        ordered, places = (np.asarray(r) for r in run(x))
        np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))
        np.testing.assert_array_equal(ordered, np.sort(x))
    assert client.device(0).launch_stats()["replays"] >= 1
    assert driver.mistakes == []


@pytest.mark.slow
def test_a_loop_sorts_as_many_elements_as_its_iterations_keep() -> None:
    """A line whose length an iteration reads: the memory of a sort has the bound that all of the line has."""

    def function(x: Any) -> Any:
        def step(carried: Any, bound: Any) -> Any:
            kept = x[data_sizes.flatnonzero(x > bound)]
            return carried + (jnp.sort(kept) * jnp.arange(kept.shape[0])).sum(), bound

        return lax.scan(step, jnp.zeros((), x.dtype), jnp.array(BOUNDS[:3], x.dtype))[0]

    run = loaded(compiled(function, [("n", "float32")]), fresh_client())
    for length in (5, 8300):
        x = np.random.default_rng(length).random(length, np.float32)
        kept = [np.sort(x[x > bound]).astype(np.float64) for bound in BOUNDS[:3]]
        np.testing.assert_allclose(np.asarray(run(x)), sum(y @ np.arange(len(y)) for y in kept), rtol=1e-5)


BOUNDS = [-1.0, 0.25, 0.75, 2.0]


def kept_columns(x: Any) -> Any:
    """Sums down the rows that each iteration keeps."""

    def step(carried: Any, bound: Any) -> Any:
        return carried + x[data_sizes.flatnonzero(x[:, 0] > bound)].sum(0), bound

    return lax.scan(step, jnp.zeros_like(x[0]), jnp.array(BOUNDS, x.dtype))[0]


def kept_rows(x: Any) -> Any:
    """Sums along the rows that each iteration keeps: there are as many as divide the blocks of a device."""

    def step(carried: Any, bound: Any) -> Any:
        sums = x[data_sizes.flatnonzero(x[:, 0] > bound)].sum(1)
        return carried + (sums * sums).sum(), bound

    return lax.scan(step, jnp.zeros((), x.dtype), jnp.array(BOUNDS, x.dtype))[0]


@pytest.mark.parametrize("function", [kept_columns, kept_rows])
def test_sizes_that_iterations_read(function: Any) -> None:
    """Scratch memory is planned before the loop, so its size has to have a bound there; else nothing is split."""
    before = OUTCOMES["parts-over-blocks.has-room", False]
    executable = compiled(function, [("a, b", "float32")])
    assert (OUTCOMES["parts-over-blocks.has-room", False] > before) == (function is kept_rows)
    run = loaded(executable, fresh_client())
    for shape in ((3, 5), (300, 7), (2, 8200)):
        (x,) = arguments((shape,), 0)
        kept = [x[x[:, 0] > b] for b in BOUNDS]
        wanted = sum(k.sum(0) for k in kept) if function is kept_columns else sum((k.sum(1) ** 2).sum() for k in kept)
        np.testing.assert_allclose(np.asarray(run(x)), wanted, rtol=2e-5)


def products(x: Any, w: Any, b: Any) -> tuple[Any, ...]:
    """A product by itself, and one with an epilogue."""
    y = lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)
    return y, jnp.tanh((x @ w + b).astype(jnp.float32))


@pytest.mark.slow
def test_products_have_parts_or_tensor_maps(driver: MockDriver) -> None:
    """Blocks of the kernel that is told maps have all of the depth; where there are parts, the other one is started."""
    arguments = (("m, k", "bfloat16"), ("k, 8", "bfloat16"), ("8", "bfloat16"))
    run = loaded(shlo_disc.compile(products, target="cuda:sm_90a", args=arguments), fresh_client())
    for m, k in ((3, 640), (3, 64), (20, 640), (3, 640)):
        random = np.random.default_rng(k)
        given = [random.integers(-2, 3, shape).astype(jnp.bfloat16) for shape in ((m, k), (k, 8), (8,))]
        before = len(driver.launches)
        for got, want in zip(run(*given), jax.jit(products)(*given), strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-2, atol=1e-2)
        started = [name for name in driver.launches[before:] if name.startswith("product_")]
        assert started and all(name.endswith("_by_maps") == (k == 64) for name in started)
    assert driver.mistakes == []
