# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several devices: functions of the devices, whose arrays `device_checks.py` compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from tests.pjrt.program_table import ramp

P = PartitionSpec
Devices = Sequence[Any]
CASES: dict[str, Callable[[Devices], Any]] = {}


def case(function: Callable[[Devices], Any]) -> Callable[[Devices], Any]:
    """A program whose results are compared."""
    CASES[function.__name__] = function
    return function


def grid(devices: Devices) -> Mesh:
    """Two times two devices."""
    return Mesh(np.array(devices).reshape(2, 2), ("x", "y"))


def line(devices: Devices) -> Mesh:
    """Four devices in a row."""
    return Mesh(np.array(devices), ("i",))


def manual(mesh: Mesh, body: Callable[..., Any], specs: Any, out: Any, *arrays: Any) -> Any:
    """`body` on the parts of `arrays`."""
    return jax.jit(shard_map(body, mesh=mesh, in_specs=specs, out_specs=out))(*arrays)


def laid(mesh: Mesh, array: Any, *spec: Any) -> Any:
    """An array divided over devices."""
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


# ---- collectives ----------------------------------------------------------------------------------------------------


@case
def reductions(devices: Devices) -> Any:
    def body(a: Any) -> Any:
        return lax.psum(a, "x"), lax.pmean(a, "x"), lax.pmax(a, "x"), lax.pmin(a, "x"), lax.psum(a, ("x", "y"))

    mesh = grid(devices)
    some, everything = P(None, "y"), P()
    return manual(mesh, body, P("x", "y"), (some, some, some, some, everything), ramp(8, 4))


@case
def element_types(devices: Devices) -> Any:
    names = ("int8", "uint8", "int16", "uint32", "int32", "float16", "bfloat16", "complex64")
    arrays = [ramp(8, 3).astype(name) for name in names]
    return manual(line(devices), lambda *a: lax.psum(a, "i"), P("i"), P(), *arrays)


@case
def booleans(devices: Devices) -> Any:
    def body(a: Any) -> Any:
        return lax.pmax(a.astype(jnp.int32), "i"), lax.all_gather(a, "i", tiled=True), lax.ppermute(a, "i", [(0, 3)])

    return manual(line(devices), body, P("i"), (P(), P("i"), P("i")), ramp(8, 3) > 0)


@case
def large_sums_are_repeatable(devices: Devices) -> Any:
    array = np.random.default_rng(0).standard_normal((4, 50_001)).astype(np.float32)
    first, second = (manual(line(devices), lambda a: lax.psum(a, "i"), P("i"), P(), array) for _ in range(2))
    assert np.array_equal(first, second)
    return first


@case
def gathers(devices: Devices) -> Any:
    def body(a: Any) -> Any:
        return lax.all_gather(a, "x", axis=1, tiled=True), lax.all_gather(a, "y"), lax.all_gather(a, ("x", "y"))

    return manual(grid(devices), body, P("x", "y"), (P("x", "y"), P(None, "x", "y"), P(None, "x", "y")), ramp(8, 4))


@case
def scatters(devices: Devices) -> Any:
    def body(a: Any) -> Any:
        tiled = lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True)
        return tiled, lax.psum_scatter(a.astype(jnp.float16), "y", tiled=True)

    return manual(grid(devices), body, P("x", "y"), (P("y", "x"), P("x", "y")), ramp(8, 8))


@case
def exchanges(devices: Devices) -> Any:
    def body(a: Any) -> Any:
        same = lax.all_to_all(a, "i", 1, 1, tiled=True)
        return lax.all_to_all(a, "i", 1, 0, tiled=True), lax.all_to_all(a, "i", 0, 1, tiled=True), same

    return manual(line(devices), body, P("i"), (P("i"), P("i"), P("i")), ramp(16, 8, 3))


@case
def permutations(devices: Devices) -> Any:
    def body(a: Any) -> Any:
        return lax.ppermute(a, "i", [(0, 1), (1, 2), (2, 3), (3, 0)]), lax.ppermute(a, "i", [(3, 0)])

    return manual(line(devices), body, P("i"), (P("i"), P("i")), ramp(8, 3))


