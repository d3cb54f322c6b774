# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose compile time is bounded: each is many of one kind, or one kind deeply nested (`compile_time.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.ode import odeint

Function = Callable[..., Any]


class Program(NamedTuple):
    """A function, the symbolic shapes of its arguments, and the sizes for which XLA compiles it."""

    function: Function
    shapes: Sequence[str]
    sizes: dict[str, int]


def one(function: Function, shape: str = "b, d") -> Program:
    """A program of one argument, with sizes `b` and `d`."""
    return Program(function, [shape], {"b": 16, "d": 64})


def _weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 0.1


# ---- chains, sums and trees of elementwise ops -----------------------------------------------------------------------


def chain(count: int) -> Function:
    """`count` elementwise ops one after the other."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            x = x * 0.99 if i % 2 else x + 0.5
        return x

    return function


def steps(count: int) -> Function:
    """`count` steps x + sin(x) / 10."""

    def function(x: jax.Array) -> jax.Array:
        for _ in range(count):
            x = x + 0.1 * jnp.sin(x)
        return x

    return function


def sum_of(function: Function, count: int) -> Function:
    """The sum of `function` at `count` multiples of x."""
    return lambda x: sum(function(x * (0.01 * i)) for i in range(1, count + 1))


def tree(depth: int) -> Function:
    """A balanced tree of 2 ** depth leaves, in turns of products, sums and maxima."""
    ops = (jnp.add, jnp.multiply, jnp.maximum)

    def node(x: jax.Array, level: int, index: int) -> jax.Array:
        if level == depth:
            return x + (0.1 * index)
        return ops[level % 3](node(x, level + 1, 2 * index), node(x, level + 1, 2 * index + 1))

    return lambda x: node(x, 0, 1)


def runge_kutta(count: int) -> Function:
    """`count` unrolled steps of the classical Runge-Kutta method for a damped pendulum (angle and speed stacked)."""

    def derivative(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        angle, speed = state
        return speed, -jnp.sin(angle) - 0.1 * speed

    def along(state: Any, slope: Any, step: float) -> Any:
        return jax.tree.map(lambda s, k: s + step * k, state, slope)

    def function(angle: jax.Array) -> jax.Array:
        state = (angle, jnp.zeros_like(angle))
        for _ in range(count):
            k1 = derivative(state)
            k2 = derivative(along(state, k1, 0.05))
            k3 = derivative(along(state, k2, 0.05))
            k4 = derivative(along(state, k3, 0.1))
            for weight, slope in ((1, k1), (2, k2), (2, k3), (1, k4)):
                state = along(state, slope, weight * 0.1 / 6)
        return state[0]

    return function


def rolled(count: int) -> Function:
    """x + roll(x), `count` times over."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(1, count + 1):
            x = x + jnp.roll(x, i)
        return x

    return function


# ---- control flow ----------------------------------------------------------------------------------------------------


def nested_loops(depth: int) -> Function:
    """`fori_loop`s within each other, each with an op behind the inner one."""

    def nest(level: int, x: jax.Array) -> jax.Array:
        if level == 0:
            return jnp.sin(x) * 0.5
        return lax.fori_loop(0, 2, lambda i, carried: nest(level - 1, carried) + x * 0.1, x)

    return lambda x: nest(depth, x)


def nested_whiles(depth: int) -> Function:
    """`while_loop`s within each other, whose conditions read data."""

    def nest(level: int, x: jax.Array) -> jax.Array:
        if level == 0:
            return jnp.tanh(x) * 0.5
        step = lambda carried: nest(level - 1, carried) * 0.9 + 0.01 * x  # noqa: E731
        return lax.while_loop(lambda carried: jnp.max(carried) > 0.1 * level, step, x)

    return lambda x: nest(depth, x)


def tree_of_conds(depth: int) -> Function:
    """Conditionals within both branches of each other, 2 ** depth leaves."""

    def nest(level: int, x: jax.Array, scale: float) -> jax.Array:
        if level == 0:
            return jnp.sin(x) * scale
        branches = [lambda y, s=s: nest(level - 1, y + s, s) for s in (scale + 1, scale * 0.5)]
        return lax.cond(jnp.sum(x) > scale, *branches, x)

    return lambda x: nest(depth, x, 1.0)


