# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over independent rows: one kernel, at batches and lengths on both sides of its tiles, and what is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.run.op_check import Spec, assert_same, check, compile_function, random_array, run_xla, shape_of

F = "float32"
BATCHES = (1, 2, 3, 4, 5, 6, 13, 31, 50)
"""Below, at and above the heights of tiles, of blocks of rows and of chunks."""


def kinds(executable: Any) -> list[str]:
    return [k.kind for k in executable.kernels]


def check_rows(
    function: Callable[..., Any], specs: list[Spec], rows: int, *, lengths: tuple[int, ...] = (4,), ulps: float
) -> Any:
    """Compare with XLA at the largest batch; as rows are independent, smaller ones give its first rows, bit for bit.

    The first argument has its batch along axis 1; each result has it along axis `rows`, or 0 if its rank is less.
    """
    executable = compile_function(function, specs)
    for t in lengths:
        sizes = {"t": t, "b": BATCHES[-1]}
        x, *weights = (random_array(shape_of(text, sizes), dtype, i) for i, (text, dtype) in enumerate(specs))
        whole = executable(x, *weights)
        assert_same(whole, run_xla(function, [x, *weights]), ulps, floor=1)
        for b in BATCHES:
            part = executable(np.ascontiguousarray(x[:, :b]), *weights)
            for got, want in zip(jax.tree.leaves(part), jax.tree.leaves(whole), strict=True):
                np.testing.assert_array_equal(got, want.take(range(b), axis=rows if want.ndim > rows + 1 else 0))
    return executable


def gru(x: jax.Array, w: jax.Array) -> Any:
    d = w.shape[0]

    def step(h: jax.Array, row: jax.Array) -> Any:
        (a, b, c), (p, q, r) = jnp.split(row, 3, axis=-1), jnp.split(h @ w, 3, axis=-1)
        z = jax.nn.sigmoid(a + p)
        h = (1 - z) * h + z * jnp.tanh(c + jax.nn.sigmoid(b + q) * r)
        return h, h

    return lax.scan(step, jnp.zeros((x.shape[1], d), x.dtype), x)


@pytest.mark.parametrize(("d", "dtype"), [(1, F), (5, F), (36, F), (130, "float64")])
def test_a_gru_at_many_batches(d: int, dtype: str) -> None:
    specs = [(f"t, b, {3 * d}", dtype), (f"{d}, {3 * d}", dtype)]
    executable = check_rows(gru, specs, 1, lengths=(1, 5) if d == 5 else (3,), ulps=20 * d)
    assert kinds(executable) == ["recurrence"]


def backwards(x: jax.Array, w: jax.Array) -> Any:
    last, states = gru(x[::-1], w)
    return last, states[::-1]


def both_ways(x: jax.Array, w: jax.Array, v: jax.Array) -> Any:
    return gru(x, w), backwards(x * 2, v)


def _vectors(x: jax.Array, w: jax.Array, u: jax.Array, bias: jax.Array) -> jax.Array:
    """A cell for vectors, with its weights on the left as `equinox.nn.GRUCell` has them, over a batch by `vmap`."""

    def cell(h: jax.Array, row: jax.Array) -> Any:
        a, b = jnp.split(u @ row + bias, 3), jnp.split(w @ h, 3)
        z = jax.nn.sigmoid(a[0] + b[0])
        h = z * h + (1 - z) * jnp.tanh(a[1] + jax.nn.sigmoid(a[2] + b[2]) * b[1])
        return h, h

    return jax.vmap(lambda rows: lax.scan(cell, jnp.zeros(w.shape[1]), rows)[1], in_axes=1, out_axes=1)(x)


@pytest.mark.parametrize("d", (1, 5, 36))
def test_a_batch_of_vectors_with_weights_on_the_left(d: int) -> None:
    specs = [("t, b, 7", F), (f"{3 * d}, {d}", F), (f"{3 * d}, 7", F), (f"{3 * d}", F)]
    executable = check_rows(_vectors, specs, 1, ulps=400)
    assert kinds(executable).count("recurrence") == 1


