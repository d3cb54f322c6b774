# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention on GPUs as one kernel, and what is nearly one and is not, in the emulator against XLA."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.decisions import OUTCOMES
from tests.ir.gpu_cases import Run, assert_close, launches_of
from tests.ir.gpu_emulator import Emulator
from tests.ir.test_gpu_epilogues import Texts, check, device_module, lowered
from tests.run.op_check import random_array

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


def divided_by_another(q: Any, k: Any, v: Any) -> Any:
    powers = jnp.exp(scores(q, k) - scores(q, k).max(-1, keepdims=True, initial=-jnp.inf))
    return mixed(powers / (powers * powers).sum(-1, keepdims=True), v)


def largest_of_another(q: Any, k: Any, v: Any) -> Any:
    s = scores(q, k)
    powers = jnp.exp(s - (s * s).max(-1, keepdims=True, initial=-jnp.inf))
    return mixed(powers / powers.sum(-1, keepdims=True), v)


def largest_of_all(q: Any, k: Any, v: Any) -> Any:
    s = scores(q, k)
    powers = jnp.exp(s - s.max((-1, -2), keepdims=True, initial=-jnp.inf))
    return mixed(powers / powers.sum(-1, keepdims=True), v)


def begun_with_a_number(q: Any, k: Any, v: Any) -> Any:
    s = scores(q, k)
    powers = jnp.exp(s - s.max(-1, keepdims=True, initial=1.0))
    return mixed(powers / powers.sum(-1, keepdims=True), v)


def raised(q: Any, k: Any, v: Any) -> Any:
    s = scores(q, k)
    powers = jnp.exp(s - s.max(-1, keepdims=True, initial=-jnp.inf)) + 0.5
    return mixed(powers / powers.sum(-1, keepdims=True), v)


def centred(q: Any, k: Any, v: Any) -> Any:
    s = scores(q, k)
    return mixed(jax.nn.softmax(s - s.mean(-1, keepdims=True)), v)


def hiding(q: Any, k: Any, v: Any) -> Any:
    """Rows of which a mask leaves nothing are 0, as in PyTorch."""
    s = scores(q, k)
    row, column = (jax.lax.broadcasted_iota(jnp.int32, s.shape, axis) for axis in (1, 2))
    s = jnp.where(column < row, s, -jnp.inf)
    peak = s.max(-1, keepdims=True, initial=-jnp.inf)
    none = peak == -jnp.inf
    powers = jnp.exp(s - jnp.where(none, 0.0, peak))
    return mixed(powers / jnp.where(none, 1.0, powers.sum(-1, keepdims=True)), v)


def capped(q: Any, k: Any, v: Any) -> Any:
    return mixed(jax.nn.softmax(30 * jnp.tanh(scores(q, k) / 30)), v)


