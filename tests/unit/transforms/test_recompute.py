# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that a kernel computes again: which ones, and that no number changes by it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc import Executable, Options
from shlo_disc.transforms.decisions import Decisions
from shlo_disc.transforms.fusion import grouping
from shlo_disc.transforms.fusion.minimum_cut import SINK, SOURCE, Network
from shlo_disc.transforms.fusion.recompute import RECOMPUTE

ROWS = (1, 2, 15, 16, 17, 61)
WIDTH = 33


def both(
    monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], *specs: Any, computes: bool = True
) -> tuple[Executable, Executable]:
    """The program, and the program that reads all values from memory; the first `computes` some again, or none."""
    taken: list[str] = []
    take = Decisions.take

    def noted(self: Decisions, pattern: str = "fusion", *rest: Any) -> bool:
        taken.append(pattern)
        return take(self, pattern, *rest)

    options = Options(strict=True)
    with monkeypatch.context() as patch:
        patch.setattr(Decisions, "take", noted)
        again = shlo_disc.compile(function, args=specs, options=options)
    assert (RECOMPUTE.name in taken) is computes
    with monkeypatch.context() as patch:
        patch.setattr(grouping, "recompute_elementwise", lambda *_: None)
        plain = shlo_disc.compile(function, args=specs, options=options)
    return again, plain


def check(again: Executable, plain: Executable, *arguments: np.ndarray) -> None:
    """Compares the bits of all results."""
    for left, right in zip(jax.tree.leaves(again(*arguments)), jax.tree.leaves(plain(*arguments)), strict=True):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "gelu": jax.nn.gelu,
    "gelu, exact": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu,
    "mish": jax.nn.mish,
    "softplus": jax.nn.softplus,
    "elu": jax.nn.elu,
    "hard swish": jax.nn.hard_swish,
    "squared relu": lambda x: jax.nn.relu(x) ** 2,
    "cubic": lambda x: x**3 - 0.5 * x * x + x,
    "quotient": lambda x: x / (1 + x * x),
    "selects": lambda x: jnp.where(x > 0.3, x * x, jnp.where(x < -0.3, 2 * x, x * x * x)),
    "largest": lambda x: jnp.maximum(x * x, 1 - x) * jnp.abs(x),
}


SLOW = pytest.mark.slow
ALWAYS = {"gelu", "gelu, exact", "selects", "quotient"}
"""Activations that are tried in each run."""
EXPENSIVE = {"gelu, exact", "softplus", "elu"}
"""Activations whose gradients read but x and a value that is expensive."""


