# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops together, as models use them: normalisations, losses, attention, gradients; fused into few kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

from tests.run.op_check import WIDTHS, Sizes, Spec, check, dtype_of, random_array, small_integers

ROWS: list[Sizes] = [
    {"b": b, "s": s, "d": d}
    for b, s, d in [(1, 1, 1), (1, 2, 3), (2, 3, 15), (3, 5, 16), (2, 1, 17), (1, 7, 31), (4, 2, 32), (2, 16, 33),
                    (1, 33, 97), (3, 17, 300)]
]  # fmt: skip


def layer_norm(x: jax.Array, gain: jax.Array, bias: jax.Array) -> jax.Array:
    y = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    mean = y.mean(-1, keepdims=True)
    variance = ((y - mean) ** 2).mean(-1, keepdims=True)
    return ((y - mean) * lax.rsqrt(variance + 1e-5) * gain + bias).astype(x.dtype)


def rms_norm(x: jax.Array, gain: jax.Array, bias: jax.Array) -> jax.Array:
    y = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return (y * lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * gain


def softmaxes(x: jax.Array, gain: jax.Array, bias: jax.Array) -> tuple[jax.Array, ...]:
    return tuple(jax.nn.softmax(x + bias, axis) for axis in (-1, 0, 1, (1, 2), (0, 1, 2)))


def log_softmaxes(x: jax.Array, gain: jax.Array, bias: jax.Array) -> tuple[jax.Array, ...]:
    return tuple(jax.nn.log_softmax(x * gain, axis) for axis in (-1, 0, 1))


def activations(x: jax.Array, gain: jax.Array, bias: jax.Array) -> tuple[jax.Array, ...]:
    y = x * gain + bias
    return jax.nn.gelu(y), jax.nn.gelu(y, approximate=False), jax.nn.silu(y), jax.nn.softplus(y), jax.nn.elu(y)


def standardised(x: jax.Array, gain: jax.Array, bias: jax.Array) -> tuple[jax.Array, ...]:
    """Along the first axis, which no row kernel serves."""
    mean, deviation = x.mean(0), x.std(0) + 0.1
    return (x - mean) / deviation * gain, mean, deviation


FAMILIES = [layer_norm, rms_norm, softmaxes, log_softmaxes, activations, standardised]


@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "float64"))
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_rows(family: Callable[..., Any], dtype: str) -> None:
    specs = [("b, s, d", dtype), ("d", dtype), ("d", dtype)]
    sizes = ROWS if dtype == "float32" else ROWS[1::3]
    check(family, specs, sizes, ulps=6 if dtype == "bfloat16" else 32, floor=1.0)


@pytest.mark.slow
def test_cross_entropy_and_its_gradient() -> None:
    def loss(logits: jax.Array, labels: jax.Array, weights: jax.Array) -> jax.Array:
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1, mode="clip")[..., 0]
        return -(picked * weights).sum() / (1 + weights.sum())

    def function(logits: jax.Array, labels: jax.Array, weights: jax.Array) -> Any:
        one_hot = (labels[..., None] == jnp.arange(logits.shape[-1])).astype(logits.dtype)
        dense = -(one_hot * jax.nn.log_softmax(logits)).sum(-1)
        right = jnp.argmax(logits, -1) == labels
        return loss(logits, labels, weights), dense, right.sum(), jax.grad(dense_loss)(logits, labels)

    def dense_loss(logits: jax.Array, labels: jax.Array) -> jax.Array:
        one_hot = (labels[..., None] == jnp.arange(logits.shape[-1])).astype(logits.dtype)
        return -(one_hot * jax.nn.log_softmax(logits)).sum()

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        if dtype == "int32":
            return np.random.default_rng(seed).integers(0, 5, shape).astype(np.int32)
        return abs(random_array(shape, dtype, seed)) if len(shape) == 2 else random_array(shape, dtype, seed)

    specs: list[Spec] = [("b, s, d", "float32"), ("b, s", "int32"), ("b, s", "float32")]
    check(function, specs, ROWS, inputs=inputs, ulps=64, floor=1.0)


def test_attention() -> None:
    def function(x: jax.Array, wq: jax.Array, wk: jax.Array) -> tuple[jax.Array, ...]:
        b, s, _ = x.shape
        q, k = ((x @ w).reshape(b, s, 2, 4) for w in (wq, wk))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2
        causal = jnp.arange(s)[:, None] >= jnp.arange(s)[None, :]
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), -1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, k).reshape(b, s, 8), weights

    specs = [("b, s, 8", "float32"), ("8, 8", "float32"), ("8, 8", "float32")]
    sizes = [{"b": r["b"], "s": s} for r, s in zip(ROWS, (1, 2, 3, 15, 16, 17, 31, 33, 97, 64), strict=True)]
    check(function, specs, sizes, ulps=512, floor=1.0)


