# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by tensor cores in the emulator: sizes around tiles, scores that are hard to subtract, and whole pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from shlo_disc.lowering_gpu import tensor_softmax, whole_pieces
from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_cases import Run
from tests.ir.gpu_emulator import Emulator
from tests.ir.test_gpu_attention import kernels_of, mixed, plain, scores, sizes
from tests.ir.test_gpu_causal_masks import SHIFTS, hidden_by
from tests.ir.test_gpu_epilogues import Texts, check, device_module, lowered

DEPTH = 8
"""Elements of a head whose rows are aligned, so that copies are asynchronous, and whole pieces have a loop."""

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def arguments_of(dtype: str, *more: tuple[str, str]) -> Texts:
    keys = (f"b, k, {DEPTH}", dtype)
    return ((f"b, q, {DEPTH}", dtype), keys, keys, *more)


@pytest.mark.parametrize("keys", [1, 63, 64, 65, 127, 128, 129])
@pytest.mark.parametrize("queries", [1, 127, 128, 129])
def test_sizes_around_tiles(queries: int, keys: int) -> None:
    check(plain, arguments_of("bfloat16"), {"b": 2, "q": queries, "k": keys}, tolerance=5e-2)


@pytest.mark.parametrize("keys", [0, 1, 63, 64, 65, 127, 128, 129, 193])
@pytest.mark.parametrize("queries", [1, 128, 130])
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.slow
def test_causal_sizes_around_tiles(shift: str, queries: int, keys: int) -> None:
    """More keys than queries, and fewer; the diagonal on and beside the edges of pieces."""
    function = hidden_by(-1e9, SHIFTS[shift])
    check(function, arguments_of("bfloat16"), {"b": 1, "q": queries, "k": keys}, tolerance=5e-2)


@pytest.mark.parametrize("depth", [7, 8, 40, 48, 64, 72, 80, 128])
def test_bodies_of_several_pieces(depth: int) -> None:
    """Aligned and not, with queries in shared memory and in registers."""
    arguments = tuple((f"b, {size}, {depth}", "bfloat16") for size in "qkk")
    check(hidden_by(-np.inf, SHIFTS["cache"]), arguments, *sizes((1, 130, 195), (2, 3, 130)), tolerance=5e-2)


# ---- scores that are hard to subtract -------------------------------------------------------------------------------

EVERYWHERE = slice(None)

Changes = dict[str, list[tuple[int | slice, float]]]


def rows_around(near: float) -> Changes:
    """Rows of zeros with some other scores, of which some are about as large as a number."""
    return {
        "all equal": [],
        "one huge": [(100, 3e38)],
        "one huge, and first": [(0, 3e38), (70, 1e38)],
        "all huge and equal": [(EVERYWHERE, 1e30)],
        "all huge and negative": [(EVERYWHERE, -3e38)],
        "nothing": [(EVERYWHERE, -np.inf)],
        "one at the end": [(EVERYWHERE, -np.inf), (191, -5.0)],
        "none in the second piece": [(slice(64, 128), -np.inf)],
        "NaN in the third piece": [(150, np.nan)],
        "infinite": [(70, np.inf)],
        "near, then far": [(3, near - 0.5), (5, near - 2), (70, near + 0.5), (140, near + 1)],
        "far, then near": [(EVERYWHERE, -near - 2), (3, -near - 1), (70, -near + 0.5), (140, -near + 1)],
        "far": [(3, near * 8), (70, near * 8 + 1), (140, near * 8 + 2)],
        "at the edge": [(3, near), (70, near + 0.0625), (140, near - 0.0625)],
        "almost near": [(3, near - 0.75), (70, near - 0.5), (140, near - 0.25)],
        "small steps": [(3, 1.0), (70, 1.5), (140, 2.0)],
        "far below": [(3, 40.0), (70, 20.0), (140, -60.0)],
    }


ROWS = list(rows_around(0))