def biased(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return mixed(jax.nn.softmax(scores(q, k) + bias), v)


def arguments_of(dtype: str, *more: tuple[str, str]) -> Texts:
    keys = (f"b, k, {DEPTH}", dtype)
    return ((f"b, q, {DEPTH}", dtype), keys, keys, *more)


def kernels_of(function: Callable[..., Any], arguments: Texts) -> list[str]:
    return [launch.kind for launch in launches_of(lowered(function, *arguments))]


def sizes(*triples: tuple[int, int, int]) -> list[dict[str, int]]:
    return [dict(zip("bqk", triple, strict=True)) for triple in triples]


ATTENTIONS = (plain, causal, transposed_values, hiding, capped)
NONE = (
    other_axis, scaled_after, twice, divided_by_another, largest_of_another, largest_of_all, begun_with_a_number,
    raised, centred,
)  # fmt: skip

EDGES = sizes((1, 1, 1), (2, 3, 5), (1, 17, 33))


@pytest.mark.parametrize("function", ATTENTIONS)
def test_attention_is_one_kernel(function: Callable[..., Any]) -> None:
    assert kernels_of(function, arguments_of("float32")) == ["attention"]
    check(function, arguments_of("float32"), *EDGES)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("nothing", ["matrices", "queries", "keys"])
def test_no_matrices_queries_or_keys(nothing: str, dtype: str) -> None:
    cut = {"matrices": np.s_[1:], "queries": np.s_[:, 1:], "keys": np.s_[:, 1:]}[nothing]

    def function(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (
            x[cut] if nothing in ("matrices", name) else x for x, name in ((q, "queries"), (k, "keys"), (v, "keys"))
        )
        return plain(q, k, v)

    arguments = arguments_of(dtype)
    check(function, arguments, *sizes((1, 1, 1), (2, 2, 2), (1, 20, 3)), tolerance=TOLERANCE.get(dtype, 1e-5))


@pytest.mark.parametrize("function", NONE)
def test_what_is_nearly_an_attention_is_none(function: Callable[..., Any]) -> None:
    assert "attention" not in kernels_of(function, arguments_of("float32"))
    check(function, arguments_of("float32"), *EDGES)


@pytest.mark.parametrize("function", ATTENTIONS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_attention(dtype: str, function: Callable[..., Any]) -> None:
    assert kernels_of(function, arguments_of(dtype)) == ["attention"]
    check(function, arguments_of(dtype), *EDGES, tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", ["b, q, k", "q, k", "b, 1, k", "b, q, 1"])
@pytest.mark.slow
def test_biases_of_any_shape(shape: str, dtype: str) -> None:
    def function(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return biased(q, k, v, bias)

    arguments = arguments_of(dtype, (shape, dtype))
    assert kernels_of(function, arguments) == ["attention"]
    check(function, arguments, *sizes((2, 3, 5), (1, 17, 16), (1, 3, 67)), tolerance=TOLERANCE.get(dtype, 1e-5))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_hidden_rows_and_nans_are_those_of_the_program(dtype: str) -> None:
    """A row whose biases are all -inf, one with a NaN, hidden halves, each with and without more tiles, infinities."""
    columns = 70
    dims = {"b": 1, "q": 7, "k": columns}
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, n, DEPTH)).astype(dtype) for n in (7, columns, columns))
    bias = np.zeros((1, 7, columns), dtype)
    bias[0, 0], bias[0, 1, 2], bias[0, 2, :65], bias[0, 3, 3:] = -np.inf, np.nan, -np.inf, -np.inf
    bias[0, 4, 5], bias[0, 5, 68] = np.inf, np.inf
    expected = np.asarray(jax.jit(biased)(q, k, v, bias)).astype(np.float32)
    assert np.isnan(expected[0, [0, 1, 4, 5]]).all()
    assert np.isfinite(expected[0, [2, 3, 6]]).all()
    c = lowered(biased, *arguments_of(dtype, ("b, q, k", dtype)))
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(str(device_module(c.module))))
        (found,) = Run(c, dims, machine)([q, k, v, bias])
        assert_close([np.asarray(found).astype(np.float32)], [expected], TOLERANCE.get(dtype, 1e-5))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_large_scores_and_values(dtype: str) -> None:
    """Exponentials of the scores would overflow, and so would sums of the values that no weight is part of yet."""
    dims = {"b": 1, "q": 3, "k": 70}
    rng = np.random.default_rng(1)
    q, k = (jnp.asarray(rng.standard_normal((1, n, DEPTH)) * 100).astype(dtype) for n in (3, 70))
    v = jnp.asarray(np.where(rng.standard_normal((1, 70, DEPTH)) > 0, 1e38, 2e38)).astype(dtype)
    c = lowered(plain, *arguments_of(dtype))
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(str(device_module(c.module))))
        for queries in (q, q * 0):
            expected = np.asarray(jax.jit(plain)(queries, k, v)).astype(np.float64)
            assert np.isfinite(expected).all()
            assert expected.min() > 9e37
            (found,) = Run(c, dims, machine)([np.asarray(x) for x in (queries, k, v)])
            found = np.asarray(found).view(np.asarray(v).dtype).astype(np.float64)
            np.testing.assert_allclose(found, expected.ravel(), rtol=TOLERANCE.get(dtype, 1e-5))


@pytest.mark.parametrize(("queries", "keys"), [(63, 65), (64, 64), (65, 63), (2, 211)])
def test_sizes_around_tiles(queries: int, keys: int) -> None:
    check(causal, arguments_of("float32"), {"b": 1, "q": queries, "k": keys})