@pytest.mark.parametrize("name", [name if name in ALWAYS else pytest.param(name, marks=SLOW) for name in ACTIVATIONS])
def test_gradients_of_activations(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(w: jax.Array, bias: jax.Array, x: jax.Array) -> jax.Array:
        hidden = ACTIVATIONS[name](x @ w + bias)
        return ((hidden @ w.T) ** 2).sum()

    function = jax.grad(loss, argnums=(0, 1, 2))
    specs = ((f"{WIDTH}, 48", "float32"), ("48", "float32"), (f"b, {WIDTH}", "float32"))
    again, plain = both(monkeypatch, function, *specs, computes=name not in EXPENSIVE)
    w, bias, reference = numbers(WIDTH, 48, seed=1) / 4, numbers(48, seed=2), jax.jit(function)
    for rows in ROWS:
        x = numbers(rows, WIDTH)
        check(again, plain, w, bias, x)
        for found, wanted in zip(again(w, bias, x), reference(w, bias, x), strict=True):
            scale = max(1.0, float(np.abs(wanted).max()))
            np.testing.assert_allclose(np.asarray(found) / scale, np.asarray(wanted) / scale, atol=2e-5)
    assert again.peak_memory(b=61) <= plain.peak_memory(b=61)


def twice(function: Callable[[jax.Array], tuple[jax.Array, ...]]) -> Callable[[jax.Array, jax.Array], Any]:
    """A kernel makes values that another one reads, for a product stands between the two."""

    def f(x: jax.Array, w: jax.Array) -> Any:
        first, *rest = function(x)
        y = first @ w
        return sum((y * value for value in rest), y)

    return f


PROGRAMS: dict[str, Callable[[jax.Array], tuple[jax.Array, ...]]] = {
    "a chain": lambda x: (x + 1, (x + 1) * 2, (x + 1) * 3, ((x + 1) * 2 - 1) * (x + 1)),
    "positions": lambda x: (jnp.sin(x), jnp.sin(x) * jnp.arange(x.shape[1], dtype=x.dtype), jnp.sin(x) - 1),
    "a broadcast": lambda x: (x * x[:1], x * x[:1] + 2, x * x[:1] + 3),
    "rows": lambda x: (x - x.mean(1, keepdims=True), 2 * (x - x.mean(1, keepdims=True)), x * 3),
    "predicates": lambda x: (jnp.sin(x), (jnp.sin(x) > 0).astype(x.dtype), (jnp.sin(x) <= 0.5).astype(x.dtype)),
    "a reshape": lambda x: (x * 2, (x * 2).reshape(-1).reshape(x.shape) + 1, x * 2 + 4),
    "moved": lambda x: (jnp.cos(x), jnp.cos(x)[:, ::-1] + 1, jnp.cos(x) + 2, jnp.cos(x) * 3),
    "shifted": lambda x: (x * 2, jnp.roll(x * 2, 1, 1), x * 2 + 1, jnp.concatenate([x[:, :3] * 2, x[:, 3:] * 3], 1)),
}


@pytest.mark.parametrize("dtype", ["float32", *(pytest.param(dtype, marks=SLOW) for dtype in ("bfloat16", "float16"))])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_of_one_kernel_in_another(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = ((f"b, {WIDTH}", dtype), (f"{WIDTH}, {WIDTH}", dtype))
    function = twice(PROGRAMS[name])
    again, plain = both(monkeypatch, function, *specs)
    w = numbers(WIDTH, WIDTH, seed=1, dtype=jnp.dtype(dtype)) / 4
    for rows in ROWS:
        x = numbers(rows, WIDTH, dtype=jnp.dtype(dtype))
        check(again, plain, x, w)
        wanted = np.asarray(jax.jit(function)(x, w), np.float32)
        tolerance = 1e-5 if dtype == "float32" else 4e-2
        scale = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(np.asarray(again(x, w), np.float32) / scale, wanted / scale, atol=tolerance)


def test_read_in_another_order_and_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: jax.Array, w: jax.Array) -> Any:
        a, b = x * 2 + 1, x * 3 + x * x
        y = jnp.sin(a + b) @ w
        z = jnp.cos(y) @ w
        return (y * a).T + a.T * b.T, z * b - a, jnp.sum(z * b, 0), jnp.sum(z - a, 1), b

    again, plain = both(monkeypatch, f, ("n, n", "float32"), ("n, n", "float32"))
    for n in ROWS:
        x, w = numbers(n, n), numbers(n, n, seed=1)
        check(again, plain, x, w)
        for found, wanted in zip(again(x, w), jax.jit(f)(x, w), strict=True):
            np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=2e-4, atol=2e-4)


UNARY: list[Callable[[Any], Any]] = [jnp.abs, jnp.negative, jnp.sin, lambda v: v + 1, lambda v: v * v, lambda v: v.T.T]
MOVES: list[Callable[[Any], Any]] = [
    lambda v: v[:, ::-1],
    lambda v: jnp.concatenate([v[:, 3:], v[:, :3]], 1),
    lambda v: jnp.pad(v, ((0, 0), (2, 0)))[:, :-2],
    lambda v: jnp.concatenate([v, v[::-1]], 0)[: v.shape[0]],
    lambda v: jnp.broadcast_to(v[:1], v.shape),
]
BINARY: list[Callable[[Any, Any], Any]] = [jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, lambda a, b: a + b[:1]]


