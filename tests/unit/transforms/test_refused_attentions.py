# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refused attentions, and work that an attention does not do itself: for each condition a program in which it fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from shlo_disc.lowering_cpu.backend import CpuBackend
from shlo_disc.lowering_cpu.policy import CPU_POLICY
from tests.unit.transforms.test_loop_patterns import Function, compiled, taken

CAUSAL = "causal = {"

QKV = ("q, 8", "k, 8", "k, 8")


def attend(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    return jax.nn.softmax(query @ key.T) @ value


def scores_outside(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    scores = query @ key.T
    return lax.cond(query[0, 0] > 0, lambda: jax.nn.softmax(scores) @ value, lambda: query)


def many_axes(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    scores = jnp.einsum("abcdeqx,abcdekx->abcdeqk", query, key)
    return jnp.einsum("abcdeqk,abcdekx->abcdeqx", jax.nn.softmax(scores), value)


def two_results(query: jax.Array, key: jax.Array, value: jax.Array) -> Any:
    scores = query @ key.T
    return jax.nn.softmax(scores) @ value, scores.max(1)


def other_rows(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    scores = jnp.einsum("qhx,kx->qhk", query, key)
    weights = jax.nn.softmax(jnp.reshape(scores, (-1, 3, scores.shape[2])))
    return jnp.einsum("phk,kx->phx", weights, value)


def rows_in_another_order(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    return jax.nn.softmax(jnp.flip(query @ key.T, 0)) @ value


@pytest.mark.parametrize(
    ("condition", "function", "shapes"),
    [
        ("attention.row-kernel-has-one-result", two_results, QKV),
        ("attention.weights-are-as-large", other_rows, ("q, 6, 8", "k, 8", "k, 8")),
        ("attention.weights-are-in-step", rows_in_another_order, QKV),
        ("attention.calls-are-in-one-block", scores_outside, QKV),
        ("attention.row-axes-are-few", many_axes, ("a, 2, c, 2, e, q, 2", *["a, 2, c, 2, e, k, 2"] * 2)),
    ],
)
def test_what_is_no_attention(condition: str, function: Function, shapes: tuple[str, ...]) -> None:
    done, failed = compiled(function, *shapes)
    assert {name for name in failed if name.startswith("attention.")} == {condition}
    assert taken(done, "attention") == 0


def test_a_row_kernel_of_too_many_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert taken(compiled(attend, *QKV)[0], "attention") == 1
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, attention_row_sizes=1))
    done, failed = compiled(attend, *QKV)
    assert "attention.row-sizes-are-few" in failed
    assert taken(done, "attention") == 0


def masked(offset: int, beyond: int = 0) -> Function:
    def run(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        scores = query @ jnp.tanh(key).T
        row, column = (lax.broadcasted_iota(jnp.int32, scores.shape, axis) for axis in (0, 1))
        mask = column + np.int32(beyond) <= row + np.int32(beyond + offset)
        return jax.nn.softmax(jnp.where(mask, scores, np.float32(-1e9))) @ jnp.tanh(value)

    return run


@pytest.mark.parametrize(
    ("condition", "function", "shapes"),
    [
        ("causal-bound.first-row-sees-a-column", masked(-1), QKV),
        ("causal-bound.positions-have-32-bits", masked(0, 2**31 - 9), ("20, 8", "40, 8", "40, 8")),
    ],
)
def test_what_is_no_causal_mask(condition: str, function: Function, shapes: tuple[str, ...]) -> None:
    assert CAUSAL in str(compiled(masked(0), *shapes)[0].module)
    done, failed = compiled(function, *shapes)
    assert condition in failed
    assert taken(done, "attention") == 1
    assert CAUSAL not in str(done.module)


def test_moved_positions_are_not_computed_again() -> None:
    def run(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        scores = jnp.einsum("bhqd,bhkd->bhqk", query, key)
        row, column = (lax.broadcasted_iota(jnp.float32, scores.shape[2:], axis) for axis in (0, 1))
        bias = jnp.roll(row * 0.5 - column, 1, 1)
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores + bias), value)

    done, failed = compiled(run, "b, h, q, 8", *["b, h, k, 8"] * 2)
    assert "rematerialize-generator.ops-compute-in-place" in failed
    assert taken(done, "attention") == 1


def sums_of(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """The context before it is rounded."""
    query, key, value = (v.astype(jnp.bfloat16) for v in (query, key, value))
    weights = jax.nn.softmax(jnp.einsum("qd,kd->qk", query, key))
    return jnp.einsum("qk,ke->qe", weights, value, preferred_element_type=jnp.float32)


def rounded_and_not(query: jax.Array, key: jax.Array, value: jax.Array) -> Any:
    sums = sums_of(query, key, value)
    return sums.sum(0), sums.astype(jnp.bfloat16)


def rounded_in_a_branch(query: jax.Array, key: jax.Array, value: jax.Array) -> Any:
    sums = sums_of(query, key, value)
    narrow = query.astype(jnp.bfloat16)
    return lax.cond(query[0, 0] > 0, lambda: sums.astype(jnp.bfloat16), lambda: narrow)


def rounded_otherwise(query: jax.Array, key: jax.Array, value: jax.Array) -> Any:
    return sums_of(query, key, value).astype(jnp.float16)


@pytest.mark.parametrize(
    ("condition", "function"),
    [
        ("rounding.sums-are-read-once", rounded_and_not),
        ("rounding.rounding-is-in-the-block", rounded_in_a_branch),
        ("rounding.runtime-rounds-so", rounded_otherwise),
    ],
)
def test_sums_that_an_attention_does_not_round(condition: str, function: Function) -> None:
    done, failed = compiled(function, *QKV)
    assert {name for name in failed if name.startswith("rounding.")} == {condition}
    assert taken(done, "attention") == 1
    assert '#disc.fusion<"attention"' in str(done.module) and "rounds" not in str(done.module)
