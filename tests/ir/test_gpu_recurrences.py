# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrences on GPUs, one persistent kernel each, in the emulator, which looks for races and bad accesses, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from shlo_disc.lowering.launches import launches_in
from shlo_disc.lowering_gpu import recurrence_kernel
from tests.ir.test_gpu_epilogues import Texts, check, lowered
from tests.run.test_recurrences import (
    _across_rows,
    _counter_used_later,
    _flipped_rows,
    _product_of_rows,
    both_ways,
    every_other_row,
    gru,
    moved_states,
    products_in_a_row,
    three_loops,
)

F = "float32"


def kinds(function: Callable[..., Any], arguments: Texts) -> list[str]:
    c = lowered(function, *arguments)
    with c.context:
        return [launched.kind for launched in launches_in(c.module.operation)]


def sizes(*pairs: tuple[int, int]) -> list[dict[str, int]]:
    return [dict(zip("tb", pair, strict=True)) for pair in pairs]


@pytest.fixture
def few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks have several rows from a batch of 3 on."""
    monkeypatch.setattr(recurrence_kernel, "BLOCKS", 2)


def of_gates(d: int, dtype: str = F) -> Texts:
    return ((f"t, b, {3 * d}", dtype), (f"{d}, {3 * d}", dtype))


@pytest.mark.parametrize("d", [1, 5, 36])
def test_a_gru(d: int) -> None:
    assert kinds(gru, of_gates(d)) == ["recurrence"]
    check(gru, of_gates(d), *sizes((1, 1), (3, 2), (2, 13)), tolerance=1e-4)


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("dtype", [F, "float64"])
def test_blocks_of_several_rows(dtype: str) -> None:
    pairs = [(2, b) for b in (1, 2, 3, 5, 8, 9, 15, 16, 17, 33)]
    with jax.enable_x64(dtype == "float64"):
        check(gru, of_gates(5, dtype), *sizes(*pairs), tolerance=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("few_blocks")
def test_rows_that_fill_the_shared_memory() -> None:
    """Fewer rows have room together."""
    check(gru, of_gates(130), *sizes((2, 1), (1, 9)), tolerance=1e-3)


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_halves(dtype: str) -> None:
    assert kinds(gru, of_gates(6, dtype)) == ["recurrence"]
    check(gru, of_gates(6, dtype), *sizes((1, 1), (3, 5)), tolerance=5e-2)


def test_weights_whose_rows_are_multiplied() -> None:
    def f(x: jax.Array, w: jax.Array) -> Any:
        return lax.scan(lambda h, row: (jnp.tanh(row + h @ w.T), h), jnp.zeros_like(x[0]), x)

    assert kinds(f, (("t, b, 6", F), ("6, 6", F)))[-1] == "recurrence"
    check(f, (("t, b, 6", F), ("6, 6", F)), *sizes((1, 1), (4, 5)))


def test_two_ways_side_by_side() -> None:
    """Neither needs the other: blocks of one kernel."""
    arguments = (*of_gates(5), ("5, 15", F))
    assert kinds(both_ways, arguments).count("recurrence") == 1
    check(both_ways, arguments, *sizes((1, 1), (4, 3)), tolerance=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("few_blocks")
def test_three_loops_of_different_rows_and_widths() -> None:
    arguments = (("t, b, 15", F), ("s, c + 1, 24", F), ("5, 15", F), ("8, 24", F))
    assert kinds(three_loops, arguments).count("recurrence") == 1
    for t, b, s, c in ((1, 1, 3, 6), (4, 13, 2, 1), (3, 5, 7, 2)):
        check(three_loops, arguments, {"t": t, "b": b, "s": s, "c": c}, tolerance=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("few_blocks")
def test_a_step_with_products_that_follow_each_other() -> None:
    arguments = (("t, b, 20", F), ("20, 20", F), ("20, 20", F))
    assert kinds(products_in_a_row, arguments).count("recurrence") == 1
    check(products_in_a_row, arguments, *sizes((1, 1), (3, 5), (2, 17)), tolerance=1e-3)


@pytest.mark.usefixtures("few_blocks")
def test_states_that_move() -> None:
    assert kinds(moved_states, (("t, b, 6", F),)).count("recurrence") == 1
    check(moved_states, (("t, b, 6", F),), *sizes((1, 1), (4, 3), (3, 18)))


@pytest.mark.usefixtures("few_blocks")
def test_stacks_of_which_a_part_is_written() -> None:
    arguments = (("b, 5", F), ("b, 7, 5", F), ("5, 5", F))
    assert "recurrence" in kinds(every_other_row, arguments)
    check(every_other_row, arguments, *({"b": b} for b in (1, 3, 14)))


@pytest.mark.usefixtures("few_blocks")
def test_outputs_that_depend_on_no_row_and_states_of_one_number() -> None:
    def count(x: jax.Array) -> Any:
        def step(carried: Any, row: jax.Array) -> Any:
            h, one = carried
            return (h * 0.5 + row, one + row[:, 0]), (jnp.full_like(row, 3), row > 0, row[..., :1])

        return lax.scan(step, (jnp.zeros_like(x[0]), jnp.zeros_like(x[0, :, 0])), x)

    check(count, (("t, b, 3", F),), *sizes((1, 1), (4, 5), (3, 17)))


@pytest.mark.parametrize("arguments", [(("0, b, 12", F), ("4, 12", F)), (("3, 0, 12", F), ("4, 12", F))])
def test_loops_over_nothing(arguments: Texts) -> None:
    check(gru, arguments, {"b": 3})


@pytest.mark.parametrize("function", [_across_rows, _flipped_rows, _product_of_rows, _counter_used_later])
def test_rows_that_depend_on_each_other(function: Callable[..., Any]) -> None:
    assert "recurrence" not in kinds(function, (("t, b, 6", F),))


def test_weights_that_are_too_large_stay_products() -> None:
    found = kinds(gru, of_gates(256))
    assert "recurrence" not in found and "dot" in found


def test_threads_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrence_kernel.BlockRecurrence, "synchronize", lambda _: None)
    with pytest.raises(AssertionError, match="touch one element"):
        check(gru, of_gates(5), {"t": 2, "b": 2})