def random_program(seed: int) -> Callable[[jax.Array, jax.Array], Any]:
    """Some stages of elementwise values, each of which reads any values before it, with products between them.

    In every second one, values are moved as well.
    """
    unary = UNARY + MOVES * (seed % 2)

    def f(x: jax.Array, w: jax.Array) -> Any:
        draw = random.Random(seed)
        values = [x]
        for _ in range(draw.randint(2, 4)):
            for _ in range(draw.randint(2, 9)):
                made = draw.choice(BINARY)(*draw.choices(values, k=2)) if draw.random() < 0.6 else None
                values.append(draw.choice(unary)(draw.choice(values)) if made is None else made)
            values.append(jnp.tanh(values[-1]) @ w)
            if draw.random() < 0.3:
                values.append(values[-1] - values[-1].mean(1, keepdims=True))
        return [values[-1], *draw.sample(values[1:], 2), sum(draw.sample(values, 4))]

    return f


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=SLOW) for seed in range(8, 60))])
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    specs, options = ((f"b, {WIDTH}", "float32"), (f"{WIDTH}, {WIDTH}", "float32")), Options(strict=True)
    again = shlo_disc.compile(random_program(seed), args=specs, options=options)
    with monkeypatch.context() as patch:
        patch.setattr(grouping, "recompute_elementwise", lambda *_: None)
        plain = shlo_disc.compile(random_program(seed), args=specs, options=options)
    w = numbers(WIDTH, WIDTH, seed=seed) / 8
    for rows in (1, 17):
        check(again, plain, numbers(rows, WIDTH, seed=seed), w)