@pytest.mark.parametrize("d", (5, 36))
def test_two_ways_side_by_side(d: int) -> None:
    """Neither needs the other: one kernel."""
    specs = [(f"t, b, {3 * d}", F), (f"{d}, {3 * d}", F), (f"{d}, {3 * d}", F)]
    executable = check_rows(both_ways, specs, 1, lengths=(1, 4), ulps=20 * d)
    assert kinds(executable).count("recurrence") == 1


def three_loops(x: jax.Array, y: jax.Array, w: jax.Array, v: jax.Array) -> Any:
    return gru(x, w), gru(y, v), backwards(x, w)[0]


@pytest.mark.slow
def test_three_loops_of_different_rows_and_widths() -> None:
    specs = [("t, b, 15", F), ("s, c + 1, 24", F), ("5, 15", F), ("8, 24", F)]
    sizes = [{"t": t, "b": b, "s": s, "c": c} for t, b, s, c in [(1, 1, 3, 60), (4, 13, 2, 1), (3, 50, 7, 2)]]
    executable = check(three_loops, specs, sizes, ulps=200, floor=1)
    assert kinds(executable).count("recurrence") == 1


@pytest.mark.slow
def test_a_branch_that_reads_one_before_the_other() -> None:
    def between(x: jax.Array, n: jax.Array, w: jax.Array) -> Any:
        first = gru(x, w)[0]
        branch = lax.cond(n[0] > 0, lambda: first * 2, lambda: jnp.tanh(first @ first.T) @ first)
        return branch, backwards(x, w)[0], gru(jnp.concatenate([x, x], axis=1), w)[0][: branch.shape[0]] + branch

    specs = [("t, b, 12", F), ("1,", "int32"), ("4, 12", F)]
    check(between, specs, [{"t": 3, "b": b} for b in (1, 7, 31)], ulps=400, floor=1)


@pytest.mark.slow
def test_a_loop_over_what_another_one_returns() -> None:
    def stacked(x: jax.Array, w: jax.Array, v: jax.Array) -> Any:
        states = gru(x, w)[1]
        return gru(jnp.tanh(states @ v), w)[0]

    specs = [("t, b, 12", F), ("4, 12", F), ("4, 12", F)]
    executable = check(stacked, specs, [{"t": 3, "b": b} for b in (1, 7, 31)], ulps=200, floor=1)
    assert kinds(executable).count("recurrence") == 2


def test_a_static_batch_and_length() -> None:
    for b in (1, 7):
        check(gru, [(f"3, {b}, 12", F), ("4, 12", F)], [{}], ulps=100, floor=1, static=0)


def products_in_a_row(x: jax.Array, a: jax.Array, b: jax.Array) -> Any:
    """A step in which they follow each other."""

    def step(carried: Any, row: jax.Array) -> Any:
        h, g = carried
        h = jnp.tanh(row + h @ a)
        reset = jax.nn.sigmoid(g @ b)
        g = reset * g + jnp.tanh((reset * g) @ b + h @ b) * h
        return (h, g), (h, g * 2)

    start = jnp.zeros(x.shape[1:], x.dtype)
    return lax.scan(step, (start, start + 1), x, reverse=True)


def test_a_step_with_products_that_follow_each_other() -> None:
    specs = [("t, b, 20", F), ("20, 20", F), ("20, 20", F)]
    executable = check_rows(products_in_a_row, specs, 1, ulps=4000)
    assert kinds(executable).count("recurrence") == 1
    assert "dot" not in kinds(executable)


