# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of half floats as one kernel, against the same in f32: scores are sums of f32, weights halves again."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.op_check import compile_function, random_array

LENGTHS = [(1, 1), (2, 3), (13, 33), (14, 2), (15, 31), (40, 64), (100, 257), (257, 100), (3, 900)]
"""Queries and keys: both sides of tiles of 14 by 32, odd numbers of keys, more than a chunk of them (768)."""


def halves(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """[b, q, h, d] and [b, k, h, d] -> [b, q, h, d], all of it in the type of the operands."""
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key) * query.shape[-1] ** -0.5, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, value)


def softmax_of_sums(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """The scores stay in f32, and so does the result."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key, preferred_element_type=jnp.float32)
    weights = jax.nn.softmax(scores * query.shape[-1] ** -0.5, axis=-1).astype(value.dtype)
    return jnp.einsum("bhqk,bkhd->bhqd", weights, value, preferred_element_type=jnp.float32)


def causal(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """Later keys are hidden."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * query.shape[-1] ** -0.5
    row, column = (jax.lax.broadcasted_iota(np.int32, scores.shape, axis) for axis in (2, 3))
    weights = jax.nn.softmax(jnp.where(row < column, -1e9, scores), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, value)


@functools.cache
def compiled(function: Callable[..., Any], dtype: str, width: int) -> shlo_disc.Executable:
    """For any numbers of queries and keys."""
    specs = ((f"b, q, 2, {width}", dtype), *((f"b, k, 2, {width}", dtype),) * 2)
    return compile_function(function, specs)


def compare(function: Callable[..., Any], dtype: str, width: int, queries: int, keys: int) -> None:
    shapes = ((2, queries, 2, width), (2, keys, 2, width), (2, keys, 2, width))
    arrays = [random_array(shape, dtype, i) for i, shape in enumerate(shapes)]
    got = compiled(function, dtype, width)(*arrays)
    want = function(*(jnp.asarray(a, jnp.float32) for a in arrays))
    assert got.dtype == (jnp.float32 if function is softmax_of_sums else arrays[0].dtype)
    assert got.shape == want.shape
    roundings = 2 if function is softmax_of_sums else 4  # scores of some 4, weights and results of up to 4
    np.testing.assert_allclose(np.float32(got), want, rtol=0, atol=roundings * float(jnp.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("function", [halves, softmax_of_sums, causal])
def test_lengths(function: Callable[..., Any], dtype: str) -> None:
    kinds = [kernel.kind for kernel in compiled(function, dtype, 16).kernels]
    assert kinds.count("attention") == 1
    assert kinds == ["attention"] or (dtype == "float16" and kinds == ["attention", "loop"])
    for queries, keys in LENGTHS:
        compare(function, dtype, 16, queries, keys)


@pytest.mark.parametrize("width", [1, 7, 32, 33, 150])
def test_widths(width: int) -> None:
    """Words that are not full, and several panels of values."""
    for queries, keys in ((5, 7), (40, 33)):
        compare(halves, "bfloat16", width, queries, keys)


def test_nothing_is_a_number_where_a_row_has_none() -> None:
    arrays = [random_array((2, 20, 2, 16), "bfloat16", i) for i in range(3)]
    arrays[0][1, 7, 1, 3] = np.nan
    got = np.float32(compiled(halves, "bfloat16", 16)(*arrays))
    assert np.isnan(got[1, 7, 1]).all()
    assert np.isnan(got).sum() == 16


@pytest.mark.slow
def test_without_memory_for_blocks() -> None:
    """An address space that has room for the results and no more: rows have room in the arena."""
    code = """
import resource
import ml_dtypes
import numpy as np
import shlo_disc
from tests.run.test_attention_dtypes import softmax_of_sums

specs = [("b, q, 1, 8", "bfloat16"), *[("b, k, 1, 8", "bfloat16")] * 2]
executable = shlo_disc.compile(softmax_of_sums, args=specs, options=shlo_disc.Options(threads=2, guard_pages=False))
random = np.random.default_rng(0)
arrays = [random.standard_normal((1, n, 1, 8)).astype(ml_dtypes.bfloat16) for n in (5, 600_000, 600_000)]
few = [arrays[0][:, :1], *(a[:, :200_000] for a in arrays[1:])]
executable(*few)
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (2 << 20), -1))
got = np.float32(executable(*arrays))
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
want = np.float32(executable(*arrays))
assert not np.array_equal(got, want), "there was memory"
np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-5)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