def given_scores(q: Any, k: Any, v: Any, bias: Any) -> Any:
    """Attention whose queries and keys are zeros: all that is subtracted from is f32, and given."""
    return mixed(jax.nn.softmax(scores(q, k).astype(jnp.float32) + bias).astype(v.dtype), v)


PLACES = [[i, 32 + i // 8 * 16 + i % 8] for i in range(len(ROWS))]
"""The rows of each of ROWS: one where the lane's other row, eight apart, is another of them, one where it is zeros."""

COUNT = 80


def biases(near: float) -> np.ndarray:
    """Rows of 192 scores."""
    found = np.zeros((1, COUNT, 192), np.float32)
    for rows, changes in zip(PLACES, rows_around(near).values(), strict=True):
        for place, number in changes:
            for row in rows:
                found[0, row, place] = number
    return found


def softmax_of(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)


def found_for(dtype: str, scale: float, near: float) -> tuple[np.ndarray, np.ndarray]:
    """Results for the rows, and those in f64. Values are positive: none is lost in a sum of others."""
    bias = biases(near)
    q, k = (np.zeros((1, n, DEPTH), DTYPES[dtype]) for n in (COUNT, 192))
    v = np.random.default_rng(0).uniform(1, 2, (1, 192, DEPTH))
    v[0, [3, 70, 140]] = [[1], [2], [1]]
    v = (v * scale).astype(DTYPES[dtype])
    expected = softmax_of(bias) @ v.astype(np.float64)
    c = lowered(given_scores, *arguments_of(dtype, ("b, q, k", "float32")))
    assert kernels_of(given_scores, arguments_of(dtype, ("b, q, k", "float32"))) == ["attention"]
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(str(device_module(c.module))))
        (found,) = Run(c, {"b": 1, "q": COUNT, "k": 192}, machine)([q, k, v, bias])
    return np.asarray(found).astype(np.float64).reshape(expected.shape), expected


def wrong_rows(dtype: str, scale: float = 1.0, near: float = tensor_softmax.NEAR) -> list[str]:
    found, expected = found_for(dtype, scale, near)
    limit = 4 * float(ml_dtypes.finfo(DTYPES[dtype]).eps)
    is_right = np.isclose(found, expected, rtol=limit, atol=0, equal_nan=True).all((0, 2))
    return [name for name, rows in zip(ROWS, PLACES, strict=True) if not is_right[rows].all()]


@pytest.mark.parametrize(
    ("dtype", "scale"), [("float16", 1.0), ("float16", 3e4), ("bfloat16", 1.0), ("bfloat16", 1.6e38)]
)
def test_scores_that_are_hard_to_subtract(dtype: str, scale: float) -> None:
    """Values up to the largest ones: sums of them would overflow without weights that are made smaller."""
    assert wrong_rows(dtype, scale) == []


def test_both_ways_of_subtracting_are_right_and_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_softmax, "NEAR", 0.0)
    assert wrong_rows("bfloat16") == []
    monkeypatch.setattr(tensor_softmax, "NEAR", float("inf"))
    assert {"one huge", "all huge and equal"} <= set(wrong_rows("bfloat16"))