@case
def positions(devices: Devices) -> Any:
    def body(a: Any) -> Any:
        return a + lax.axis_index("y") + 10 * lax.axis_index("x") + 100 * lax.axis_index(("x", "y"))

    return manual(grid(devices), body, P("x", "y"), P("x", "y"), ramp(8, 4))


@case
def collectives_in_a_loop(devices: Devices) -> Any:
    def body(a: Any) -> Any:
        step = lambda c, _: (lax.ppermute(c, "i", [(k, (k + 1) % 4) for k in range(4)]) + a, lax.psum(c.sum(), "i"))  # noqa: E731
        return lax.scan(step, a, None, length=5)

    return manual(line(devices), body, P("i"), (P("i"), P()), ramp(8, 3))


@case
def gradient_of_a_manual_loss(devices: Devices) -> Any:
    mesh = grid(devices)

    def loss(w: Any, x: Any) -> Any:
        def body(w: Any, x: Any) -> Any:
            return lax.pmean(jnp.sum(jnp.tanh(x @ w) ** 2), ("x", "y"))

        return shard_map(body, mesh=mesh, in_specs=(P(), P(("x", "y"))), out_specs=P())(w, x)

    return jax.jit(jax.value_and_grad(loss))(ramp(4, 3), ramp(8, 4))


@case
def some_axes_manual(devices: Devices) -> Any:
    mesh = grid(devices)
    body = lambda a: lax.psum(jnp.sin(a) @ jnp.ones((4, 4)), "x")  # noqa: E731
    mapped = shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    return jax.jit(mapped)(laid(mesh, ramp(8, 4), "x", "y"))


@case
def mapped_over_devices(devices: Devices) -> Any:
    mapped = jax.pmap(lambda a: lax.psum(a, "i") + lax.axis_index("i"), axis_name="i", devices=list(devices))
    return mapped(ramp(4, 5))


@case
def devices_in_another_order(devices: Devices) -> Any:
    """The same devices in two orders: JAX moves the parts by a program."""
    turned = Mesh(np.array(devices)[[3, 1, 0, 2]].reshape(2, 2), ("x", "y"))
    a = laid(grid(devices), ramp(8, 4), "x", "y")
    moved = [jax.device_put(a, NamedSharding(turned, P(*spec))) for spec in ((("y", "x"),), ("y",), (None, "x"))]
    assert all(m.sharding.mesh == turned for m in moved)
    return moved, jax.jit(lambda m: (m @ m.T, m.sum(0)))(moved[0])


@case
def sums_made_later(devices: Devices) -> Any:
    """A `shard_map` may leave the sum over an axis to the program around it."""
    explicit = (AxisType.Explicit, AxisType.Explicit)
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=explicit, devices=list(devices))

    def f(a: Any) -> Any:
        sums = shard_map(lambda b: lax.pcast(b.sum(0), "x", to="unreduced"), out_specs=P("y", unreduced={"x"}))(a)
        return jax.sharding.reshard(sums, P("y"))

    with jax.set_mesh(mesh):
        return jax.jit(f)(jax.device_put(ramp(8, 4), P("x", "y")))


# ---- automatic partitioning -----------------------------------------------------------------------------------------


@case
def elementwise_and_products(devices: Devices) -> Any:
    mesh = grid(devices)
    a, b = laid(mesh, ramp(8, 4), "x", "y"), laid(mesh, ramp(4, 6), "y", None)
    return jax.jit(lambda a, b: (jnp.tanh(a @ b) + 1, jax.nn.softmax(a, axis=0), (a @ a.T).sum(), a.T @ a))(a, b)


@case
def batched_products(devices: Devices) -> Any:
    mesh = grid(devices)
    a, b = laid(mesh, ramp(4, 8, 6), "x", "y"), laid(mesh, ramp(4, 6, 10), None, None, "y")
    return jax.jit(lambda a, b: (a @ b, jnp.einsum("bij,bjk->ik", a, b)))(a, b)


@case
def shapes(devices: Devices) -> Any:
    mesh = grid(devices)
    a = laid(mesh, ramp(8, 12), "x", "y")

    def f(a: Any) -> Any:
        heads = a.reshape(8, 4, 3).transpose(1, 0, 2)
        return heads, a.reshape(-1), a.reshape(2, 4, 12), a[:, 2:7], a[::2], jnp.concatenate([a, a]), jnp.flip(a, 1)

    return jax.jit(f)(a)


