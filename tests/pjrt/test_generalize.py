# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of JAX at several shapes: the second shape makes a symbolic program, which serves the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from shlo_disc import Options
from shlo_disc.pjrt.generalize import generalize
from tests.pjrt.streams import Stream, artifact

KEY = np.array([0, 7], np.uint32)


def draw(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


def indices(count: int, *shape: int) -> np.ndarray:
    """Integers below a count."""
    return np.random.default_rng(1).integers(0, count, shape, dtype=np.int32)


def layer_norm(x: Any, scale: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return scale * centred * lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)


def attention(x: Any, w: Any) -> Any:
    b, s, _ = x.shape
    heads = (x @ w).reshape(b, s, 2, -1).transpose(0, 2, 1, 3)
    hidden = jnp.triu(jnp.full((s, s), -1e9), 1)
    weights = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", heads, heads) + hidden)
    return x + jnp.einsum("bhqk,bhkd->bhqd", weights, heads).transpose(0, 2, 1, 3).reshape(b, s, -1)


def loss(w: Any, x: Any) -> Any:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def convolution(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def countdown(x: Any) -> Any:
    return lax.fori_loop(1, x.shape[0], lambda i, total: total + x[i] * i, jnp.zeros(x.shape[1]))


def branches(x: Any, flag: Any) -> Any:
    return lax.cond(flag > 0, lambda v: jnp.sort(v), lambda v: v[::-1] + v.shape[0], x)


Case = tuple[Callable[..., Any], Sequence[tuple[Any, ...]]]

CASES: dict[str, Case] = {
    "elementwise": (lambda x, y: jnp.exp(x) * y + 1, [(draw(b, s), draw(b, s)) for b, s in ((1, 16), (1, 32), (8, 7))]),
    "softmax": (jax.nn.softmax, [(draw(b, s),) for b, s in ((2, 3), (2, 5), (1, 4), (7, 64))]),
    "layer_norm": (layer_norm, [(draw(b, s, 16), draw(16)) for b, s in ((1, 4), (1, 6), (3, 5), (9, 2))]),
    "attention": (attention, [(draw(b, s, 8), draw(8, 8)) for b, s in ((1, 4), (1, 6), (3, 9))]),
    "mean": (lambda x: x.mean(0), [(draw(b, 5),) for b in (3, 4, 9)]),
    "gather": (lambda e, t: e[t] * 2, [(draw(11, 4), indices(11, b, s)) for b, s in ((1, 4), (1, 6), (3, 8))]),
    "mask": (lambda x, n: jnp.where(jnp.arange(x.shape[1]) < n[:, None], x, 0), [
        (draw(b, s), indices(4, b)) for b, s in ((2, 4), (3, 6), (5, 9))]),
    "tril": (lambda x: jnp.where(jnp.tril(jnp.ones(x.shape, bool)), x, -1), [(draw(n, n),) for n in (4, 6, 9)]),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, 0), (x.shape[0] - 2, 3)), [
        (draw(n, 5), np.int32(n)) for n in (4, 6, 9)]),
    "update": (lambda c, x, i: lax.dynamic_update_slice(c, x, (i, 0)), [
        (draw(n, 3), draw(1, 3), np.int32(2)) for n in (4, 6, 9)]),
    "cache": (lambda c, x: (n := jnp.concatenate([c, x]), n @ x.T), [(draw(n, 3), draw(1, 3)) for n in (4, 6, 9)]),
    "slices": (lambda x: x[1:-1, ::2] * x[2:, : (x.shape[1] + 1) // 2], [(draw(n, n + 1),) for n in (4, 6, 9)]),
    "pad": (lambda x: jnp.pad(x, ((x.shape[0], 1), (0, 2))), [(draw(n, 3),) for n in (4, 6, 10)]),
    "sort": (lambda x: (jnp.sort(x, 0)[::2], jnp.argsort(x, 1)), [(draw(n, 5),) for n in (4, 6, 9)]),
    "argmax": (lambda x: jnp.argmax(x, 1), [(draw(*s),) for s in ((5, 6), (6, 9), (2, 3))]),
    "cumsum": (lambda x: jnp.cumsum(x, 0), [(draw(n, 3),) for n in (5, 6, 9)]),
    "convolution": (convolution, [(draw(b, n, n, 3), draw(3, 3, 3, 4)) for b, n in ((1, 8), (2, 10), (3, 12))]),
    "pooling": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"), [
        (draw(n, n + 2),) for n in (4, 6, 9)]),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c * 2), jnp.zeros(3), x), [(draw(n, 3),) for n in (4, 6, 9)]),
    "loop": (countdown, [(draw(n, 7),) for n in (4, 6, 9)]),
    "branch": (branches, [(draw(n), np.int32(n - 5)) for n in (4, 6, 9)]),
    "gradient": (jax.value_and_grad(loss), [(draw(4, 5), draw(b, 4)) for b in (3, 6, 8)]),
    "random": (lambda k, x: x * jax.random.uniform(k, x.shape), [(KEY, draw(n, 4)) for n in (4, 6, 10)]),
    "table": (lambda x: x * np.sin(np.arange(x.shape[0])).astype(np.float32), [(draw(n),) for n in (4, 6, 9)]),
    "prefix": (lambda x, t: x + t[: x.shape[1]], [(draw(b, s), draw(9)) for b, s in ((2, 4), (3, 6), (1, 9), (4, 9))]),
    "whole_prefix": (lambda x, t: x + t[: x.shape[1]], [(draw(b, s), draw(9)) for b, s in ((2, 9), (3, 6), (5, 1))]),
    "first_row": (lambda x: x + (x[:1] * 2).sum(0), [(draw(n, 3),) for n in (4, 6, 9, 1)]),
    "np_mask": (lambda x: x + np.tril(np.ones(x.shape, bool)), [(draw(n, n),) for n in (5, 6, 9)]),
    "top_k": (lambda x: lax.top_k(x, 3), [(draw(b, n),) for b, n in ((2, 5), (3, 6), (4, 9))]),
    "complex": (lambda x: jnp.abs(lax.complex(x, x + x.shape[0])), [(draw(n),) for n in (4, 6, 9)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_symbolic_program(name: str) -> None:
    """Two compiles serve all shapes, with the results of XLA."""
    function, calls = CASES[name]
    stream = Stream(function)
    how = [stream.check(*args) for args in calls]
    assert how == ["compiled", "compiled_symbolic", *["instance"] * (len(calls) - 2)], stream.reasons


def test_the_first_two_shapes_come_back() -> None:
    """The first program stays as it was compiled; the second shape has become an instance."""
    stream = Stream(jax.nn.softmax)
    how = [stream.check(draw(b, 5)) for b in (3, 4, 3, 4)]
    assert how == ["compiled", "compiled_symbolic", "known", "instance"]


def test_a_size_that_changes_late() -> None:
    """The third shape shows that another size is free: one more compile."""
    stream = Stream(lambda x, w: jnp.tanh(x @ w))
    shapes = ((2, 4), (3, 4), (3, 5), (7, 9))
    assert [stream.check(draw(*s), draw(s[1], 2)) for s in shapes] == [
        "compiled", "compiled_symbolic", "compiled_symbolic", "instance"]  # fmt: skip


def test_a_constant_argument_is_no_argument_when_it_never_changes() -> None:
    """Only constants that change are passed along."""
    stream = Stream(lambda x: jnp.mean(x * 3.0 + np.arange(4, dtype=np.float32), axis=0))
    for b in (3, 4, 9):
        stream.check(draw(b, 4))
    assert [len(found.hidden) for found in stream.symbolic] == [1]


@pytest.mark.slow
def test_many_shapes_of_one_program() -> None:
    """Every shape after the first two is an instance, primes and sizes of a vector among them."""
    stream = Stream(attention)
    shapes = [(b, s) for b in (2, 3, 8) for s in (5, 16, 2, 31)]
    how = [stream.check(draw(b, s, 8), draw(8, 8)) for b, s in shapes]
    assert how == ["compiled", "compiled_symbolic", *["instance"] * 10]


def test_the_compile_cache(tmp_path: Path) -> None:
    """Another process finds the symbolic program of the same programs there."""
    programs = [artifact(jax.nn.softmax, [draw(b, 5)]) for b in (3, 4)]
    options = Options(cache_dir=tmp_path)
    first, second = (generalize(programs, options) for _ in range(2))
    assert (first.executable.compile_count, second.executable.compile_count) == (1, 0)
    assert first.for_table() == second.for_table()
    x = draw(7, 5)
    np.testing.assert_array_equal(first.executable(x), second.executable(x))
    assert generalize([*programs, artifact(jax.nn.softmax, [draw(9, 6)])], options).executable.compile_count == 1