def moved_states(x: jax.Array) -> Any:
    """States that change places, that are read at other indices, that come from outside, and of several types."""

    def step(carried: Any, row: jax.Array) -> Any:
        a, b, seen, last, count = carried
        rolled = jnp.concatenate([lax.slice_in_dim(a, 1, 6, axis=1), lax.slice_in_dim(a, 0, 1, axis=1)], axis=1)
        new = (b, rolled * 0.5 + row, seen | (row > 1), row, count + (lax.index_in_dim(b, 0, 1, keepdims=False) > 1))
        return new, (jnp.flip(a, 1), last, jnp.where(seen, count[:, None], -1))

    b, d = x.shape[1:]
    start = (x[0] * 2, jnp.ones((b, d), F), jnp.zeros((b, d), bool), x[0], jnp.zeros(b, jnp.int32))
    return lax.scan(step, start, x)


def test_states_that_move() -> None:
    executable = check_rows(moved_states, [("t, b, 6", F)], 1, ulps=4)
    assert kinds(executable).count("recurrence") == 1


def test_what_only_a_stack_holds_is_computed_from_the_state_before() -> None:
    """The window is computed in the step that changes the state, and read again in a later one."""

    def run(x: jax.Array) -> Any:
        def step(i: jax.Array, carried: Any) -> Any:
            h, first, out = carried
            double = h * 2
            row = lax.dynamic_index_in_dim(x, i, keepdims=False)
            out = lax.dynamic_update_slice(out, double, (0, 2 * i), allow_negative_indices=False)
            return h + row, double[:, :1], out

        n, b, _ = x.shape
        return lax.fori_loop(0, n, step, (jnp.zeros((b, 2), F), jnp.zeros((b, 1), F), jnp.zeros((b, 2 * n), F)))

    executable = check(run, [("n, b, 2", F)], [{"n": n, "b": b} for n, b in [(1, 1), (3, 17)]], ulps=4, floor=1)
    assert kinds(executable) == ["recurrence"]


def test_a_table_and_a_condition_on_data() -> None:
    def decode(table: jax.Array, w: jax.Array, first: jax.Array, steps: jax.Array) -> Any:
        def step(carried: Any) -> Any:
            i, token, h, out = carried
            h = jnp.tanh(table[token] + h @ w)
            token = (jnp.abs(lax.index_in_dim(h, 0, 1, keepdims=False)) * 40).astype(jnp.int32) % 9
            return i + 1, token, h, lax.dynamic_update_slice(out, token[None], (i, jnp.int32(0)))

        start = (jnp.int32(0), first, jnp.zeros((first.shape[0], 8), F), jnp.full((4, first.shape[0]), -1, jnp.int32))
        return lax.while_loop(lambda c: c[0] < steps[0], step, start)[2:]

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        return random_array(shape, dtype, seed) if dtype == F else np.full(shape, seed % 6, dtype)

    specs: list[Spec] = [("9, 8", F), ("8, 8", F), ("b", "int32"), ("1", "int32")]
    executable = check(decode, specs, [{"b": b} for b in (1, 17)], inputs=inputs, ulps=100, floor=1)
    assert "recurrence" in kinds(executable)


def test_outputs_that_depend_on_no_row() -> None:
    def count(x: jax.Array) -> Any:
        def step(h: jax.Array, row: jax.Array) -> Any:
            return h * 0.5 + row, (jnp.full_like(row, 3), row > 0, row[..., :1])

        return lax.scan(step, jnp.zeros_like(x[0]), x)

    executable = check_rows(count, [("t, b, 3", F)], 1, ulps=1)
    assert kinds(executable).count("recurrence") == 1


def test_half_floats_and_no_product() -> None:
    def smooth(x: jax.Array) -> Any:
        return lax.scan(lambda c, row: (c * 0.5 + row, c), jnp.zeros(x.shape[1:], x.dtype), x)

    for dtype in ("bfloat16", "float16"):
        assert "recurrence" in kinds(check_rows(smooth, [("t, b, 3", dtype)], 1, ulps=1))


def test_states_that_are_one_number_a_row() -> None:
    def smooth(x: jax.Array) -> Any:
        return lax.scan(lambda c, row: (c * 0.5 + row, None), jnp.zeros(x.shape[1:], x.dtype), x)

    check_rows(smooth, [("t, b", F)], 1, ulps=1)