@pytest.mark.parametrize(("queries", "keys"), [(127, 65), (128, 64), (129, 63), (2, 211)])
def test_sizes_around_tiles_of_tensor_cores(queries: int, keys: int) -> None:
    check(causal, arguments_of("float16"), {"b": 1, "q": queries, "k": keys}, tolerance=1e-2)


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (7, 24), (16, 8), (24, 17), (33, 64), (128, 128)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_heads_of_any_size(depth: int, width: int, dtype: str) -> None:
    arguments = ((f"b, q, {depth}", dtype), (f"b, k, {depth}", dtype), (f"b, k, {width}", dtype))
    assert kernels_of(plain, arguments) == ["attention"]
    check(plain, arguments, *sizes((2, 5, 19), (1, 3, 66)), tolerance=TOLERANCE.get(dtype, 1e-5))


@pytest.mark.parametrize("depth", ["d", "129"])
def test_heads_that_are_too_large_or_not_known_stay_apart(depth: str) -> None:
    arguments = tuple((f"b, {size}, {depth}", "float32") for size in "qkk")
    assert "attention" not in kernels_of(plain, arguments)
    check(plain, arguments, {"b": 1, "q": 3, "k": 5, **({"d": 6} if depth == "d" else {})})


def failed_conditions(function: Callable[..., Any], arguments: Texts, pattern: str = "attention.") -> set[str]:
    """The conditions of a pattern that did not hold."""
    before = OUTCOMES.copy()
    lowered(function, *arguments)
    found = OUTCOMES - before
    return {name for (name, holds), count in found.items() if count and not holds and name.startswith(pattern)}


