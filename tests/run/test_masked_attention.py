# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention that skips what a mask of data hides: numbers and gradients as XLA's, whatever the mask lets rows see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc

SHAPES = (
    *(((f"b, {n}, 3, 16"), "float32") for n in ("q", "k", "k")),
    ("b, q", "int32"),
    ("b, k", "int32"),
    ("b", "int32"),
)
"""Query, key and value, integers of queries and of keys, and one of each entry of a batch."""

LOWEST = float(np.finfo(np.float32).min)

Mask = Callable[[Any, Any, Any], Any]


def rows_and_columns(of_queries: Any, of_keys: Any) -> tuple[Any, Any]:
    return jnp.arange(of_queries.shape[1])[:, None], jnp.arange(of_keys.shape[1])[None, :]


def segments(of_queries: Any, of_keys: Any, _: Any) -> Any:
    return (of_queries[:, :, None] == of_keys[:, None, :])[:, None]


def documents(of_queries: Any, of_keys: Any, length: Any) -> Any:
    row, column = rows_and_columns(of_queries, of_keys)
    return segments(of_queries, of_keys, length) & (column <= row)


def lengths(of_queries: Any, of_keys: Any, length: Any) -> Any:
    return (jnp.arange(of_keys.shape[1])[None, :] < length[:, None])[:, None, None, :]


def window(of_queries: Any, of_keys: Any, _: Any) -> Any:
    row, column = rows_and_columns(of_queries, of_keys)
    return ((row - column < 20) & (column - row < 9))[None, None]


def prefix(of_queries: Any, of_keys: Any, length: Any) -> Any:
    row, column = rows_and_columns(of_queries, of_keys)
    return ((column <= row)[None] | (column[None] < length[:, None, None]))[:, None]


def offset(of_queries: Any, of_keys: Any, length: Any) -> Any:
    row, column = rows_and_columns(of_queries, of_keys)
    return (column[None] <= row[None] + length[:, None, None])[:, None]


def valid(of_queries: Any, of_keys: Any, _: Any) -> Any:
    return ((of_queries > 0)[:, :, None] & (of_keys > 0)[:, None, :])[:, None]


def others(of_queries: Any, of_keys: Any, _: Any) -> Any:
    return (of_queries[:, :, None] != of_keys[:, None, :])[:, None]


MASKS: dict[str, Mask] = {
    "segments": segments, "documents": documents, "lengths": lengths, "window": window, "prefix": prefix,
    "offset": offset, "valid": valid, "others": others,
}  # fmt: skip

FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "-inf": lambda scores, mask: jnp.where(mask, scores, -jnp.inf),
    "lowest": lambda scores, mask: jnp.where(~mask, LOWEST, scores),
    "-1e9": lambda scores, mask: jnp.where(mask, scores, np.float32(-1e9)),
    "adds": lambda scores, mask: scores + jnp.where(mask, 0.0, np.float32(-1e9)),
    "multiplies": lambda scores, mask: scores + (1.0 - mask.astype(jnp.float32)) * LOWEST,
}


def attention(mask: Mask, form: str) -> Callable[..., Any]:
    def run(query: Any, key: Any, value: Any, of_queries: Any, of_keys: Any, length: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * np.float32(0.25)
        scores = FORMS[form](scores, mask(of_queries, of_keys, length))
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), value)

    return run


def gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(query: Any, key: Any, value: Any, *others: Any) -> Any:
        return jax.grad(lambda *m: jnp.sin(function(*m, *others)).sum(), (0, 1, 2))(query, key, value)

    return run


def arguments(rng: np.random.Generator, b: int, q: int, k: int, segments: int, is_sorted: bool = True) -> list[Any]:
    matrices = [rng.standard_normal((b, n, 3, 16), np.float32) for n in (q, k, k)]
    integers = [rng.integers(0, segments, (b, n)).astype(np.int32) for n in (q, k)]
    if is_sorted:
        integers = [np.sort(i, axis=1) for i in integers]
    length = rng.integers(0, k + 1, b).astype(np.int32)
    length[0] = rng.choice([0, 1, k])
    return [*matrices, *integers, length]