def test_loops_without_iterations() -> None:
    executable = shlo_disc.compile(jax.jit(gru), args=[("0, b, 12", F), ("4, 12", F)])
    last, states = executable(np.ones((0, 3, 12), F), np.ones((4, 12), F))
    assert (last == np.zeros((3, 4), F)).all()
    assert states.shape == (0, 3, 4)
    empty = shlo_disc.compile(jax.jit(gru), args=[("3, 0, 12", F), ("4, 12", F)])
    assert [r.shape for r in empty(np.ones((3, 0, 12), F), np.ones((4, 12), F))] == [(0, 4), (3, 0, 4)]


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_no_bit(threads: int) -> None:
    specs: list[Spec] = [("t, b, 48", F), ("16, 48", F)]
    x, w = random_array((40, 61, 48), F), random_array((16, 48), F)
    one = shlo_disc.compile(jax.jit(gru), args=specs, options=shlo_disc.Options(threads=1))
    many = shlo_disc.compile(jax.jit(gru), args=specs, options=shlo_disc.Options(threads=threads))
    for got, want in zip(many(x, w), one(x, w), strict=True):
        np.testing.assert_array_equal(got, want)


def _across_rows(x: jax.Array) -> Any:
    return lax.scan(lambda c, row: (c * 0.5 + row - c.mean(0), None), x[0], x)[0]


def _flipped_rows(x: jax.Array) -> Any:
    return lax.scan(lambda c, row: (c[::-1] * 0.5 + row, None), x[0], x)[0]


def _product_of_rows(x: jax.Array) -> Any:
    return lax.scan(lambda c, row: (c + row.T @ row, None), jnp.zeros((6, 6), x.dtype), x)[0]


def _counter_used_later(x: jax.Array) -> Any:
    end, state = lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 2, c[1] * 0.5), (jnp.int32(0), x[0]))
    return state + end


@pytest.mark.parametrize("function", [_across_rows, _flipped_rows, _product_of_rows, _counter_used_later])
def test_rows_that_depend_on_each_other(function: Callable[..., Any]) -> None:
    executable = check(function, [("t, b, 6", F)], [{"t": 3, "b": 7}], ulps=40, floor=1, static=0)
    assert "recurrence" not in kinds(executable)


def test_weights_too_large_for_the_cache_stay_products() -> None:
    executable = shlo_disc.compile(jax.jit(gru), args=[("t, b, 3072", F), ("1024, 3072", F)])
    assert "dot" in kinds(executable)
    assert "recurrence" not in kinds(executable)


def every_other_row(x: jax.Array, out: jax.Array, w: jax.Array) -> Any:
    """Half of a stack is written; the rest stays as it was."""

    def step(i: jax.Array, carried: Any) -> Any:
        h, out = carried
        h = jnp.tanh(h @ w)
        return h, lax.dynamic_update_slice(out, h[:, None], (0, 2 * i, 0))

    return lax.fori_loop(0, 3, step, (x, out))


def test_initial_values_and_stacks_that_are_arguments() -> None:
    """The arguments are left alone."""
    specs: list[Spec] = [("b, 5", F), ("b, 7, 5", F), ("5, 5", F)]
    executable = check(every_other_row, specs, [{"b": b} for b in (1, 14)], ulps=60, floor=1)
    assert "recurrence" in kinds(executable)
    x, out, w = (random_array(s, F, 3) for s in ((3, 5), (3, 7, 5), (5, 5)))
    copies = x.copy(), out.copy()
    first = jax.tree.map(np.copy, executable(x, out, w))
    for got, want in zip(executable(x, out, w), first, strict=True):
        np.testing.assert_array_equal(got, want)
    assert (x == copies[0]).all() and (out == copies[1]).all()
    np.testing.assert_allclose(first[0], run_xla(every_other_row, [x, out, w])[0], rtol=1e-5, atol=1e-6)
