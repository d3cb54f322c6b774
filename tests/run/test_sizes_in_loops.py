# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are read from data inside of loops and branches: each iteration computes as many elements as it selects.

The references are loops of NumPy, at sizes around those of vectors, with none, some and all elements selected.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
import shlo_disc.numpy as snp
from shlo_disc.errors import ShapeError, UnsupportedError
from shlo_disc.options import Options
from shlo_disc.shape_dialect.symbolic.expr import Expr

SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 31, 97, 1009, 4096)

Arrays = tuple[Any, ...]


def vector(size: int, seed: int = 0) -> np.ndarray:
    return (5 * np.random.default_rng(size + seed).standard_normal(size)).astype(np.float32)


def assert_close(got: Any, want: Any, case: object) -> None:
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (np.shape(a), a.dtype) == (np.shape(b), b.dtype), case
        np.testing.assert_allclose(a, b, rtol=3e-5, atol=2e-5, err_msg=str(case))


# ---- three programs -------------------------------------------------------------------------------------------------


def lambert(a: Any) -> Any:
    """Newton's method for x exp(x) = a, on the elements that have not converged."""

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        x, is_open, count = state
        at = snp.flatnonzero(is_open)
        rest = x[at]
        change = (rest * jnp.exp(rest) - a[at]) / ((rest + 1) * jnp.exp(rest))
        return x.at[at].add(-change), is_open.at[at].set(jnp.abs(change) > 1e-3), count + at.shape[0]

    start = jnp.log1p(a), jnp.ones(a.shape, bool), jnp.int32(0)
    return lax.while_loop(lambda state: state[1].any(), step, start)


@pytest.fixture(scope="module")
def compiled_lambert() -> shlo_disc.Executable:
    return shlo_disc.compile(lambert, args=[(("n",), "float32")])


@pytest.mark.parametrize("size", SIZES)
def test_newton_on_the_elements_that_have_not_converged(compiled_lambert: shlo_disc.Executable, size: int) -> None:
    a = np.abs(vector(size)) * np.float32(20)
    x, is_open, count = compiled_lambert(a)
    np.testing.assert_allclose(x * np.exp(x), a, rtol=1e-3, atol=1e-4)
    assert not np.any(is_open)
    assert size <= int(count) < 30 * size


def pruned(state: Any, scores: Any, weights: Any) -> Any:
    """Beams whose score is near the best one go on; the others keep their state."""

    def step(number: Any, beams: tuple[Any, Any]) -> tuple[Any, Any]:
        state, scores = beams
        at = snp.flatnonzero(scores >= scores.max() - 3)
        following = jnp.tanh(state[at] @ weights)
        return state.at[at].set(following), scores.at[at].add(jnp.round(4 * following.sum(-1)) - 1)

    return lax.fori_loop(0, 4, step, (state, scores))