def test_random_bits_that_several_kernels_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long chains, whose values are read in many places."""

    def f(seed: jax.Array, x: jax.Array) -> Any:
        key, other = jax.random.split(jax.random.wrap_key_data(seed))
        return x + jax.random.normal(key, x.shape), jax.random.randint(other, x.shape, 0, 100)

    specs = (jax.ShapeDtypeStruct((2,), np.uint32), ("b", "float32"))
    again = shlo_disc.compile(f, args=specs, options=Options(strict=True))
    with monkeypatch.context() as patch:
        patch.setattr(grouping, "recompute_elementwise", lambda *_: None)
        plain = shlo_disc.compile(f, args=specs, options=Options(strict=True))
    for n in (1, 4, 33):
        check(again, plain, np.array([7, n], np.uint32), numbers(n))


def test_read_through_several_views(monkeypatch: pytest.MonkeyPatch) -> None:
    """A predicate of two axes is read as one of three, by a broadcast of a reshape."""

    def f(x: jax.Array, w: jax.Array, z: jax.Array) -> jax.Array:
        def as_columns(value: jax.Array) -> jax.Array:
            view = jax.lax.reshape(value, (*value.shape, 1))
            return jax.lax.broadcast_in_dim(view, z.shape, (0, 1, 2))

        mask, cosine = x * 2 > 1, jnp.cos(x)
        y = jnp.take(z, jnp.argsort((cosine @ w).sum(1)), axis=0)
        return jnp.where(as_columns(mask), y, as_columns(cosine * 2))

    specs = (("b, n", "float32"), ("n, n", "float32"), ("b, n, 3", "float32"))
    again, plain = both(monkeypatch, f, *specs)
    text = shlo_disc.compile(f, args=specs, options=Options(strict=True)).as_text("simplify")
    assert "x1xi1, [@b, @n, 1]>" in text, "the reshape is not folded into the broadcast"
    w = numbers(WIDTH, WIDTH, seed=1) / 8
    for rows in ROWS:
        x, z = numbers(rows, WIDTH), numbers(rows, WIDTH, 3, seed=2)
        check(again, plain, x, w, z)
        np.testing.assert_allclose(np.asarray(again(x, w, z)), np.asarray(jax.jit(f)(x, w, z)), rtol=1e-4, atol=1e-5)


def test_inside_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: jax.Array, w: jax.Array) -> jax.Array:
        def step(x: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            a = jnp.tanh(x)
            y = a @ w
            return y * (1 - a) * (1 + a) + (1 - a), y.sum()

        return jax.lax.scan(step, x, None, length=5)  # type: ignore[return-value]

    again, plain = both(monkeypatch, f, (f"b, {WIDTH}", "float32"), (f"{WIDTH}, {WIDTH}", "float32"))
    w = numbers(WIDTH, WIDTH, seed=1) / 8
    for rows in ROWS:
        check(again, plain, numbers(rows, WIDTH), w)


def test_an_expensive_value_is_kept_and_a_small_one_is_read() -> None:
    """One tangent and two values of it: the tangent is read. A bias is doubled once, not for every row."""

    def f(x: jax.Array, w: jax.Array, bias: jax.Array) -> Any:
        a = jnp.tanh(x)
        return (a @ w) * (1 - a) * (1 + a) + 2 * bias

    options = Options(strict=True)
    specs = ((f"b, {WIDTH}", "float32"), (f"{WIDTH}, {WIDTH}", "float32"), (f"{WIDTH}", "float32"))
    text = shlo_disc.compile(f, args=specs, options=options).as_text("fuse")
    assert text.count("stablehlo.tanh") == 1
    assert text.count("stablehlo.subtract") == 1
    functions = [part.partition("{") for part in text.split("func.func")]
    assert any(f"-> tensor<{WIDTH}xf32>" in head and "stablehlo.multiply" in body for head, _, body in functions)


MOVED: dict[str, tuple[Callable[[Any], Any], int]] = {
    "halves": (lambda x: (x * 1.5 + 0.3)[:, :16] * jax.nn.sigmoid((x * 1.5 + 0.3)[:, 16:]), 1),
    "pieces": (lambda x: jnp.concatenate([jax.nn.relu(x), jax.nn.relu(x)[::-1], -jax.nn.relu(x)], 0), 1),
    "functions are read": (lambda x: jnp.tanh(x)[:, :16] * jax.nn.sigmoid(jnp.tanh(x)[:, 16:]), 2),
    "results are read": (lambda x: (x * 2 + 1, (x * 2 + 1)[:, :16] + (x * 2 + 1)[:, 16:]), 2),
}


@pytest.mark.parametrize("name", MOVED)
def test_values_that_only_moves_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cheap ones are computed where they are read, and have no kernel of their own."""
    function, kernels = MOVED[name]
    again, plain = both(monkeypatch, function, ("b, 32", "float32"), computes=kernels == 1)
    assert len(again.kernels) == kernels
    for rows in ROWS:
        check(again, plain, numbers(rows, 32))


# ---- minimum cuts ----------------------------------------------------------------------------------------------------


def cut(edges: dict[tuple[Any, Any], int], behind: set[Any]) -> int:
    """The capacity of the edges into `behind`."""
    return sum(capacity for (start, end), capacity in edges.items() if end in behind and start not in behind)


@pytest.mark.parametrize("seed", range(40))
def test_minimum_cuts_of_random_networks(seed: int) -> None:
    draw = random.Random(seed)
    nodes = list(range(draw.randint(1, 6)))
    places = [(a, b) for a in [SOURCE, *nodes] for b in [*nodes, SINK] if a != b]
    edges = {place: draw.choice((0, 1, 2, 5, 9)) for place in places if draw.random() < 0.5}
    network = Network()
    for (start, end), capacity in edges.items():
        network.add(start, end, capacity)
    found = network.side_of_sink()
    subsets = [{SINK, *chosen} for n in range(len(nodes) + 1) for chosen in itertools.combinations(nodes, n)]
    least = min(cut(edges, subset) for subset in subsets)
    assert SOURCE not in found and cut(edges, found) == least
    assert all(found <= subset for subset in subsets if cut(edges, subset) == least)