def test_bases_are_the_same_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that change from one way to the other need what the base was rounded by, here by up to a quarter."""
    near = 2.0**22
    monkeypatch.setattr(tensor_softmax, "NEAR", near)
    assert wrong_rows("float16", near=near) == []
    monkeypatch.setattr(tensor_softmax.TensorSoftmax, "_rest", lambda self, peak: self.room)
    assert set(wrong_rows("float16", near=near)) & {"near, then far", "far, then near", "at the edge"}


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "value"), [("float16", 6e4), ("bfloat16", 3.3e38)])
def test_many_equal_keys(dtype: str, value: float) -> None:
    """65536 keys of equal weight and values near the largest."""
    q, k = (np.zeros((1, n, DEPTH), DTYPES[dtype]) for n in (1, 1 << 16))
    v = np.full((1, 1 << 16, DEPTH), value, DTYPES[dtype])
    c = lowered(plain, *arguments_of(dtype))
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(str(device_module(c.module))))
        (found,) = Run(c, {"b": 1, "q": 1, "k": 1 << 16}, machine)([q, k, v])
    np.testing.assert_array_equal(np.asarray(found).reshape(-1, DEPTH), v[0, :1])


def test_weights_below_the_range_of_f16_count() -> None:
    """Many weights of 2^-25 of the largest add up."""
    bias = np.full((1, 1, 1024), -25 * np.log(2), np.float32)
    bias[0, 0, 0] = 0
    q, k = (np.zeros((1, n, DEPTH), np.float16) for n in (1, 1024))
    v = np.full((1, 1024, DEPTH), 4e4, np.float16)
    v[0, 0] = 0
    c = lowered(given_scores, *arguments_of("float16", ("b, q, k", "float32")))
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(str(device_module(c.module))))
        (found,) = Run(c, {"b": 1, "q": 1, "k": 1024}, machine)([q, k, v, bias])
    expected = softmax_of(bias) @ v.astype(np.float64)
    np.testing.assert_allclose(np.asarray(found).astype(np.float64).reshape(expected.shape), expected, rtol=4e-3)


# ---- whole pieces ---------------------------------------------------------------------------------------------------


def other_place(q: Any, k: Any, v: Any) -> Any:
    """A comparison like that of the causal mask, of matrices with rows, is none."""
    s = scores(q, k)
    matrix, row, column = (jax.lax.broadcasted_iota(jnp.int32, s.shape, axis) for axis in range(3))
    raised = jnp.where((column <= row) & (row <= matrix), s + 4, s)
    later = v + 4 * (jax.lax.broadcasted_iota(jnp.int32, v.shape, 1) >= 128).astype(v.dtype)
    return mixed(jax.nn.softmax(jnp.where(column <= row, raised, -jnp.inf)), later)


def negated(q: Any, k: Any, v: Any) -> Any:
    s = scores(q, k)
    row, column = (jax.lax.broadcasted_iota(jnp.int32, s.shape, axis) for axis in (1, 2))
    return mixed(jax.nn.softmax(jnp.where(column > row, -1e9, s) - 1), v)


def scaled(factor: float) -> Callable[..., Any]:
    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqd,bkd->bqk", q, k, preferred_element_type=jnp.float32) * factor
        row, column = (jax.lax.broadcasted_iota(jnp.int32, s.shape, axis) for axis in (1, 2))
        return mixed(jax.nn.softmax(jnp.where(column <= row, s, -jnp.inf)).astype(q.dtype), v)

    return function


FACTORS = (0.125, 3.0, -0.5, 0.0, 1e-30)


@pytest.mark.parametrize("function", [other_place, negated, *map(scaled, FACTORS)])
def test_masks_and_factors_of_whole_pieces(function: Callable[..., Any]) -> None:
    assert kernels_of(function, arguments_of("bfloat16")).count("attention") == 1
    check(function, arguments_of("bfloat16"), {"b": 3, "q": 200, "k": 200}, tolerance=5e-2)


def test_the_place_of_a_mask_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    def elements(self: Any, row: Any, column: Any) -> Any:
        one = ir.IntegerType.get_signless(1)
        return {v: lambda _: whole_pieces.arith.constant(one, 1) for v in self.masks}

    monkeypatch.setattr(whole_pieces.WholePieces, "elements", elements)
    with pytest.raises(AssertionError):
        test_masks_and_factors_of_whole_pieces(other_place)


@pytest.mark.parametrize("factor", FACTORS)
def test_factors_that_the_softmax_takes(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    scaled_of = whole_pieces.WholePieces.scaled
    monkeypatch.setattr(whole_pieces.WholePieces, "scaled", lambda *a: found.append(scaled_of(*a)) or found[-1])
    lowered(scaled(factor), *arguments_of("bfloat16"))
    assert {one.factor for one in found} == {factor if factor in (0.125, 3.0) else 1.0}
