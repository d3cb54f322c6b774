# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions of the patterns of loops: for each a program that meets all others of its pattern."""

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
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.regions import entry_block
from shlo_disc.transforms.decisions import Decisions
from shlo_disc.transforms.fusion.horizontal import merge_recurrences
from shlo_disc.transforms.simplify.control_flow import hoist_invariants
from tests.unit.transforms.deciding import Function, compiled, taken


def row(x: jax.Array, i: Any, axis: int = 0) -> jax.Array:
    return lax.dynamic_index_in_dim(x, i, axis, keepdims=False, allow_negative_indices=False)


def put(out: jax.Array, window: jax.Array, i: Any, axis: int) -> jax.Array:
    starts = [jnp.zeros((), jnp.asarray(i).dtype)] * out.ndim
    starts[axis] = i
    return lax.dynamic_update_slice(out, window, starts, allow_negative_indices=False)


def zeros(*dims: Any) -> jax.Array:
    return jnp.zeros(dims, jnp.float32)


# ---- counted loops --------------------------------------------------------------------------------------------------


def counting(
    start: Any = 0,
    goes_on: Callable[..., Any] = lambda i, n: i < n,
    following: Callable[..., Any] = lambda i: i + 1,
    dtype: str = "int32",
) -> Function:
    def run(x: jax.Array) -> Any:
        step = lambda c: (following(c[0]).astype(dtype), c[1] * 2)  # noqa: E731
        n = jnp.asarray(x.shape[0]).astype(dtype)
        return lax.while_loop(lambda c: goes_on(c[0], n), step, (jnp.asarray(start).astype(dtype), x[0]))[1]

    return run


COUNTS: list[tuple[str, Function]] = [
    ("goes-up-to-the-bound", counting(goes_on=lambda i, n: i <= n)),
    ("starts-at-zero", counting(start=1)),
    ("counts-by-one", counting(following=lambda i: i + 2)),
    ("counts-by-one", counting(following=lambda i: i * 2 + 1)),
    ("counts-by-one", counting(following=lambda i: (i.astype(jnp.uint32) + 1).astype(jnp.int32))),
]


@pytest.mark.parametrize(("condition", "function"), COUNTS)
def test_what_is_no_counted_loop(condition: str, function: Function) -> None:
    assert f"counted-loop.{condition}" in compiled(function, "n, d")[1]


def up_to_an_element(x: jax.Array) -> Any:
    bound = x[0, 0].astype(jnp.int32)
    return lax.while_loop(lambda c: c[0] < bound, lambda c: (c[0] + 1, c[1] * 2), (jnp.int32(0), x[0]))[1]


@pytest.mark.parametrize("function", [up_to_an_element, counting(dtype="int16"), counting(dtype="float32")])
def test_loops_whose_bound_is_not_known(function: Function) -> None:
    assert "counted-loop" in compiled(function, "n, d")[1]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_counted_loops(dtype: str) -> None:
    assert not any(name.startswith("counted-loop") for name in compiled(counting(dtype=dtype), "n, d")[1])


# ---- recurrences ----------------------------------------------------------------------------------------------------