def test_conditions_of_rows_in_pieces() -> None:
    assert failed_conditions(plain, arguments_of("float32")) == set()
    assert failed_conditions(twice, arguments_of("float32")) == {"attention.rows-may-come-in-pieces"}
    wide = tuple((f"b, {size}, 129", "float32") for size in "qkk")
    assert failed_conditions(plain, wide) == {"attention.heads-are-narrow"}
    with jax.enable_x64(True):
        assert failed_conditions(plain, arguments_of("float64")) == {"attention.rows-may-come-in-pieces"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_heads_that_share_keys(dtype: str) -> None:
    """Query [s, g, h, d] with g groups of h heads; key and value [t, g, d]."""

    def function(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("sghd,tgd->ghst", q, k))
        return jnp.einsum("ghst,tgd->sghd", weights, v)

    keys = (f"t, 2, {DEPTH}", dtype)
    dims = [{"s": 1, "t": 1}, {"s": 3, "t": 5}, {"s": 5, "t": 17}]
    arguments = ((f"s, 2, 3, {DEPTH}", dtype), keys, keys)
    assert kernels_of(function, arguments) == ["attention"]
    check(function, arguments, *dims, tolerance=TOLERANCE.get(dtype, 1e-5))


def test_one_key_for_all_heads() -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return jnp.einsum("bhqk,kd->bhqd", jax.nn.softmax(jnp.einsum("bhqd,kd->bhqk", q, k)), v)

    keys = (f"k, {DEPTH}", "float16")
    arguments = ((f"b, 3, q, {DEPTH}", "float16"), keys, keys)
    assert kernels_of(function, arguments) == ["attention"]
    check(function, arguments, *sizes((2, 3, 5), (1, 45, 17)), tolerance=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_queries_keys_and_values_are_read_where_they_lie_together(dtype: str) -> None:
    def function(x: Any, w: Any) -> Any:
        q, k, v = (part.reshape(*part.shape[:2], 2, 16) for part in jnp.split(x @ w, 3, axis=-1))
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)

    arguments = (("b, s, 24", dtype), ("24, 96", dtype))
    assert kernels_of(function, arguments) == ["dot", "attention"]
    starts = re.findall(r"start = (\d+)", str(lowered(function, *arguments).snapshots["fuse"]))
    assert sorted(set(starts)) == ["32", "64"]
    check(function, arguments, {"b": 2, "s": 5}, {"b": 1, "s": 67}, tolerance=TOLERANCE.get(dtype, 1e-5))
    for precision in (None, "highest"):
        options = shlo_disc.Options(matmul_precision=precision)
        ptx = shlo_disc.compile(function, target="cuda:sm_80", args=arguments, options=options).as_text("ptx")
        _, attention = ptx.split(".entry attention")
        tensor_cores = dtype == "bfloat16" or precision is None
        assert ("cp.async" in attention) == ("mma.sync" in attention) == tensor_cores


# ---- jax.nn.dot_product_attention -----------------------------------------------------------------------------------


def of_jax(**options: Any) -> Callable[..., Any]:
    def function(q: Any, k: Any, v: Any, *more: Any) -> Any:
        named = dict(zip(options.get("names", ()), more, strict=True))
        return jax.nn.dot_product_attention(q, k, v, is_causal=options.get("is_causal", False), **named)

    return function


JAX = {
    "plain": (of_jax(), ()),
    "causal": (of_jax(is_causal=True), ()),
    "bias": (of_jax(names=("bias",)), (("b, 4, s, t", ""),)),
    "mask": (of_jax(names=("mask",)), (("b, 1, s, t", "bool"),)),
    "lengths": (of_jax(names=("key_value_seq_lengths",)), (("b", "int32"),)),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("name", "heads"), [*((name, 4) for name in JAX), *((name, 2) for name in ("causal", "mask", "lengths"))]
)
def test_attention_of_jax(name: str, dtype: str, heads: int) -> None:
    """Checks attention of 4 heads, of which some may share keys."""
    function, more = JAX[name]
    keys = (f"b, t, {heads}, 8", dtype)
    arguments = (("b, s, 4, 8", dtype), keys, keys, *((shape, kind or dtype) for shape, kind in more))
    assert kernels_of(function, arguments).count("attention") == 1
    dims = [{"b": 1, "s": 1, "t": 1}, {"b": 2, "s": 5, "t": 17}]
    check(function, arguments, *dims, tolerance=TOLERANCE.get(dtype, 1e-5))


# ---- barriers -------------------------------------------------------------------------------------------------------


class OneBlock:
    """A machine that gives all of a launch to one block."""

    def __init__(self, emulator: Emulator):
        self.emulator = emulator

    def launch(self, name: str, blocks: int, pointers: Sequence[np.ndarray], sizes: Sequence[int]) -> None:
        self.emulator.launch(name, 1, pointers, sizes)


def in_one_block(depth: int, dtype: str, dims: dict[str, int], change: Callable[[str], str]) -> None:
    """Check causal attention, by kernels whose text is changed."""
    arguments = tuple((f"b, {size}, {depth}", dtype) for size in "qkk")
    c = lowered(causal, *arguments)
    given = [random_array((dims["b"], dims[size], depth), dtype, i) for i, size in enumerate("qkk")]
    with c.context, ir.Location.unknown():
        machine = OneBlock(Emulator(ir.Module.parse(change(str(device_module(c.module))))))
        assert_close(Run(c, dims, machine)(given), jax.jit(causal)(*given), TOLERANCE.get(dtype, 1e-5))


KINDS = {
    "f32": ("float32", 20, {"b": 2, "q": 70, "k": 70}, 0, 5),
    "queries that stay": ("bfloat16", 8, {"b": 2, "q": 130, "k": 130}, 0, 5),
    "not aligned": ("bfloat16", 7, {"b": 2, "q": 130, "k": 130}, 5, 8),
    "queries in registers": ("bfloat16", 128, {"b": 2, "q": 130, "k": 130}, 0, 8),
    "not aligned, in registers": ("bfloat16", 127, {"b": 2, "q": 130, "k": 130}, 8, 14),
}
"""An element, a size of heads, sizes, and the barriers of the kernel that are met there: each is needed."""

BARRIERS = [(name, i) for name, (*_, begin, end) in KINDS.items() for i in range(begin, end)]


@pytest.mark.parametrize("name", KINDS)
def test_a_block_takes_several_tiles(name: str) -> None:
    dtype, depth, dims, *_ = KINDS[name]
    in_one_block(depth, dtype, dims, str)


@pytest.mark.parametrize(("name", "number"), BARRIERS)
def test_no_barrier_can_be_left_out(name: str, number: int) -> None:
    dtype, depth, dims, *_ = KINDS[name]

    def change(text: str) -> str:
        places = [found.start() for found in re.finditer(r"gpu\.barrier\n", text)]
        few = 5  # the barriers of the body for few queries
        assert len(places) == {20: 5, 7: 8, 8: 8}.get(depth, 14) + few
        return text[: places[number]] + text[places[number] + len("gpu.barrier\n") :]

    with pytest.raises(AssertionError, match="two threads touch one element"):
        in_one_block(depth, dtype, dims, change)
