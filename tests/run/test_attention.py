# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as one kernel, at lengths on both sides of tiles and blocks, against XLA; and what it does not keep."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.op_check import Sizes, check, random_array

LENGTHS = (1, 2, 13, 14, 15, 31, 32, 33, 64, 100, 257)
"""Both sides of tiles of 14 by 32, several of them, and a prime."""

NEAR: Any = {"ulps": 16, "floor": 1.0}
"""Values are normal numbers, which softmax averages: the error of an average is measured by their size."""


def attention(query: jax.Array, key: jax.Array, value: jax.Array, bias: Any = None) -> jax.Array:
    """[b, q, h, d] and [b, k, h, d] -> [b, q, h, d]."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * np.float32(query.shape[-1] ** -0.5)
    weights = jax.nn.softmax(scores if bias is None else scores + bias, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, value)


def is_one_kernel(executable: shlo_disc.Executable, others: tuple[str, ...] = ()) -> bool:
    """Tells whether nothing but an attention is launched, and `others`."""
    return sorted(k.kind for k in executable.kernels) == sorted(["attention", *others])


def self_sizes(*lengths: int) -> list[Sizes]:
    return [{"b": 1 + s % 2, "s": s} for s in lengths]


@pytest.mark.slow
def test_self_attention() -> None:
    specs = [("b, s, 3, 16", "float32")] * 3
    executable = check(attention, specs, self_sizes(*LENGTHS), **NEAR)
    assert is_one_kernel(executable)


def test_there_is_no_buffer_for_the_scores() -> None:
    """The arena has room for one row of scores, whatever the number of rows."""
    executable = shlo_disc.compile(attention, args=[("b, s, 3, 16", "float32")] * 3)
    result = 4 * 2 * 1024 * 3 * 16
    assert executable.peak_memory(b=2, s=1024) == result + 4 * 1024


@pytest.mark.slow
def test_cross_attention_with_a_mask_of_keys() -> None:
    def f(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array) -> jax.Array:
        return attention(query, key, value, jnp.where(mask > 0, 0.0, np.float32(-1e9))[:, None, None, :])

    sizes = [{"b": 2, "q": q, "k": k} for q, k in ((1, 40), (14, 33), (15, 1), (40, 14), (100, 65), (3, 500))]
    specs = [("b, q, 2, 32", "float32"), *[("b, k, 2, 32", "float32")] * 2, ("b, k", "float32")]
    assert "attention" in {k.kind for k in check(f, specs, sizes, **NEAR).kernels}


def test_a_bias_of_its_own_for_every_score() -> None:
    specs = [("b, s, 2, 8", "float32")] * 3 + [("2, s, s", "float32")]
    assert is_one_kernel(check(attention, specs, self_sizes(1, 14, 33, 100), **NEAR))


def causal(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """A mask that adds -1e9 to the scores of later keys."""
    place = jnp.arange(query.shape[1])
    return attention(query, key, value, jnp.where(place[None, :] <= place[:, None], np.float32(0), np.float32(-1e9)))


def causal_by_selection(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """A mask that puts -inf in the place of later keys' scores."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * np.float32(0.25)
    row, column = (jax.lax.broadcasted_iota(np.int32, scores.shape, axis) for axis in (2, 3))
    weights = jax.nn.softmax(jnp.where(row < column, -jnp.inf, scores), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, value)


@pytest.mark.parametrize("function", [causal, causal_by_selection])
def test_causal_masks_are_part_of_the_kernel(function: Any) -> None:
    """The lengths are such that some tiles, then also blocks, leave out hidden columns."""
    specs = [("b, s, 2, 16", "float32")] * 3
    assert is_one_kernel(check(function, specs, self_sizes(1, 14, 33, 57, 64, 100, 257, 700), **NEAR))


@pytest.mark.parametrize("function", [causal, causal_by_selection])
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 3e38, 1e10])
@pytest.mark.parametrize("operand", [0, 1, 2])
def test_what_shows_through_a_causal_mask(function: Any, number: float, operand: int) -> None:
    """Hidden columns are left out only as long as nothing in them could change a number."""
    executable = compiled_causal(function)
    arrays = [np.random.default_rng(i).standard_normal((1, 100, 2, 16), dtype=np.float32) for i in range(3)]
    arrays[operand][0, 70, 1, 3] = number
    want = np.asarray(jax.jit(function)(*arrays))
    np.testing.assert_allclose(executable(*arrays), want, rtol=1e-4, atol=1e-5)