def cell(h: jax.Array, x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(h @ w + x)


def scan(change: Callable[..., Any]) -> Function:
    def run(x: jax.Array, w: jax.Array) -> Any:
        return lax.scan(lambda h, r: (cell(change(h, w), r, w), h), zeros(x.shape[1], 4), x)

    return run


def different_rows(x: jax.Array, w: jax.Array) -> Any:
    step = lambda c, r: ((cell(c[0], r, w), c[1] * 2), None)  # noqa: E731
    return lax.scan(step, (zeros(x.shape[1], 4), x[:, 0]), x)[0]


def state_from_outside(x: jax.Array, w: jax.Array) -> Any:
    step = lambda i, c: (cell(c[0], row(x, i), w), w * 2)  # noqa: E731
    return lax.fori_loop(0, x.shape[0], step, (zeros(x.shape[1], 4), jnp.tanh(w)))


def counter_is_used(x: jax.Array, w: jax.Array) -> Any:
    step = lambda c, r: ((cell(c[0], r, w), c[1] * 2), None)  # noqa: E731
    return lax.scan(step, (zeros(x.shape[1], 4), jnp.float32(1)), x)[0]


def condition_reads_a_state(x: jax.Array, w: jax.Array) -> Any:
    step = lambda c: (c[0] + 1, cell(c[1], row(x, c[0]), w))  # noqa: E731
    return lax.while_loop(lambda c: (c[0] < x.shape[0]) & (jnp.max(c[1]) < 1), step, (0, zeros(x.shape[1], 4)))[1]


def rows_move_in_a_state(x: jax.Array, w: jax.Array) -> Any:
    step = lambda c, r: ((cell(c[0], r, w), c[0].T), None)  # noqa: E731
    return lax.scan(step, (zeros(4, 4), zeros(4, 4)), x[:, :1] + zeros(4, 4))[0]


def scalar_from_a_row(x: jax.Array, w: jax.Array) -> Any:
    def step(carried: Any, r: jax.Array) -> Any:
        h, s = carried
        return (cell(h, r, w) + s, jnp.max(h)), h

    return lax.scan(step, (zeros(x.shape[1], 4), jnp.float32(1)), x)[1]


def window_of_some_rows(x: jax.Array, w: jax.Array) -> Any:
    def step(i: jax.Array, carried: Any) -> Any:
        h, out = carried
        return cell(h, row(x, i), w), put(out, h[None], i, 0)

    return lax.fori_loop(0, x.shape[0], step, (zeros(x.shape[1], 4), zeros(x.shape[0], x.shape[1] + 1, 4)))


def wide_rows(x: jax.Array, w: jax.Array) -> Any:
    del w
    return lax.scan(lambda h, r: (h * 0.5 + r, h), jnp.zeros_like(x[0]), x)


def rows_from_inside(h: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.ones((h.shape[0], h.shape[0]), h.dtype) @ h


MEETING: dict[str, Callable[..., Any]] = {
    "sum": lambda h, w: h - jnp.sum(h, 0), "roll": lambda h, w: jnp.concatenate([h[1:], h[:1]]),
    "flip": lambda h, w: h[::-1], "first": lambda h, w: h * h[:1], "pad": lambda h, w: jnp.pad(h[1:], ((0, 1), (0, 0))),
    "cumsum": lambda h, w: lax.cumsum(h, 0), "take": lambda h, w: h[jnp.zeros(h.shape[0], jnp.int32)],
    "flat": lambda h, w: jnp.flip(h.reshape(-1)).reshape(h.shape), "sort": lambda h, w: jnp.sort(h, 0),
}  # fmt: skip

REFUSED: list[tuple[str, Function, str]] = [
    ("states-have-the-same-rows", different_rows, "n, b, 4"),
    ("states-have-the-same-rows", state_from_outside, "n, b, 4"),
    ("scalars-stay-inside", counter_is_used, "n, b, 4"),
    ("condition-reads-scalars", condition_reads_a_state, "n, b, 4"),
    ("products-are-of-rows", scan(rows_from_inside), "n, b, 4"),
    ("products-are-of-rows", scan(lambda h, w: h @ (h.T @ h)), "n, b, 4"),
    ("states-keep-their-rows", rows_move_in_a_state, "n, 4, 4"),
    ("rows-do-not-meet", scalar_from_a_row, "n, b, 4"),
    ("windows-have-all-rows", window_of_some_rows, "n, b, 4"),
    ("rows-have-a-fixed-size", wide_rows, "n, b, d"),
    *(("rows-do-not-meet", scan(change), "n, b, 4") for change in MEETING.values()),
]


@pytest.mark.parametrize(("condition", "function", "shape"), REFUSED)
def test_what_is_no_recurrence(condition: str, function: Function, shape: str) -> None:
    done, failed = compiled(function, shape, "4, 4")
    assert f"recurrence.{condition}" in failed
    assert taken(done, "recurrence") == 0


ALONE: dict[str, Callable[..., Any]] = {
    "sum": lambda h, w: h - jnp.sum(h, 1, keepdims=True), "roll": lambda h, w: jnp.roll(h, 1, 1),
    "flip": lambda h, w: lax.rev(h, (1,)), "first": lambda h, w: h * h[:, :1],
    "twice": lambda h, w: jnp.tanh(h.T).T * h, "reshape": lambda h, w: jnp.sum(h.reshape(-1, 2, 2), 1).repeat(2, 1),
    "iota": lambda h, w: h + jnp.arange(h.shape[0])[:, None],
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_rows_that_do_not_meet(name: str) -> None:
    done, _ = compiled(scan(ALONE[name]), "n, b, 4", "4, 4")
    assert taken(done, "recurrence") == 1


def stacked(
    place: Callable[..., Any], window: int = 1, extra: int = 0, trip: Callable[..., Any] = lambda n: n
) -> Function:
    """The last state of a loop that writes windows of a stack, and the stack."""

    def run(x: jax.Array) -> Any:
        n = x.shape[0]

        def step(i: jax.Array, carried: Any) -> Any:
            h, out = carried
            return h * 0.5 + row(x, i), put(out, jnp.stack([h] * window, 1), place(i, n), 1)

        return lax.fori_loop(0, trip(n), step, (zeros(x.shape[1]), zeros(x.shape[1], window * n + extra)))

    return run


def corners(x: jax.Array) -> Any:
    def step(i: jax.Array, carried: Any) -> Any:
        h, out = carried
        window = lax.dynamic_update_slice(out, h[:, None, None], (0, i, i), allow_negative_indices=False)
        return h * 0.5 + row(x, i), window

    return lax.fori_loop(0, x.shape[0], step, (zeros(x.shape[1]), zeros(x.shape[1], x.shape[0], x.shape[0])))


def whole_windows(trip: int) -> Function:
    def run(x: jax.Array) -> Any:
        step = lambda i, c: (c[0] * 0.5 + row(x, i), put(c[1], c[0], 0, 0))  # noqa: E731
        return lax.fori_loop(0, trip, step, (zeros(x.shape[1]), x[0]))

    return run


UNCOVERED: list[tuple[str, Function]] = [
    ("windows-move-along-one-axis", corners),
    ("windows-have-one-element", stacked(lambda i, n: 2 * i, window=2)),
    ("there-are-enough-windows", stacked(lambda i, n: i, extra=1)),
    ("there-are-enough-windows", stacked(lambda i, n: i, trip=lambda n: n - 1)),
    ("each-place-is-written", stacked(lambda i, n: i + 1)),
    ("each-place-is-written", stacked(lambda i, n: i // 2)),
    ("each-place-is-written", stacked(lambda i, n: n - i)),
]


@pytest.mark.parametrize(("condition", "function"), UNCOVERED)
def test_stacks_that_are_not_covered(condition: str, function: Function) -> None:
    assert f"covered-stack.{condition}" in compiled(function, "n, b")[1]


@pytest.mark.parametrize("place", [lambda i, n: i, lambda i, n: n - 1 - i])
def test_stacks_that_are_covered(place: Callable[..., Any]) -> None:
    done, failed = compiled(stacked(place), "n, b")
    assert taken(done, "recurrence") == 1
    assert not any(name.startswith("covered-stack") for name in failed)


# ---- several recurrences --------------------------------------------------------------------------------------------


def two(link: Callable[..., Any]) -> Function:
    """Two recurrences, of which the second starts from what `link` makes of the first one's state."""

    def run(x: jax.Array, w: jax.Array) -> Any:
        step = lambda h, r: (cell(h, r, w), h)  # noqa: E731
        first = lax.scan(step, zeros(x.shape[1], 4), x)
        return first, lax.scan(step, link(first[0]), x, reverse=True)

    return run


def test_recurrences_side_by_side() -> None:
    assert taken(compiled(two(jnp.ones_like), "n, b, 4", "4, 4")[0], "horizontal-recurrence") == 1


@pytest.mark.parametrize(
    "link", [lambda h: h, lambda h: h * 2, lambda h: lax.cond(h[0, 0] > 0, lambda: h, lambda: h * 2)]
)
def test_a_recurrence_that_waits_for_another(link: Callable[..., Any]) -> None:
    done, failed = compiled(two(link), "n, b, 4", "4, 4")
    assert "horizontal-recurrence.nothing-waits-for-the-first" in failed
    assert (taken(done, "recurrence"), taken(done, "horizontal-recurrence")) == (2, 0)


def test_a_function_that_is_called_twice_stays_as_it_is() -> None:
    text = """
      func.func private @r(%x: tensor<4xf32>) -> tensor<4xf32>
          attributes {disc.fusion = #disc.fusion<"recurrence", {}>} {
        return %x : tensor<4xf32>
      }
      func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
        %0 = call @r(%x) : (tensor<4xf32>) -> tensor<4xf32>
        %1 = call @r(%y) : (tensor<4xf32>) -> tensor<4xf32>
        return %0, %1 : tensor<4xf32>, tensor<4xf32>
      }"""
    decisions = Decisions()
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        merge_recurrences(module, decisions)
        assert str(module).count("call @r(") == 2
    assert decisions.taken == 0


# ---- products that leave a loop -------------------------------------------------------------------------------------


def summed(product: Callable[..., Any], trip: Callable[..., Any] = lambda n: n) -> Function:
    """The sum of what `product` makes of the iteration's rows, the sum, the places and the arguments."""

    def run(x: jax.Array, y: jax.Array, w: jax.Array) -> Any:
        n = x.shape[0]
        first = jnp.zeros_like(product(row(x, 0), row(y, 0), w, 0.0, jnp.int32(0), x, y, n))
        step = lambda i, h: h + product(row(x, i), row(y, i), w, h, i, x, y, n)  # noqa: E731
        return lax.fori_loop(0, trip(n), step, first)

    return run


def carried_rows(x: jax.Array, y: jax.Array, w: jax.Array) -> Any:
    step = lambda i, c: (c[0] * 2 + row(y, i), c[1] + row(c[0], i) @ w)  # noqa: E731
    return lax.fori_loop(0, x.shape[0], step, (x, zeros(x.shape[1], 4)))


def batched(x: jax.Array, y: jax.Array, w: jax.Array) -> Any:
    weights = jnp.broadcast_to(w, (x.shape[1], 4, 4)) + y[0][:, None]
    step = lambda i, h: jnp.tanh(h + jnp.einsum("bi,bij->bj", row(x, i), weights))  # noqa: E731
    return lax.fori_loop(0, x.shape[0], step, zeros(x.shape[1], 4))


def one_factor_from_outside(x: jax.Array, y: jax.Array, w: jax.Array) -> Any:
    rows = jnp.tanh(y[0])
    return lax.fori_loop(0, x.shape[0], lambda i, m: m + row(x, i).T @ rows, w)


UNSTACKED: list[tuple[str, Function]] = [
    ("weights-are-from-outside", summed(lambda a, b, w, h, i, x, y, n: a @ (w * i))),
    ("has-no-batch", batched),
    ("carried-values-are-not-multiplied", summed(lambda a, b, w, h, i, x, y, n: (a * h) @ w)),
    ("steps-can-be-stacked", summed(lambda a, b, w, h, i, x, y, n: (a + lax.cumsum(a, 1)) @ w)),
    ("scans-what-is-outside", carried_rows),
    ("slices-are-rows", summed(lambda a, b, w, h, i, x, y, n: row(x, i + 1) @ w, trip=lambda n: n - 1)),
    ("slices-are-at-one-place", summed(lambda a, b, w, h, i, x, y, n: (a + row(y, n - 1 - i)) @ w)),
]


@pytest.mark.parametrize(("condition", "function"), UNSTACKED)
def test_products_that_are_not_computed_for_all_iterations(condition: str, function: Function) -> None:
    done, failed = compiled(function, "n, 3, 4", "n, 3, 4", "4, 4")
    assert f"hoist-scanned-product.{condition}" in failed
    assert taken(done, "hoist-scanned-product") == 0


def test_a_product_that_is_computed_for_all_iterations() -> None:
    function = summed(lambda a, b, w, h, i, x, y, n: jnp.tanh(a + b * 2) @ w)
    assert taken(compiled(function, "n, b, 4", "n, b, 4", "4, 4")[0], "hoist-scanned-product") == 1
    assert taken(compiled(function, "n, b, 4", "n, b, 4", "4, 4", max_fusions=0)[0], "hoist-scanned-product") == 0


def watched(x: jax.Array, y: jax.Array, w: jax.Array) -> Any:
    def step(i: jax.Array, carried: Any) -> Any:
        m = carried[0] + row(x, i).T @ row(y, i)
        return m, jnp.maximum(carried[1], jnp.max(m))

    return lax.fori_loop(0, x.shape[0], step, (w, jnp.float32(0)))


def shared_product(x: jax.Array, y: jax.Array, w: jax.Array) -> Any:
    def step(i: jax.Array, carried: Any) -> Any:
        product = row(x, i).T @ row(y, i)
        return carried[0] + product, carried[1] * 2 + product

    return lax.fori_loop(0, x.shape[0], step, (w, w))


def integers(x: jax.Array, y: jax.Array, w: jax.Array) -> Any:
    left, right = x.astype(jnp.int32), y.astype(jnp.int32)
    step = lambda i, m: m + row(left, i).T @ (row(right, i) * 2)  # noqa: E731
    return lax.fori_loop(0, x.shape[0], step, w.astype(jnp.int32))


KEPT_SUMS: list[tuple[str, Function]] = [
    ("sum-is-read-at-the-end", watched),
    ("product-is-read-by-the-sum", shared_product),
    ("types-are-those-of-the-sum", integers),
    ("has-no-batch", summed(lambda a, b, w, h, i, x, y, n: jnp.einsum("bi,bj->bij", a, jnp.tanh(b)))),
    ("factors-are-made-inside", one_factor_from_outside),
    ("a-factor-is-at-hand", summed(lambda a, b, w, h, i, x, y, n: row(x, i // 2).T @ jnp.tanh(b))),
    ("a-factor-is-at-hand", summed(lambda a, b, w, h, i, x, y, n: a.T @ jnp.tanh(b), trip=lambda n: n - 1)),
    ("a-factor-is-at-hand", summed(lambda a, b, w, h, i, x, y, n: row(x, jnp.clip(i, 1, 2)).T @ jnp.tanh(b))),
]


@pytest.mark.parametrize(("condition", "function"), KEPT_SUMS)
def test_sums_that_stay_in_their_loop(condition: str, function: Function) -> None:
    done, failed = compiled(function, "n, 3, 4", "n, 3, 4", "4, 4")
    assert f"hoist-accumulated-product.{condition}" in failed
    assert taken(done, "hoist-accumulated-product") == 0


@pytest.mark.parametrize("place", [lambda i, n: i, lambda i, n: n - 1 - i])
def test_sums_that_leave_their_loop(place: Callable[..., Any]) -> None:
    shape = "n, b, 4"
    function = summed(lambda a, b, w, h, i, x, y, n: row(x, place(i, n)).T @ jnp.tanh(b))
    assert taken(compiled(function, shape, shape, "4, 4")[0], "hoist-accumulated-product") == 1
    assert taken(compiled(function, shape, shape, "4, 4", max_fusions=0)[0], "hoist-accumulated-product") == 0


# ---- weights and invariants -----------------------------------------------------------------------------------------

WEIGHTS: list[tuple[str, Function]] = [
    ("matrix-is-from-outside", scan(lambda h, w: h @ (h.T @ h + w).T)),
    ("multiplies-rows-by-rows", scan(lambda h, w: h @ w)),
]


@pytest.mark.parametrize(("condition", "function"), WEIGHTS)
def test_weights_that_are_not_turned(condition: str, function: Function) -> None:
    done, failed = compiled(function, "n, b, 4", "4, 4")
    assert f"pre-transpose-weights.{condition}" in failed
    assert taken(done, "pre-transpose-weights") == 0


def test_weights_that_are_turned() -> None:
    assert taken(compiled(scan(lambda h, w: h @ w.T), "n, b, 4", "4, 4")[0], "pre-transpose-weights") == 1


def invariant(value: Callable[..., Any]) -> Function:
    def run(x: jax.Array, w: jax.Array) -> Any:
        return lax.fori_loop(0, x.shape[0], lambda i, h: jnp.tanh(h + value(w, h, i)), w)

    return run


def doubled(w: jax.Array, times: jax.Array) -> Any:
    return lax.fori_loop(0, times, lambda j, c: c * 2, w)


INVARIANTS: list[tuple[str, Function]] = [
    ("reads-nothing-that-varies", invariant(lambda w, h, i: w @ h)),
    ("runs-straight", invariant(lambda w, h, i: doubled(w, w[0, 0].astype(jnp.int32)) @ w)),
]


@pytest.mark.parametrize(("condition", "function"), INVARIANTS)
def test_what_stays_in_a_loop(condition: str, function: Function) -> None:
    done, failed = compiled(function, "n, b, 4", "4, 4")
    assert f"hoist-invariant.{condition}" in failed
    assert taken(done, "hoist-invariant") == 0


def test_what_leaves_a_loop() -> None:
    function = invariant(lambda w, h, i: (w * 2) @ w)
    assert taken(compiled(function, "n, b, 4", "4, 4")[0], "hoist-invariant") == 1
    assert taken(compiled(function, "n, b, 4", "4, 4", max_fusions=0)[0], "hoist-invariant") == 0


def test_what_reads_the_first_of_perhaps_no_rows_stays_in_a_loop() -> None:
    def first_row_again(x: jax.Array) -> Any:
        rows = sizes.boolean_index(x, x[:, 0] > 0)
        return lax.fori_loop(0, rows.shape[0], lambda i, c: c + rows[0] @ jnp.ones((3, 3)), zeros(3))

    stage = import_stage(first_row_again, "cpu", Options(), (("b, 3", "float32"),))
    assert taken(run_pipeline(stage, last="simplify"), "hoist-invariant") == 0


@pytest.mark.parametrize("has_effect", [False, True])
def test_a_call_with_side_effects_stays_in_its_loop(has_effect: bool) -> None:
    text = f"""
      func.func public @main(%w: tensor<4x4xf32>, %n: tensor<i32>) -> tensor<4x4xf32> {{
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %0:2 = stablehlo.while(%i = %zero, %h = %w) : tensor<i32>, tensor<4x4xf32> cond {{
          %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }} do {{
          %a = stablehlo.custom_call @f(%w) {{has_side_effect = {str(has_effect).lower()}}}
             : (tensor<4x4xf32>) -> tensor<4x4xf32>
          %b = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
             : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
          %d = stablehlo.add %h, %b : tensor<4x4xf32>
          %j = stablehlo.add %i, %one : tensor<i32>
          stablehlo.return %j, %d : tensor<i32>, tensor<4x4xf32>
        }}
        return %0#1 : tensor<4x4xf32>
      }}"""
    decisions = Decisions()
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        hoist_invariants(entry_block(module), Facts(), decisions)
        assert decisions.taken == 1 - has_effect
        assert ("custom_call" in str(module).split("stablehlo.while")[0]) != has_effect