def pruned_by_numpy(state: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> Any:
    state, scores = state.copy(), scores.copy()
    for _ in range(4):
        at = np.flatnonzero(scores >= scores.max() - 3)
        state[at] = np.tanh(state[at] @ weights)
        scores[at] += np.round(4 * state[at].sum(-1)) - 1
    return state, scores


@pytest.fixture(scope="module")
def compiled_pruned() -> shlo_disc.Executable:
    args = [(("n", 8), "float32"), (("n",), "float32"), ((8, 8), "float32")]
    return shlo_disc.compile(pruned, args=args)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spread", [0, 2, 1000], ids=["all", "some", "few"])
def test_beams_near_the_best_one(compiled_pruned: shlo_disc.Executable, size: int, spread: int) -> None:
    random = np.random.default_rng(size)
    state, weights = (random.integers(-2, 3, s).astype(np.float32) / 4 for s in ((size, 8), (8, 8)))
    scores = np.round(vector(size) * spread).astype(np.float32)
    assert_close(compiled_pruned(state, scores, weights), pruned_by_numpy(state, scores, weights), (size, spread))


def depths(sources: Any, targets: Any, marks: Any) -> Any:
    """Depths of the vertices from those whose mark is 0; each iteration follows the edges that leave the frontier."""

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        depth, level = state
        edges = snp.flatnonzero(depth[sources] == level)
        return depth.at[targets[edges]].min(level + 1), level + 1

    return lax.while_loop(lambda state: (state[0] == state[1]).any(), step, (marks, jnp.int32(0)))


def depths_by_numpy(sources: np.ndarray, targets: np.ndarray, marks: np.ndarray) -> Any:
    depth, level = marks.copy(), 0
    while (depth == level).any():
        np.minimum.at(depth, targets[depth[sources] == level], level + 1)
        level += 1
    return depth, np.int32(level)


@pytest.fixture(scope="module")
def compiled_depths() -> shlo_disc.Executable:
    return shlo_disc.compile(depths, args=[(("e",), "int32"), (("e",), "int32"), (("v",), "int32")])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("starts", [0, 1, 5])
def test_breadth_first_search(compiled_depths: shlo_disc.Executable, size: int, starts: int) -> None:
    random = np.random.default_rng(size)
    edges = random.integers(0, size, (2, 2 * size)).astype(np.int32)
    marks = np.full(size, 1 << 20, np.int32)
    marks[:starts] = 0
    assert_close(compiled_depths(*edges, marks), depths_by_numpy(*edges, marks), (size, starts))


# ---- forms of loops and branches ------------------------------------------------------------------------------------


def scanned(x: Any, thresholds: Any) -> Any:
    """A branch in a scan, each with a selection; the sizes are results, one for each iteration."""

    def halved(v: Any, threshold: Any) -> Any:
        at = snp.flatnonzero(v > threshold)
        return v.at[at].set(v[at] * 0.5 + at.shape[0])

    def step(v: Any, threshold: Any) -> Any:
        v = lax.cond(v.sum() > 0, halved, lambda v, _: v, v, threshold)
        at = snp.flatnonzero(v > threshold)
        return v.at[at].set(jnp.sin(v[at])), at.shape[0] * jnp.ones((), jnp.int32)

    return lax.scan(step, x, thresholds)


def scanned_by_numpy(x: np.ndarray, thresholds: np.ndarray) -> Any:
    x, counts = x.copy(), []
    for threshold in thresholds:
        if x.sum() > 0:
            at = np.flatnonzero(x > threshold)
            x[at] = x[at] * np.float32(0.5) + np.float32(len(at))
        at = np.flatnonzero(x > threshold)
        x[at] = np.sin(x[at])
        counts.append(len(at))
    return x, np.array(counts, np.int32)


def nested(x: Any) -> Any:
    """A loop in a loop, selections of selections, and a size that is read where it is data."""

    def inner(number: Any, part: Any) -> Any:
        above = snp.flatnonzero(part > number)
        at = above[snp.flatnonzero(part[above] < 6)]
        return part.at[at].add(-1.0 * at.shape[0] / (part.shape[0] + above.shape[0]))

    def outer(number: Any, x: Any) -> Any:
        at = snp.flatnonzero(x > 0)
        return x.at[at].set(lax.fori_loop(0, 3, inner, x[at])) - 1

    return lax.fori_loop(0, 3, outer, x)


def nested_by_numpy(x: np.ndarray) -> Any:
    x = x.copy()
    for _ in range(3):
        at = np.flatnonzero(x > 0)
        part = x[at]
        for number in range(3):
            above = np.flatnonzero(part > number)
            chosen = above[np.flatnonzero(part[above] < 6)]
            part[chosen] += np.float32(-len(chosen) / max(1, len(part) + len(above)))
        x[at] = part
        x -= 1
    return x


def until_few(x: Any) -> Any:
    """A condition that selects, and a body that does."""

    def shrunk(v: Any) -> Any:
        at = snp.flatnonzero(v > 1)
        return v.at[at].multiply(0.75)

    return lax.while_loop(lambda v: snp.flatnonzero(v > 1).sum() > 3, shrunk, x)


def until_few_by_numpy(x: np.ndarray) -> Any:
    x = x.copy()
    while np.flatnonzero(x > 1).sum() > 3:
        x[x > 1] *= np.float32(0.75)
    return x


def counted(x: Any) -> Any:
    """As many iterations as there are positive elements, which become fewer."""

    def goes_on(state: tuple[Any, Any]) -> Any:
        return state[0] < snp.flatnonzero(state[1] > 0).shape[0]

    return lax.while_loop(goes_on, lambda state: (state[0] + 1, state[1] - 0.5), (0, x))


def counted_by_numpy(x: np.ndarray) -> Any:
    number = 0
    while number < len(np.flatnonzero(x > 0)):
        number, x = number + 1, x - np.float32(0.5)
    return np.int32(number), x


def counts(x: Any) -> Any:
    """Sizes of selections whose positions are not read, by something that is carried for that alone."""

    def step(number: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        total, threshold = state
        at = snp.flatnonzero(x > threshold + number)
        return total * 2 + jnp.arange(at.shape[0]).sum(), threshold * 0.5

    return lax.fori_loop(0, 4, step, (jnp.int32(0), x[0]))[0]


def counts_by_numpy(x: np.ndarray) -> Any:
    total, threshold = 0, x[0]
    for number in range(4):
        total = total * 2 + sum(range(len(np.flatnonzero(x > threshold + np.float32(number)))))
        threshold = threshold * np.float32(0.5)
    return np.int32(total)


def distinct(x: Any) -> Any:
    """Other functions of such sizes, and reductions, scans, sorts and products of what they return."""

    def step(number: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        x, total = state
        kept = snp.unique(jnp.round(x))
        kept = snp.boolean_index(kept, kept > -2)
        products = jax.nn.softmax(kept) * jnp.cumsum(kept)
        return x - 1, total + products.sum() + kept.shape[0] + jnp.sort(kept)[::-1] @ kept

    return lax.fori_loop(0, 3, step, (x, jnp.float32(0)))


def distinct_by_numpy(x: np.ndarray) -> Any:
    total = np.float32(0)
    for _ in range(3):
        kept = np.unique(np.round(x))
        kept = kept[kept > -2]
        weights = np.exp(kept - kept.max(initial=-np.inf))
        products = weights / weights.sum() * np.cumsum(kept)
        total = total + products.sum() + np.float32(len(kept)) + np.sort(kept)[::-1] @ kept
        x = x - np.float32(1)
    return x, np.float32(total)


def between(x: Any) -> Any:
    """Sizes from data before, in and after a loop."""
    kept = snp.boolean_index(x, x > 0)

    def step(number: Any, kept: Any) -> Any:
        at = snp.flatnonzero(kept > number)
        return kept.at[at].multiply(0.5)

    kept = lax.fori_loop(0, 3, step, kept)
    return kept, snp.boolean_index(kept, kept > 0.3)


def between_by_numpy(x: np.ndarray) -> Any:
    kept = x[x > 0]
    for number in range(3):
        kept[kept > number] *= np.float32(0.5)
    return kept, kept[kept > np.float32(0.3)]


FORMS = [
    (until_few, until_few_by_numpy),
    (nested, nested_by_numpy),
    (counted, counted_by_numpy),
    (counts, counts_by_numpy),
    (distinct, distinct_by_numpy),
    (between, between_by_numpy),
]


@pytest.mark.parametrize(("function", "reference"), FORMS, ids=[f.__name__ for f, _ in FORMS])
def test_forms_of_loops(function: Callable[..., Any], reference: Callable[..., Any]) -> None:
    run = shlo_disc.compile(function, args=[(("n",), "float32")])
    for size in SIZES:
        for shift in (0, -100, 3):
            x = vector(size) + np.float32(shift)
            assert_close(run(x), reference(x), (size, shift))


@pytest.mark.parametrize("options", [{}, {"max_fusions": 0, "reuse": False}, {"guard_pages": True}], ids=str)
def test_a_branch_in_a_scan(options: dict[str, Any]) -> None:
    args = [(("n",), "float32"), (("k",), "float32")]
    run = shlo_disc.compile(scanned, args=args, options=Options(**options))
    for size in SIZES:
        for thresholds in ([0], [1, 0, -1], [100, -100, 0.5]):
            given = vector(size), np.array(thresholds, np.float32)
            assert_close(run(*given), scanned_by_numpy(*given), (size, thresholds))


# ---- the ways to a program ------------------------------------------------------------------------------------------


def totals(x: Any) -> Any:
    def step(number: Any, total: Any) -> Any:
        at = snp.flatnonzero(x > number)
        return total + at.sum() + at.shape[0]

    return lax.fori_loop(0, 3, step, jnp.zeros((), jnp.int32))


def test_a_compiled_function_an_artifact_and_sizes_of_zero(tmp_path: Path) -> None:
    compiled = shlo_disc.compile(totals, args=[(("n - 1",), "float32")])
    compiled.save(tmp_path / "totals.disc")
    loaded = shlo_disc.load(tmp_path / "totals.disc", trust=True)
    jitted = shlo_disc.jit(totals, dynamic=("n - 1",))
    for size in (0, 1, 5, 64):
        x = vector(size)
        want = np.int32(sum((np.flatnonzero(x > number) + 1).sum() for number in range(3)))
        for call in (compiled, loaded, jitted):
            assert_close(call(x), want, size)
    assert jitted.compile_count == 1


def masked(x: Any, thresholds: Any, select: bool) -> Any:
    """A sum of squares after steps on the elements above a threshold, selected or by a mask."""

    @jax.checkpoint
    def step(x: Any, threshold: Any) -> Any:
        if not select:
            return jnp.where(x > threshold, x * jnp.cos(x), x), None
        at = snp.flatnonzero(x > threshold)
        return x.at[at].set(x[at] * jnp.cos(x[at])), None

    return (lax.scan(step, x, thresholds)[0] ** 2).sum()


def test_gradients_through_a_scan_whose_body_is_a_checkpoint() -> None:
    args = [(("n",), "float32"), (("k",), "float32")]
    run = shlo_disc.compile(jax.value_and_grad(functools.partial(masked, select=True)), args=args)
    reference = jax.jit(jax.value_and_grad(functools.partial(masked, select=False)))
    for size in (1, 7, 8, 9, 31, 500):
        for count in (1, 3):
            given = vector(size) / 5, np.linspace(-0.5, 0.5, count).astype(np.float32)
            assert_close(run(*given), reference(*given), (size, count))


def test_memory_is_that_of_everything_selected(compiled_pruned: shlo_disc.Executable) -> None:
    formula = Expr.parse(compiled_pruned.peak_memory_formula)
    assert formula.symbols() == {"n"}
    for size in (5, 96):
        given = np.zeros((size, 8), np.float32), vector(size), np.eye(8, dtype=np.float32)
        assert compiled_pruned.measure_peak_memory(*given) == formula.evaluate({"n": size})
    assert "segments" not in compiled_pruned.artifact.header


# ---- what is refused ------------------------------------------------------------------------------------------------


def looped(step: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: lax.fori_loop(0, 3, step, x)


def first(number: Any, x: Any) -> Any:
    return x - x[snp.flatnonzero(x > number)][0]


def guarded(number: Any, x: Any) -> Any:
    kept = snp.boolean_index(x, x > number)
    return x - lax.cond(jnp.asarray(kept.shape[0]) > 0, lambda: kept[0], lambda: jnp.float32(1))


def stacked(x: Any) -> Any:
    return lax.scan(lambda c, t: (c, snp.boolean_index(x, x > t)), 0, jnp.arange(3.0))[1]


def saved(x: Any) -> Any:
    def step(x: Any, threshold: Any) -> Any:
        at = snp.flatnonzero(x > threshold)
        return x.at[at].set(jnp.sin(x[at])), None

    return jax.grad(lambda x: lax.scan(step, x, jnp.arange(3.0))[0].sum())(x)


def dropped(x: Any) -> Any:
    @jax.checkpoint
    def step(x: Any, threshold: Any) -> Any:
        return jnp.sin(x) * snp.flatnonzero(x > threshold).shape[0], None

    return jax.grad(lambda x: lax.scan(step, x, jnp.arange(3.0))[0].sum())(x)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (looped(first), r"dynamic_slice at .*test_sizes_in_loops.py:\d+: it needs .*n0 - 1.*jnp.asarray"),
        (stacked, r"while at .*test_sizes_in_loops.py:\d+: .* used outside of it; scatter the elements"),
        (saved, r"at .*test_sizes_in_loops.py:\d+: .* used outside of it; .*jax.checkpoint"),
        (
            dropped,
            r"at .*test_sizes_in_loops.py:\d+: .*has dropped the selection; use the sum of the mask",
        ),
    ],
    ids=["first", "stacked", "saved", "dropped"],
)
def test_refused_with_the_line_and_the_reason(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        shlo_disc.compile(function, args=[(("n",), "float32")])


def test_a_size_of_at_least_one_in_a_branch_on_it() -> None:
    run = shlo_disc.compile(looped(guarded), args=[(("n",), "float32")])
    for size in SIZES:
        x = want = vector(size)
        for number in range(3):
            kept = want[want > number]
            want = want - (kept[0] if len(kept) else np.float32(1))
        assert_close(run(x), want, size)


def test_a_size_that_no_mask_counts_is_refused() -> None:
    text = """func.func @main(%n: tensor<i32>) -> tensor<f32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %f = stablehlo.constant dense<0.0> : tensor<f32>
      %p = stablehlo.compare GT, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %r = "stablehlo.if"(%p) ({
        %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
        %i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
        %t = stablehlo.reduce(%i init: %f) applies stablehlo.add across dimensions = [0]
          : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
        stablehlo.return %t : tensor<f32>
      }, {
        stablehlo.return %f : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      return %r : tensor<f32> }"""
    with pytest.raises(UnsupportedError, match="dynamic_iota at line 7: its size depends on the elements"):
        shlo_disc.compile(text)


def test_sizes_whose_bytes_do_not_fit_are_refused_before_the_loop() -> None:
    def wide(x: Any) -> Any:
        def step(number: Any, total: Any) -> Any:
            at = snp.flatnonzero(x > number)
            return total + jnp.zeros((at.shape[0], *3 * x.shape), jnp.float32).sum()

        return lax.fori_loop(0, 2, step, jnp.float32(0))

    run = shlo_disc.compile(wide, args=[(("n",), "float32")])
    with pytest.raises(ShapeError):
        run.out_shape(n=1 << 20)