def scans(count: int) -> Function:
    """Recurrences one after the other, over the rows of x."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            w = _weights(64, 64, seed=i)
            step = lambda h, row, w=w: ((new := jnp.tanh(h @ w + row)), new)  # noqa: E731
            x = lax.scan(step, jnp.zeros((64,)), x)[1]
        return x

    return function


def scan_of_layers(count: int) -> Function:
    """A scan over the weights of `count` layers of attention."""
    weights = [_weights(count, 64, 64, seed=i) for i in range(4)]

    def layer(x: jax.Array, w: Any) -> tuple[jax.Array, None]:
        q, k, v = (x @ each for each in w[:3])
        return x + jax.nn.softmax(q @ k.T, axis=-1) @ v @ w[3], None

    return lambda x: lax.scan(layer, x, weights)[0]


def complex_odeint() -> Function:
    """The gradient of an ODE whose state is complex."""

    def solve(x: jax.Array) -> jax.Array:
        times = jnp.linspace(0.0, 1.0, 4)
        state = odeint(lambda y, t: 1j * y * (1.0 + t) - 0.1 * y * jnp.abs(y) ** 2, x.astype(jnp.complex64), times)
        return jnp.sum(jnp.abs(state[-1]) ** 2)

    return jax.grad(solve)


# ---- layers, products and reductions ---------------------------------------------------------------------------------


def layers(count: int) -> Function:
    """Layers tanh(x @ w + x)."""
    w = _weights(64, 64)

    def function(x: jax.Array) -> jax.Array:
        for _ in range(count):
            x = jnp.tanh(x @ w + x)
        return x

    return function


def softmaxes(count: int) -> Function:
    """Layers of a softmax and a residual, some ten ops each."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            x = x + jax.nn.softmax(x * (1.0 + 0.01 * i), axis=-1) - jnp.mean(x, axis=-1, keepdims=True)
        return x

    return function


def perceptron_gradient(count: int) -> Function:
    """The gradient of `count` layers, with respect to their weights and the input."""
    weights = [_weights(64, 64, seed=i) for i in range(count)]

    def loss(x: jax.Array, weights: list[np.ndarray]) -> jax.Array:
        for w in weights:
            x = jax.nn.relu(x @ w) + x
        return jnp.mean(x**2)

    return lambda x: jax.grad(loss, argnums=(0, 1))(x, [jnp.asarray(w) for w in weights])


def dots(count: int) -> Function:
    """Products, each of another shape."""

    def function(x: jax.Array) -> jax.Array:
        return sum(jnp.sum(x @ _weights(64, 8 + i, seed=i)) for i in range(count)) + x

    return function


def batched_dots(count: int) -> Function:
    """Attention scores with 1 to `count` heads of different sizes."""

    def function(x: jax.Array) -> jax.Array:
        total = x
        for i in range(1, count + 1):
            heads = (x @ _weights(64, 8 * i, seed=i)).reshape(x.shape[0], i, 8)
            scores = jax.nn.softmax(jnp.einsum("qhd,khd->hqk", heads, heads), axis=-1)
            total = total + jnp.sum(jnp.einsum("hqk,khd->qhd", scores, heads))
        return total

    return function


def reductions(count: int) -> Function:
    """Reductions over rows and columns in turns, each of what the last one leaves."""
    kinds = (jnp.sum, jnp.max, jnp.min, jnp.mean)

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            x = x - 0.1 * kinds[i % 4](x, axis=i % 2, keepdims=True)
        return x

    return function


def full_reductions(count: int) -> Function:
    """Sums to scalars, each of what the last one scales."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            x = x / (1.0 + jnp.sum(jnp.abs(x) ** (1 + i % 3)))
        return x

    return function


def convolutions(count: int) -> Function:
    """Convolutions with a residual, on 8 channels."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            y = lax.conv_general_dilated(
                x, jnp.asarray(_weights(8, 8, 3, 3, seed=i)), (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")
            )
            x = x + jax.nn.relu(y)
        return x

    return function


def norms(*arguments: jax.Array) -> jax.Array:
    """The norms of matrices, each with rows of its own size."""
    return sum((jnp.sqrt(jnp.sum(jnp.tanh(x) ** 2, axis=0)) for x in arguments), start=jnp.float32(0))


def symbols(count: int) -> Program:
    """`count` sizes of their own."""
    sizes = {"d": 64} | {f"n{i}": 16 + i for i in range(count)}
    return Program(norms, [f"n{i}, d" for i in range(count)], sizes)


# ---- movements of data -----------------------------------------------------------------------------------------------


def gathers(count: int) -> Function:
    """Rows of x at indices read from data, each gather at those of the last."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            rows = jnp.clip(jnp.abs(x[:, i % 64] * 10).astype(jnp.int32), 0, 15)
            x = x + 0.5 * x[rows]
        return x

    return function


def scatters(count: int) -> Function:
    """Additions to rows of x at indices read from data."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            rows = jnp.abs(x[:, i % 64] * 10).astype(jnp.int32) % x.shape[0]
            x = x.at[rows].add(0.1 * x)
        return x

    return function


def updates(count: int) -> Function:
    """`dynamic_update_slice` of a column, one after the other."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            x = lax.dynamic_update_slice(x, jnp.sum(x, axis=1, keepdims=True), (0, i % 64))
        return x

    return function


def transposes(count: int) -> Function:
    """Transposes and reshapes with an op between."""

    def function(x: jax.Array) -> jax.Array:
        for _ in range(count):
            x = jnp.sin(x.reshape(x.shape[0], 8, 8).transpose(0, 2, 1)).reshape(x.shape[0], 64)
        return x

    return function


def sorts(count: int) -> Function:
    """Sorts of the rows of x, each of what the last one leaves."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            x = jnp.sort(x * (-1.0 if i % 2 else 0.5), axis=-1) + x
        return x

    return function