@functools.cache
def compiled_causal(function: Any) -> shlo_disc.Executable:
    """For any length."""
    return shlo_disc.compile(function, args=[("b, s, 2, 16", "float32")] * 3)


def test_decoding_with_a_cache_that_grows() -> None:
    def f(query: jax.Array, keys: jax.Array, values: jax.Array, key: jax.Array, value: jax.Array) -> Any:
        keys, values = jnp.concatenate([keys, key], axis=1), jnp.concatenate([values, value], axis=1)
        return attention(query, keys, values), keys, values

    one, many = ("b, 1, 4, 16", "float32"), ("b, c, 4, 16", "float32")
    sizes = [{"b": 1 + c % 3, "c": c} for c in (1, 13, 31, 32, 63, 300)]
    executable = check(f, [one, many, many, one, one], sizes, **NEAR)
    assert is_one_kernel(executable, ("loop", "loop"))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_pieces_of_one_array_are_read_where_they_lie(order: tuple[int, int, int]) -> None:
    def f(x: jax.Array) -> jax.Array:
        pieces = jnp.split(jnp.tanh(x), 3, axis=-1)
        query, key, value = (pieces[i].reshape(*x.shape[:2], 2, 16) for i in order)
        return attention(query, key, value)

    assert is_one_kernel(check(f, [("b, s, 96", "float32")], self_sizes(1, 14, 33, 100), **NEAR), ("loop",))


