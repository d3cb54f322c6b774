# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention on GPUs behind causal masks: pieces of keys that count for no row are left out, in the emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_cases import Run
from tests.ir.gpu_emulator import Emulator
from tests.ir.test_gpu_attention import DEPTH, arguments_of, failed_conditions, kernels_of, mixed, scores, sizes
from tests.ir.test_gpu_epilogues import Texts, check, device_module, lowered
from tests.run.op_check import random_array


def hidden_by(number: float, shift: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Attention in which a number stands for the scores of columns behind the row and a shift."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = scores(q, k)
        row, column = (jax.lax.broadcasted_iota(jnp.int32, s.shape, axis) for axis in (1, 2))
        return mixed(jax.nn.softmax(jnp.where(column <= row + shift(q, k), s, number)), v)

    return function


SHIFTS = {
    "none": lambda q, k: 0,
    "ahead": lambda q, k: 3,
    "behind": lambda q, k: -2,
    "cache": lambda q, k: k.shape[1] - q.shape[1],
}


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("number", [-np.inf, -1e9, -112.0, -100.0, 0.5])
def test_what_a_mask_hides_counts_where_it_does(number: float, shift: str) -> None:
    """Rows that see nothing, and numbers that the largest score is not far above."""
    function = hidden_by(number, SHIFTS[shift])
    check(function, arguments_of("float32"), *sizes((1, 66, 70), (1, 3, 131), (1, 67, 3)))


@pytest.mark.parametrize("number", [-np.inf, -1e9, -100.0])
def test_narrow_masks(number: float) -> None:
    check(
        hidden_by(number, SHIFTS["cache"]), arguments_of("bfloat16"), *sizes((1, 130, 140), (1, 3, 131)), tolerance=5e-2
    )


@pytest.mark.parametrize(("dtype", "number", "skips"), [
    ("float32", -np.inf, True), ("float32", -1e9, True), ("float32", -60.0, False), ("bfloat16", -np.inf, True),
    ("bfloat16", -1e9, True),
])  # fmt: skip
def test_hidden_pieces_are_not_computed(dtype: str, number: float, skips: bool) -> None:
    """Values that are NaN show which pieces are: those behind the tile's last row are not."""
    tile = 64 if dtype == "float32" else 128
    count = tile + 66
    q, k, v = (random_array((1, count, DEPTH), dtype, i) for i in range(3))
    v[0, tile:] = np.nan
    c = lowered(hidden_by(number, SHIFTS["none"]), *arguments_of(dtype))
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(str(device_module(c.module))))
        (found,) = Run(c, {"b": 1, "q": count, "k": count}, machine)([q, k, v])
    found = np.asarray(found).view(q.dtype).astype(np.float32).reshape(count, DEPTH)
    assert np.isnan(found[tile:]).all()
    assert np.isfinite(found[:tile]).all() == skips


def test_a_causal_mask_may_be_one_of_several() -> None:
    def function(q: Any, k: Any, v: Any, padding: Any) -> Any:
        s = scores(q, k)
        row, column = (jax.lax.broadcasted_iota(jnp.int32, s.shape, axis) for axis in (1, 2))
        return mixed(jax.nn.softmax(jnp.where((column <= row) & padding[:, None], s, -jnp.inf)), v)

    arguments = arguments_of("float32", ("b, k", "bool"))
    assert kernels_of(function, arguments) == ["attention"]
    check(function, arguments, *sizes((2, 5, 7), (1, 66, 130)))


def added(q: Any, k: Any, v: Any) -> Any:
    """Hidden elements are as large as their scores make them."""
    s = scores(q, k)
    row, column = (jax.lax.broadcasted_iota(jnp.int32, s.shape, axis) for axis in (1, 2))
    return mixed(jax.nn.softmax(s + jnp.where(column <= row, 0.0, -1e9)), v)


def of_matrices(q: Any, k: Any, v: Any) -> Any:
    """The mask counts matrices, as rows of which the scores lie."""
    s = jnp.einsum("bqd,bkd->qbk", q, k)
    row, column = (jax.lax.broadcasted_iota(jnp.int32, s.shape, axis) for axis in (1, 2))
    return jnp.einsum("qbk,bkd->qbd", jax.nn.softmax(jnp.where(column <= row, s, -jnp.inf)), v)


def wrapping(q: Any, k: Any, v: Any) -> Any:
    """Columns from 48 on are far below all rows."""
    s = scores(q, k)
    row, column = (jax.lax.broadcasted_iota(jnp.int32, s.shape, axis) for axis in (1, 2))
    far = jnp.int32((1 << 31) - 48)
    return mixed(jax.nn.softmax(jnp.where(column + far <= row + far, s, -jnp.inf)), v)


STATIC = tuple((f"{b}, {rows}, {DEPTH}", "float32") for b, rows in ((1, 10), (1, 130), (1, 130)))


@pytest.mark.parametrize(("function", "arguments", "condition"), [
    (added, arguments_of("float32"), "hidden-is-bounded"),
    (of_matrices, arguments_of("float32"), "rows-are-of-one-matrix"),
    (wrapping, STATIC, "positions-have-32-bits"),
])  # fmt: skip
def test_masks_that_hide_nothing_for_sure(function: Callable[..., Any], arguments: Texts, condition: str) -> None:
    assert kernels_of(function, arguments) == ["attention"]
    assert failed_conditions(function, arguments, "hidden-columns.") == {f"hidden-columns.{condition}"}
    check(function, arguments, *([{}] if arguments is STATIC else sizes((2, 5, 7), (1, 3, 70))))


def test_positions_that_wrap_around_at_run_time() -> None:
    assert failed_conditions(wrapping, arguments_of("float32"), "hidden-columns.") == set()
    check(wrapping, arguments_of("float32"), *sizes((1, 10, 40), (1, 10, 130)))