@case
def more_shapes(devices: Devices) -> Any:
    a = laid(grid(devices), ramp(8, 12), "y", "x")

    def f(a: Any, i: Any) -> Any:
        updated = lax.dynamic_update_slice(a, jnp.ones((8, 2)), (0, i))
        return (
            updated,
            lax.dynamic_slice(a, (0, i), (8, 5)),
            jnp.pad(a, ((0, 0), (1, 2))),
            a[:, None] * jnp.ones((1, 3, 1)),
        )

    return jax.jit(f)(a, 3)


@case
def reversals(devices: Devices) -> Any:
    """Reverses dimensions that are divided, by one or two axes, and others; the results lie as the operands do."""
    turned = Mesh(np.array(devices)[[3, 1, 0, 2]].reshape(2, 2), ("x", "y"))
    specs = (
        (grid(devices), ("x", "y")),
        (grid(devices), (("y", "x"), None)),
        (turned, ("x", "y")),
        (turned, (None, "x")),
    )
    found = []
    for mesh, spec in specs:
        a = laid(mesh, ramp(8, 4), *spec)
        found.append(jax.jit(lambda a: (jnp.flip(a, 0), jnp.flip(a, 1), jnp.flip(a), jnp.flip(a[::2], 0)))(a))
        assert all(r.sharding.is_equivalent_to(a.sharding, 2) for r in found[-1][:3])
    return found


@case
def sums_and_orders(devices: Devices) -> Any:
    a = laid(grid(devices), np.sin(ramp(8, 12) * 50), "x", "y")

    def f(a: Any) -> Any:
        sorts = jnp.sort(a, axis=0), jnp.argsort(a, axis=1), jnp.argmax(a, axis=1), jnp.cumsum(a, axis=0)
        return *sorts, a.sum(0), a.max(), a.min(1), jnp.prod(a, 0), (a > 0).any(1), (a > -2).all(), jnp.var(a, axis=1)

    return jax.jit(f)(a)


@case
def one_operand_without_a_layout(devices: Devices) -> Any:
    a = laid(line(devices), ramp(8, 4), "i")
    f = lambda a, b: (a + b, a * jnp.arange(8.0)[:, None], jnp.where(a > b, a, 2.0), a @ b.T, jnp.zeros((8, 4)) + a)  # noqa: E731
    return jax.jit(f)(a, ramp(8, 4) * 2)


@case
def lookups(devices: Devices) -> Any:
    mesh = grid(devices)
    table, rows = laid(mesh, ramp(10, 8), None, "y"), laid(mesh, np.arange(8, dtype=np.int32).reshape(4, 2), "x")

    def f(table: Any, rows: Any) -> Any:
        return table[rows].sum()

    return jax.jit(jax.value_and_grad(f))(table, rows), jax.jit(lambda t, r: t[r])(table, rows)


@case
def loops_and_branches(devices: Devices) -> Any:
    a = laid(grid(devices), ramp(8, 4), "x", "y")

    def f(a: Any) -> Any:
        scanned = lax.scan(lambda c, row: (c + row * 2, jnp.sin(c)), jnp.zeros(4), a)
        total = lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 0.5 + a), (0, jnp.zeros((8, 4))))
        return (
            scanned,
            total,
            lax.cond(a.sum() > 0, lambda: a * 2, lambda: jnp.cos(a)),
            lax.fori_loop(0, 3, lambda i, x: x + i, a),
        )

    return jax.jit(f)(a)


@case
def constrained(devices: Devices) -> Any:
    mesh = grid(devices)

    def f(a: Any) -> Any:
        turned = lax.with_sharding_constraint(a * 2, NamedSharding(mesh, P("y", "x")))
        whole = lax.with_sharding_constraint(turned + 1, NamedSharding(mesh, P()))
        return turned, whole, lax.with_sharding_constraint(whole - 1, NamedSharding(mesh, P(("x", "y"))))

    return jax.jit(f)(laid(mesh, ramp(8, 4), "x", "y"))


