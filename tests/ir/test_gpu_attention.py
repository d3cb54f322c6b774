# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention on GPUs, and what is nearly one, in the emulator: XLA's numbers, however it is cut into kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shlo_disc.mlir import ir
from tests.ir.gpu_cases import Run, assert_close
from tests.ir.gpu_emulator import Emulator
from tests.ir.test_gpu_epilogues import Texts, check, device_module, lowered

DEPTH = 4
TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2}


def scores(q: Any, k: Any) -> Any:
    return jnp.einsum("bqd,bkd->bqk", q, k) * 0.5


def mixed(weights: Any, v: Any) -> Any:
    return jnp.einsum("bqk,bkd->bqd", weights, v)


def plain(q: Any, k: Any, v: Any) -> Any:
    return mixed(jax.nn.softmax(scores(q, k)), v)


def causal(q: Any, k: Any, v: Any) -> Any:
    s = scores(q, k)
    row, column = (jax.lax.broadcasted_iota(jnp.int32, s.shape, axis) for axis in (1, 2))
    return mixed(jax.nn.softmax(jnp.where(column <= row, s, -jnp.inf)), v)


def other_axis(q: Any, k: Any, v: Any) -> Any:
    return mixed(jax.nn.softmax(scores(q, k), axis=1), v)


def scaled_after(q: Any, k: Any, v: Any) -> Any:
    return mixed(jax.nn.softmax(scores(q, k)) * 3, v)


def twice(q: Any, k: Any, v: Any) -> Any:
    return mixed(jax.nn.softmax(jax.nn.softmax(scores(q, k))), v)


def transposed_values(q: Any, k: Any, v: Any) -> Any:
    return jnp.einsum("bqk,bdk->bqd", jax.nn.softmax(scores(q, k)), jnp.swapaxes(v, 1, 2))


def biased(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return mixed(jax.nn.softmax(scores(q, k) + bias), v)


def arguments_of(dtype: str, *more: tuple[str, str]) -> Texts:
    keys = (f"b, k, {DEPTH}", dtype)
    return ((f"b, q, {DEPTH}", dtype), keys, keys, *more)


def sizes(*triples: tuple[int, int, int]) -> list[dict[str, int]]:
    return [dict(zip("bqk", triple, strict=True)) for triple in triples]


@pytest.mark.parametrize("function", [plain, causal, other_axis, scaled_after, twice, transposed_values])
def test_attention_and_what_is_nearly_one(function: Callable[..., Any]) -> None:
    check(function, arguments_of("float32"), *sizes((1, 1, 1), (2, 3, 5), (1, 17, 33), (0, 3, 3), (2, 0, 3), (2, 3, 0)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_attention(dtype: str) -> None:
    check(plain, arguments_of(dtype), *sizes((1, 1, 1), (2, 5, 17)), tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("shape", ["b, q, k", "q, k", "b, 1, k", "b, q, 1"])
def test_biases_of_any_shape(shape: str) -> None:
    def function(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return biased(q, k, v, bias)

    check(function, arguments_of("float32", (shape, "float32")), *sizes((2, 3, 5), (1, 17, 16)))


def test_hidden_rows_and_nans_are_those_of_the_program() -> None:
    """A row whose biases are all -inf, one with a NaN, one with a hidden half."""
    dims = {"b": 1, "q": 4, "k": 6}
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, n, DEPTH), np.float32) for n in (4, 6, 6))
    bias = np.zeros((1, 4, 6), np.float32)
    bias[0, 0], bias[0, 1, 2], bias[0, 2, :3] = -np.inf, np.nan, -np.inf
    expected = np.asarray(jax.jit(biased)(q, k, v, bias))
    assert np.isnan(expected[0, :2]).all()
    assert np.isfinite(expected[0, 2:]).all()
    c = lowered(biased, *arguments_of("float32", ("b, q, k", "float32")))
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(str(device_module(c.module))))
        assert_close(Run(c, dims, machine)([q, k, v, bias]), expected, 1e-5)


@pytest.mark.parametrize(("queries", "keys"), [(63, 65), (64, 64), (65, 63), (2, 211)])
def test_sizes_around_tiles(queries: int, keys: int) -> None:
    check(causal, arguments_of("float32"), {"b": 1, "q": queries, "k": keys})


def test_heads_that_share_keys() -> None:
    """Query [s, g, h, d] with g groups of h heads; key and value [t, g, d]."""

    def function(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("sghd,tgd->ghst", q, k))
        return jnp.einsum("ghst,tgd->sghd", weights, v)

    keys = (f"t, 2, {DEPTH}", "float32")
    dims = [{"s": 1, "t": 1}, {"s": 3, "t": 5}, {"s": 5, "t": 17}]
    check(function, ((f"s, 2, 3, {DEPTH}", "float32"), keys, keys), *dims)