@pytest.mark.slow
def test_gradients_of_a_block() -> None:
    def function(x: jax.Array, w: jax.Array, gain: jax.Array) -> Any:
        def loss(w: jax.Array, gain: jax.Array) -> jax.Array:
            h = layer_norm(x, gain, jnp.zeros_like(gain))
            return (jax.nn.gelu(h @ w) ** 2).mean()

        return jax.value_and_grad(loss, argnums=(0, 1))(w, gain)

    specs = [("b, s, d", "float32"), ("d, 7", "float32"), ("d", "float32")]
    check(function, specs, [r for r in ROWS if r["d"] > 2], ulps=512, floor=1.0)


@pytest.mark.slow
def test_rotary_and_masks() -> None:
    """Slices, concatenations and iotas inside one kernel."""

    def function(x: jax.Array, mask: jax.Array) -> tuple[jax.Array, ...]:
        b, s, d = x.shape
        half = d // 2
        angle = jnp.arange(s)[:, None] * jnp.exp(-jnp.arange(half) / half)[None, :]
        left, right = x[..., :half], x[..., half:]
        turned = jnp.concatenate(
            [left * jnp.cos(angle) - right * jnp.sin(angle), right * jnp.cos(angle) + left * jnp.sin(angle)], -1
        )
        kept = jnp.where(mask[..., None], turned, 0)
        return kept, kept.sum(1) / jnp.maximum(mask.sum(1, keepdims=True), 1), jnp.cos(angle)

    sizes = [{"b": b, "s": s, "d": d} for b, s, d in [(1, 1, 1), (2, 3, 4), (3, 17, 8), (2, 33, 16), (1, 97, 17)]]
    check(function, [("b, s, 2*d", "float32"), ("b, s", "bool")], sizes, ulps=512, floor=1.0)


@pytest.mark.slow
def test_moved_rows_meet_the_rows_they_come_from() -> None:
    """A row kernel holds the sums of one row at a time; what reads another row, or another column, comes later."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        p, e = jax.nn.softmax(x, -1), jnp.exp(x / 4)
        total = e.sum(-1, keepdims=True)
        both = jnp.concatenate([p, e], 1)
        return (
            p + lax.rev(p, (0,)),
            p * lax.rev(p, (1,)),
            e / total + lax.rev(e, (1,)),
            lax.rev(e, (0,)) / total - e,
            jnp.maximum(p, lax.slice_in_dim(both, 1, None, 2, 1)),
            p + jnp.pad(p, ((1, 0), (0, 1)))[:-1, 1:],
            (p + lax.rev(p, (0,))).sum(-1),
        )

    sizes = [{"m": m, "n": n} for m, n in [(1, 1), (1, 17), (2, 3), (3, 16), (17, 33), (5, 97), (2, 4100)]]
    check(function, [("m, n", "float32")], sizes, ulps=64, floor=0.1)


@pytest.mark.slow
def test_a_long_chain_of_mixed_ops() -> None:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        z = jnp.pad(x, ((0, 0), (1, 1)))
        for i in range(6):
            z = jnp.tanh(z * y[:, None]) + jnp.flip(z, -1) / (i + 2)
            z = z.T.reshape(z.shape[0], -1) if i % 2 else z - z.mean(0)
        return z, z.max(-1), (z > 0).sum(), jnp.concatenate([z, z[:, :1]], 1)[:, ::2]

    sizes = [{"m": m, "n": n} for m, n in [(1, 1), (2, 3), (3, 16), (17, 15), (5, 33), (33, 7)]]
    check(function, [("m, n", "float32"), ("m", "float32")], sizes, ulps=512, floor=1.0)


@pytest.mark.slow
def test_mixed_widths_in_one_kernel() -> None:
    """Bytes, words and doubles side by side: the lanes follow the widest."""

    def function(a: jax.Array, b: jax.Array, c: jax.Array, d: jax.Array) -> tuple[jax.Array, ...]:
        wide = a.astype(jnp.float64) + b.astype(jnp.float64) * c.astype(jnp.float64)
        return (
            wide,
            jnp.where(d, a, b.astype(jnp.int8)),
            (wide > 0) & d,
            wide.astype(jnp.bfloat16),
            (a.astype(jnp.int64) << 33) + c.astype(jnp.int64),
            jnp.where(d, wide, 0).sum(-1),
        )

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        numbers = random_array(shape, "int8", seed)
        return numbers > 0 if dtype == "bool" else numbers.astype(dtype_of(dtype))

    specs: list[Spec] = [("s, d", "int8"), ("s, d", "bfloat16"), ("s, d", "float32"), ("s, d", "bool")]
    check(function, specs, ROWS, inputs=inputs, ulps=2)


def test_values_read_along_rows_and_columns_are_not_fused_with_what_reads_them() -> None:
    """`v` is a row's value and a column's in the product; a later op that reads `v` and the sums joins neither."""

    def function(x: Any) -> Any:
        v = x + x
        sums = (v[:, None] * v[None, :]).sum(1)
        larger = jnp.maximum(x, v)
        both = jnp.maximum(larger, sums)
        return (larger[:, None] * both[None, :]).sum(1), both

    check(function, [("n", "int32")], [{"n": n} for n in WIDTHS], inputs=small_integers)