@case
def layouts_left_open(devices: Devices) -> Any:
    """Layouts that an annotation leaves open stay as they are."""
    mesh = grid(devices)
    a = laid(mesh, ramp(8, 4), "x", "y")
    twice = shard_map(lambda a: a * 2, mesh=mesh, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"})
    free = NamedSharding(mesh, P(P.UNCONSTRAINED, None))
    first, second = jax.jit(lambda a: (twice(a), lax.with_sharding_constraint(a + 1, free)))(a)
    assert first.sharding == a.sharding and second.sharding == NamedSharding(mesh, P("x")), second.sharding
    return first, second


@case
def laid_results(devices: Devices) -> Any:
    mesh = grid(devices)
    shardings = (NamedSharding(mesh, P("y", "x")), NamedSharding(mesh, P()))
    first, second = jax.jit(lambda a: (a + 1, a.sum(0)), out_shardings=shardings)(laid(mesh, ramp(8, 4), "x", "y"))
    assert first.sharding == shardings[0] and second.sharding == shardings[1], (first.sharding, second.sharding)
    return first, second


@case
def convolution(devices: Devices) -> Any:
    x = laid(line(devices), ramp(8, 3, 9, 9), "i")
    k = ramp(4, 3, 3, 3)

    def f(k: Any, x: Any) -> Any:
        return jnp.sum(lax.conv(x, k, (1, 1), "SAME") ** 2)

    return jax.jit(jax.grad(f, argnums=(0, 1)))(k, x)


@case
def random_numbers(devices: Devices) -> Any:
    sharding = NamedSharding(line(devices), P("i"))
    return jax.jit(lambda key: jax.random.normal(key, (8, 5)), out_shardings=sharding)(jax.random.key(3))


def _parameters() -> dict[str, Any]:
    return {"embed": ramp(16, 8), "w1": np.sin(ramp(8, 12)), "b1": ramp(12) / 9, "w2": np.cos(ramp(12, 16))}


def _train(step_inputs: Callable[[Mesh, dict[str, Any], Any], tuple[Any, Any]], mesh: Mesh) -> Any:
    """Three steps of gradient descent with momentum."""

    def loss(p: Any, tokens: Any) -> Any:
        h = jax.nn.gelu(p["embed"][tokens] @ p["w1"] + p["b1"])
        logits = jax.nn.log_softmax(h @ p["w2"])
        return -jnp.take_along_axis(logits, tokens[..., None], axis=-1).mean()

    def step(p: Any, m: Any, tokens: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(p, tokens)
        m = jax.tree.map(lambda m, g: 0.9 * m + g, m, gradient)
        return jax.tree.map(lambda p, m: p - 0.1 * m, p, m), m, value

    tokens = np.arange(8 * 5, dtype=np.int32).reshape(8, 5) % 16
    p, tokens = step_inputs(mesh, _parameters(), tokens)
    m = jax.tree.map(jnp.zeros_like, p)
    stepper = jax.jit(step, donate_argnums=(0, 1))
    values = []
    for _ in range(3):
        p, m, value = stepper(p, m, tokens)
        values.append(value)
    return p, values


@case
def data_parallel_training(devices: Devices) -> Any:
    def inputs(mesh: Mesh, p: Any, tokens: Any) -> Any:
        return jax.tree.map(lambda v: laid(mesh, v), p), laid(mesh, tokens, "i")

    return _train(inputs, line(devices))


@case
def tensor_parallel_training(devices: Devices) -> Any:
    specs = {"embed": (None, "y"), "w1": (None, "y"), "b1": ("y",), "w2": ("y", None)}

    def inputs(mesh: Mesh, p: Any, tokens: Any) -> Any:
        return {name: laid(mesh, v, *specs[name]) for name, v in p.items()}, laid(mesh, tokens, "x")

    return _train(inputs, grid(devices))


@case
def fully_sharded_training(devices: Devices) -> Any:
    def inputs(mesh: Mesh, p: Any, tokens: Any) -> Any:
        return {name: laid(mesh, v, "i") for name, v in p.items()}, laid(mesh, tokens, "i")

    return _train(inputs, line(devices))