@pytest.mark.parametrize("queries", ["1", "s"])
def test_heads_that_share_keys_and_values(queries: str) -> None:
    def f(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        scores = jnp.einsum("bqhgd,bkhd->bhgqk", query, key) * np.float32(0.25)
        return jnp.einsum("bhgqk,bkhd->bqhgd", jax.nn.softmax(scores, axis=-1), value)

    specs = [(f"b, {queries}, 2, 3, 16", "float32"), *[("b, s, 2, 16", "float32")] * 2]
    assert is_one_kernel(check(f, specs, self_sizes(1, 5, 14, 33, 100), **NEAR))


def test_layouts_with_heads_first_and_keys_transposed() -> None:
    def f(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        weights = jax.nn.softmax(jnp.einsum("bhqd,bhdk->bhqk", query, key) / 4, axis=-1)
        return jnp.einsum("bhqk,bhdk->bhdq", weights, value)

    specs = [("b, 2, s, 16", "float32"), *[("b, 2, 16, s", "float32")] * 2]
    assert is_one_kernel(check(f, specs, self_sizes(1, 14, 31, 33, 100), **NEAR))


def test_one_head_without_a_batch() -> None:
    def f(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        return jax.nn.softmax(query @ key.T / 5, axis=-1) @ value

    specs = [("q, 24", "float32"), ("k, 24", "float32"), ("k, 40", "float32")]
    sizes = [{"q": q, "k": k} for q, k in ((1, 1), (14, 33), (57, 100), (300, 31))]
    assert is_one_kernel(check(f, specs, sizes, **NEAR))


@pytest.mark.slow
def test_double_precision() -> None:
    def f(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key) / 4, axis=-1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, value)

    specs = [("b, s, 2, 20", "float64")] * 3
    assert is_one_kernel(check(f, specs, self_sizes(1, 13, 15, 16, 17, 33, 100), **NEAR))


def test_rows_that_are_masked_altogether_are_what_xla_makes_of_them() -> None:
    """-inf everywhere is NaN; the rows around it are untouched."""
    executable = shlo_disc.compile(attention, args=[*[("b, s, 2, 8", "float32")] * 3, ("b, 1, s, s", "float32")])
    for s in (3, 17, 40):
        random = np.random.default_rng(s)
        query, key, value = (random.standard_normal((2, s, 2, 8), dtype=np.float32) for _ in range(3))
        bias = np.where(random.random((2, 1, s, s)) < 0.5, -np.inf, 0).astype(np.float32)
        bias[..., 0] = 0
        bias[1, 0, s // 2] = -np.inf
        want = np.asarray(jax.jit(attention)(query, key, value, bias))
        assert np.isnan(want).any() and not np.isnan(want).all()
        np.testing.assert_allclose(executable(query, key, value, bias), want, rtol=2e-5, atol=2e-6)


def test_no_keys_at_all() -> None:
    """A sum over nothing is 0."""
    executable = shlo_disc.compile(attention, args=[("b, q, 2, 8", "float32"), *[("b, k - 1, 2, 8", "float32")] * 2])
    query, nothing = np.ones((2, 3, 2, 8), np.float32), np.ones((2, 0, 2, 8), np.float32)
    np.testing.assert_array_equal(executable(query, nothing, nothing), np.zeros_like(query))


def test_many_keys() -> None:
    """Rows longer than what is kept of key and value, and than a tile's share of the cache."""
    executable = shlo_disc.compile(attention, args=[("b, q, 1, 8", "float32"), *[("b, k, 1, 8", "float32")] * 2])
    for q, k in ((3, 100_003), (2, 2_000_000)):
        random = np.random.default_rng(k)
        query, key, value = (random.standard_normal((1, n, 1, 8), dtype=np.float32) for n in (q, k, k))
        want = np.asarray(jax.jit(attention)(query, key, value))
        np.testing.assert_allclose(executable(query, key, value), want, rtol=1e-3, atol=1e-5)


def test_weights_are_left_to_products_that_find_them_packed() -> None:
    """A softmax between two layers is no attention."""

    def f(x: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
        return jax.nn.softmax(x @ first, axis=-1) @ second

    specs = [("b, 40", "float32"), ("40, 50", "float32"), ("50, 40", "float32")]
    # Small numbers: the exponential multiplies the rounding errors of large logits.
    executable = check(f, specs, [{"b": 3}], inputs=lambda *a: random_array(*a) / 4, ulps=32, scaled=True)
    assert [k.kind for k in executable.kernels] == ["dot", "dot"]


def test_scores_that_something_else_reads_have_a_buffer() -> None:
    def f(query: jax.Array, key: jax.Array, value: jax.Array) -> Any:
        weights = jax.nn.softmax(query @ key.T / 5, axis=-1)
        return weights @ value, weights

    executable = check(f, [("s, 24", "float32")] * 3, [{"s": 20}], **NEAR)
    assert [k.kind for k in executable.kernels] == ["dot", "dot"]


@pytest.mark.slow
def test_without_memory_for_blocks_rows_have_room_in_the_arena() -> None:
    """An address space that has room for the results and no more; the numbers are the same."""
    code = """
import resource
import numpy as np
import shlo_disc
from tests.run.test_attention import attention

specs = [("b, q, 1, 8", "float32"), *[("b, k, 1, 8", "float32")] * 2]
executable = shlo_disc.compile(attention, args=specs, options=shlo_disc.Options(threads=2, guard_pages=False))
random = np.random.default_rng(0)
arrays = [random.standard_normal((1, n, 1, 8), dtype=np.float32) for n in (5, 300_000, 300_000)]
few = [arrays[0][:, :1], *(a[:, :100_000] for a in arrays[1:])]
executable(*few)
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (3 << 20), -1))
got = executable(*arrays)
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
want = executable(*arrays)
assert not np.array_equal(got, want), "there was memory"
np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_weights_that_are_sums_of_their_own() -> None:
    """A row of the kernel between the products makes one weight, not a row of them."""

    def f(query: jax.Array, key: jax.Array, value: jax.Array, factor: jax.Array, bias: jax.Array) -> jax.Array:
        whole = (query @ key.T)[:, :, None] * factor + bias[:, None]
        return jnp.tanh(whole).sum(-1) @ jnp.tanh(value)

    specs = [("q, 8", "float32"), *[("k, 8", "float32")] * 2, ("m", "float32"), ("k", "float32")]
    sizes = [{"q": q, "k": k, "m": m} for q, k, m in ((3, 4, 5), (15, 32, 3), (17, 9, 30), (1, 1, 1), (64, 65, 2))]
    assert "attention" not in {k.kind for k in check(f, specs, sizes, ulps=64, floor=1.0).kernels}