def cumulative_sums(count: int) -> Function:
    """Cumulative sums along both axes in turns."""

    def function(x: jax.Array) -> jax.Array:
        for i in range(count):
            x = jnp.cumsum(x, axis=i % 2) * 0.1
        return x

    return function


def rows_of(x: jax.Array) -> list[jax.Array]:
    """The first 200 rows of x."""
    return [x[i : i + 1] for i in range(200)]


# ---- functions, arguments, results -----------------------------------------------------------------------------------


def calls(count: int) -> Function:
    """Calls of one small function, which JAX keeps a function."""

    @jax.jit
    def small(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.where(x > y, x * 0.5, y + 0.25)

    def function(x: jax.Array) -> jax.Array:
        y = x
        for _ in range(count):
            x, y = small(x, y), x
        return x

    return function


def functions(count: int) -> Function:
    """`count` small functions, called twice each."""

    def made(index: int) -> Function:
        return jax.jit(lambda x: jnp.tanh(x + index * 0.1) if index % 2 else x * (1 + index * 0.01))

    small = [made(i) for i in range(count)]

    def function(x: jax.Array) -> jax.Array:
        for each in small + small[::-1]:
            x = each(x)
        return x

    return function


def randoms(count: int) -> Function:
    """Draws of normal numbers, each with a key of its own."""

    def function(x: jax.Array) -> jax.Array:
        for key in jax.random.split(jax.random.key(0), count):
            x = x + jax.random.normal(key, x.shape)
        return x

    return function


def constants(count: int) -> Function:
    """Products with different arrays that the program holds."""
    return lambda x: sum(x * _weights(64, seed=i) for i in range(count))


def programs() -> dict[str, Program]:
    """All of them, by name."""
    two = {"b": 16, "d": 64}
    return {
        "chain of 100": one(chain(100)),
        "chain of 2000": one(chain(2000)),
        "40 x (x + sin x / 10)": one(steps(40)),
        "100 x (x + sin x / 10)": one(steps(100)),
        "100 sines": one(sum_of(jnp.sin, 100)),
        "100 exponentials": one(sum_of(jnp.exp, 100)),
        "100 hyperbolic tangents": one(sum_of(jnp.tanh, 100)),
        "100 logarithms": one(sum_of(jnp.log, 100)),
        "100 powers": one(sum_of(lambda x: jnp.abs(x) ** 1.3, 100)),
        "tree of 512 leaves": one(tree(9)),
        "10 steps of Runge-Kutta": one(runge_kutta(10)),
        "25 steps of Runge-Kutta": one(runge_kutta(25)),
        "nested loops, depth 12": one(nested_loops(12)),
        "nested while loops, depth 6": one(nested_whiles(6)),
        "nested while loops, depth 12": one(nested_whiles(12)),
        "tree of 64 conditionals": one(tree_of_conds(6)),
        "20 scans": one(scans(20), "b, 64"),
        "scan of 12 layers": one(scan_of_layers(12), "b, 64"),
        "gradient of a complex odeint": one(complex_odeint(), "b"),
        "500 layers": one(layers(500), "b, 64"),
        "20 softmax": one(softmaxes(20)),
        "gradient of 40 layers": one(perceptron_gradient(40), "b, 64"),
        "60 products": one(dots(60), "b, 64"),
        "16 attentions": one(batched_dots(16), "b, 64"),
        "30 reductions": one(reductions(30)),
        "30 sums to scalars": one(full_reductions(30)),
        "20 convolutions": Program(convolutions(20), ["b, 8, h, h"], {"b": 2, "h": 16}),
        "100 gathers": one(gathers(100), "b, 64"),
        "60 scatters": one(scatters(60), "b, 64"),
        "100 slice updates": one(updates(100), "b, 64"),
        "100 transposes": one(transposes(100), "b, 64"),
        "20 sorts": one(sorts(20)),
        "40 cumulative sums": one(cumulative_sums(40)),
        "concatenation of 200 slices": one(lambda x: jnp.concatenate([x[:, i % 7 :] for i in range(200)], 1), "b, 64"),
        "concatenation of 200 rows": Program(lambda x: jnp.concatenate(rows_of(x)[::-1], 0), ["256, d"], two),
        "concatenation of 200 arguments": Program(lambda *xs: jnp.concatenate(xs, 0), ["b, d"] * 200, two),
        "concatenation of 200 expressions": one(lambda x: jnp.concatenate([x * (1.0 + i) for i in range(200)], 1)),
        "30 rolls": one(rolled(30)),
        "sum of 100 rolls": one(lambda x: sum(jnp.roll(x, i) for i in range(100))),
        "300 calls of a function": one(calls(300)),
        "100 functions": one(functions(100)),
        "20 random draws": one(randoms(20)),
        "300 arguments": Program(lambda *xs: sum(x * (1.0 + i) for i, x in enumerate(xs)), ["b, d"] * 300, two),
        "200 results": one(lambda x: [jnp.sin(x) * i for i in range(200)]),
        "100 results of sums": one(lambda x: [jnp.sum(x * i, axis=i % 2) for i in range(100)]),
        "300 constants": one(constants(300), "b, 64"),
        "32 symbols": symbols(32),
        "x + 1": one(lambda x: x + 1),
    }