def check(function: Callable[..., Any], given: list[list[Any]], kind: str, tolerance: float = 2e-5) -> None:
    """Compiled once with an attention of a kind that has its columns counted, the function is as XLA's."""
    executable = shlo_disc.compile(function, args=SHAPES)
    kinds = [kernel.kind for kernel in executable.kernels]
    assert kind in kinds and "row_reduce" in kinds, kinds
    reference = jax.jit(function)
    for each in given:
        for ours, theirs in zip(jax.tree.leaves(executable(*each)), jax.tree.leaves(reference(*each)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


SIZES = ((1, 57, 57), (2, 70, 130), (1, 130, 70), (2, 224, 97))
"""Both sides of 56 rows, below which nothing is skipped, and of panels of 32 columns."""


@pytest.mark.parametrize("name", ["segments", "lengths", "window"])
def test_masks(name: str) -> None:
    rng = np.random.default_rng(len(name))
    check(attention(MASKS[name], "-1e9"), [arguments(rng, *size, 5) for size in SIZES], "attention")


def test_gradients() -> None:
    rng = np.random.default_rng(7)
    given = [arguments(rng, *size, 5) for size in SIZES]
    check(gradients(attention(documents, "-1e9")), given, "attention_gradient", 2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MASKS)
def test_all_masks_and_forms(name: str, form: str) -> None:
    rng = np.random.default_rng([len(name), len(form)])
    given = [arguments(rng, *size, int(rng.integers(1, 17)), rng.random() < 0.7) for size in SIZES[1:]]
    given.append(arguments(rng, 1, 300, 301, 9))
    if form == "multiplies":  # XLA may round the sum of a score and the lowest number to infinity
        given = [g for g in given if not hides_a_row(MASKS[name](*g[3:]))]
    if name in ("offset", "prefix") and form in ("adds", "multiplies"):
        pytest.skip("what is added has its batch and its rows merged, and is read as an array")
    check(attention(MASKS[name], form), given, "attention")
    given = [g for g in given if not hides_a_row(MASKS[name](*g[3:]))]
    check(gradients(attention(MASKS[name], form)), given, "attention_gradient", 2e-4)


def hides_a_row(mask: Any) -> bool:
    return not bool(np.asarray(mask).any(-1).all())


def test_segments_of_any_order_and_number() -> None:
    rng = np.random.default_rng(3)
    given = [arguments(rng, 1, 200, 200, n, is_sorted) for n in (1, 2, 16, 200) for is_sorted in (True, False)]
    check(attention(segments, "lowest"), given, "attention")


def test_what_is_hidden_shows_through_where_scores_are_large() -> None:
    """Scores of 1e12 are larger than what a mask adds; infinite values in hidden columns make NaN as in XLA."""
    rng = np.random.default_rng(5)
    given = []
    for operand, number in ((0, 1e7), (1, np.inf), (2, np.inf), (2, np.nan)):
        each = arguments(rng, 1, 90, 90, 4)
        if np.isfinite(number):
            each[0], each[1] = each[0] * np.float32(number), each[1] * np.float32(number)
        else:
            each[operand][0, 3, 1, 5] = number
        given.append(each)
    check(attention(segments, "adds"), given[1:], "attention")
    check(gradients(attention(segments, "-1e9")), given[1:], "attention_gradient", 2e-4)
    check(attention(segments, "-1e9"), given[:1], "attention", 1e-3)


@pytest.mark.slow
def test_heads_that_share_keys_and_values() -> None:
    def grouped(query: Any, key: Any, value: Any, ids: Any) -> Any:
        scores = jnp.einsum("bqhgd,bkhd->bhgqk", query, key)
        scores = jnp.where((ids[:, :, None] == ids[:, None, :])[:, None, None], scores, np.float32(-1e9))
        return jnp.einsum("bhgqk,bkhd->bqhgd", jax.nn.softmax(scores, axis=-1), value)

    shapes = [("b, s, 2, 3, 16", "float32"), *[("b, s, 2, 16", "float32")] * 2, ("b, s", "int32")]
    executable, reference = shlo_disc.compile(grouped, args=shapes), jax.jit(grouped)
    rng = np.random.default_rng(2)
    for s in (1, 60, 131):
        given = [rng.standard_normal((2, s, *rest), np.float32) for rest in ((2, 3, 16), (2, 16), (2, 16))]
        ids = np.sort(rng.integers(0, 6, (2, s)).astype(np.int32))
        np.testing.assert_allclose(executable(*given, ids), reference(*given, ids), rtol=2e-5, atol=2e-5)


@pytest.mark.slow
def test_masks_of_two_selects() -> None:
    def run(query: Any, key: Any, value: Any, of_queries: Any, of_keys: Any, length: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key)
        scores = jnp.where(segments(of_queries, of_keys, length), scores, np.float32(-1e9))
        scores = jnp.where(lengths(of_queries, of_keys, length), scores, np.float32(-1e9))
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), value)

    rng = np.random.default_rng(4)
    check(run, [arguments(rng, *size, 3) for size in SIZES], "attention")


@pytest.mark.slow
def test_double_precision() -> None:
    with jax.enable_x64(True):
        shapes = [("s, 16", "float64")] * 3 + [("s", "int64")]

        def run(query: Any, key: Any, value: Any, ids: Any) -> Any:
            scores = jnp.where(ids[:, None] == ids[None], query @ key.T, -jnp.inf)
            return jax.nn.softmax(scores, axis=-1) @ value

        def both(query: Any, key: Any, value: Any, ids: Any) -> Any:
            gradient = jax.grad(lambda *m: (run(*m, ids) ** 2).sum(), (0, 1, 2))
            return run(query, key, value, ids), gradient(query, key, value)

        executable, reference = shlo_disc.compile(both, args=shapes), jax.jit(both)
        rng = np.random.default_rng(6)
        for s in (1, 100, 333):
            given = [*(rng.standard_normal((s, 16)) for _ in range(3)), np.sort(rng.integers(0, 9, s))]
            jax.tree.map(
                lambda a, b: np.testing.assert_allclose(a, b, 1e-10, 1e-10), executable(*given), reference(*given)
            )
