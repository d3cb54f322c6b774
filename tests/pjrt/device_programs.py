# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several devices, which `test_devices.py` runs in a process of their own.

Each is a function of the devices, run on four of the plugin's and on four of XLA's CPU, whose arrays are compared.
`python -m tests.pjrt.device_programs` prints, as JSON, "ok" or what is wrong for each.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax.experimental import io_callback, serialize_executable
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import xla_client

from tests.pjrt.jax_programs import PLATFORM, ramp

P = PartitionSpec
Devices = Sequence[Any]
CASES: dict[str, Callable[[Devices], Any]] = {}
CHECKS: dict[str, Callable[[Devices], None]] = {}


def case(function: Callable[[Devices], Any]) -> Callable[[Devices], Any]:
    """A program whose results are compared."""
    CASES[function.__name__] = function
    return function


def check(function: Callable[[Devices], None]) -> Callable[[Devices], None]:
    """Something about the devices, with assertions of its own."""
    CHECKS[function.__name__] = function
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


# ---- errors and effects, on the plugin's devices --------------------------------------------------------------------


def refused(program: Callable[[], Any], *texts: str) -> None:
    """Expect an error with these texts."""
    try:
        jax.block_until_ready(program())
    except jax.errors.JaxRuntimeError as error:
        assert all(text in str(error) for text in texts), str(error)
    else:
        raise AssertionError("there is no error")


@check
def devices_that_part(devices: Devices) -> None:
    """Who waits in vain is told so, and the devices go on with the next program."""

    def branch(a: Any) -> Any:
        return lax.cond(lax.axis_index("i") == 0, lambda: lax.psum(a, "i"), lambda: a * 2)

    def trips(a: Any) -> Any:
        return lax.fori_loop(0, jnp.where(lax.axis_index("i") == 0, 3, 2), lambda _, c: lax.psum(c, "i"), a)

    for body in (branch, trips):
        mapped = shard_map(body, mesh=line(devices), in_specs=P("i"), out_specs=P("i"), check_vma=False)
        refused(lambda m=mapped: jax.jit(m)(ramp(8, 3)), "INTERNAL", "wait for others that do not come")
    assert manual(line(devices), lambda a: lax.psum(a, "i"), P("i"), P(), np.ones(4)).tolist() == [4]


@check
def one_device_fails(devices: Devices) -> None:
    def fail(a: Any) -> Any:
        if a.max() == 2:
            raise ValueError("no good")
        return a

    def body(a: Any) -> Any:
        return lax.psum(jax.pure_callback(fail, jax.ShapeDtypeStruct(a.shape, a.dtype), a + lax.axis_index("i")), "i")

    mapped = jax.jit(shard_map(body, mesh=line(devices), in_specs=P("i"), out_specs=P(), check_vma=False))
    refused(lambda: mapped(np.zeros((8, 3), np.float32)), "INTERNAL", "no good")
    assert mapped(np.full(4, 3.0, np.float32)).tolist() == [18]


@check
def effects_happen_once(devices: Devices) -> None:
    calls: list[Any] = []

    def note(a: Any) -> Any:
        calls.append(a)
        return a * 2

    a = laid(line(devices), ramp(8, 3), "i")
    called = lambda a: io_callback(note, jax.ShapeDtypeStruct(a.shape, a.dtype), a) + 1  # noqa: E731
    np.testing.assert_allclose(jax.jit(called)(a), ramp(8, 3) * 2 + 1, rtol=1e-6)
    assert len(calls) == 1
    np.testing.assert_allclose(calls[0], ramp(8, 3))


@check
def written_and_read_again(devices: Devices) -> None:
    a = laid(line(devices), ramp(8, 3), "i")
    parts = serialize_executable.serialize(jax.jit(lambda a: (a.sum(0), a * 2)).lower(a).compile())
    sums, twice = serialize_executable.deserialize_and_load(*parts, execution_devices=devices)(a)
    np.testing.assert_allclose(sums, ramp(8, 3).sum(0), rtol=1e-5)
    assert twice.sharding == a.sharding


@check
def part_of_the_devices(devices: Devices) -> None:
    a = laid(line(devices[2:]), ramp(8, 3), "i")
    result = jax.jit(lambda a: a + a.sum())(a)
    np.testing.assert_allclose(result, ramp(8, 3) + ramp(8, 3).sum(), rtol=1e-5)
    assert result.devices() == set(devices[2:])


@check
def donated_parts(devices: Devices) -> None:
    a = laid(line(devices), ramp(8, 3), "i")
    jax.jit(lambda a: a + 1, donate_argnums=0)(a)
    assert a.is_deleted()


@check
def several_threads(devices: Devices) -> None:
    """Programs of the same devices may run at the same time."""
    program = jax.jit(shard_map(lambda a: lax.psum(a, "i"), mesh=line(devices), in_specs=P("i"), out_specs=P()))
    arrays = [laid(line(devices), ramp(8, 3) + k, "i") for k in range(4)]
    expected = [np.asarray(program(a)) for a in arrays]
    with ThreadPoolExecutor(4) as pool:
        for result, k in pool.map(lambda k: (program(arrays[k % 4]), k % 4), range(60)):
            assert np.array_equal(result, expected[k])


BODY = """({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.NAME %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32> })"""

REPLICAS = f"""module attributes {{mhlo.num_replicas = 4 : i32}} {{
  func.func @main(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<ui32>) {{
    %s = "stablehlo.all_reduce"(%x) <{{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}}>
      {BODY.replace("NAME", "add")} : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %g = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64,
      replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}}> : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %t = "stablehlo.reduce_scatter"(%x) <{{scatter_dimension = 0 : i64,
      replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}}>
      {BODY.replace("NAME", "maximum")} : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %i = stablehlo.replica_id : tensor<ui32>
    return %s, %g, %t, %i : tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<ui32> }} }}"""


@check
def replicas_of_any_size(devices: Devices) -> None:
    """A program of replicas in StableHLO, of dynamic sizes; JAX itself writes neither."""
    options = xla_client.CompileOptions()
    options.num_replicas = 4
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(4).reshape(4, 1))
    client = devices[0].client
    program = client.compile_and_load(REPLICAS, xla_client.DeviceList(tuple(devices)), options)
    for size in (2, 6):
        whole = ramp(4 * size, 2)
        found = program.execute_sharded([laid(line(devices), whole, "i")])
        sums, everything, most, numbers = (np.array(part) for part in found.disassemble_into_single_device_arrays())
        parts = whole.reshape(4, size, 2)
        np.testing.assert_array_equal(sums, np.repeat(parts[::2] + parts[1::2], 2, axis=0))
        np.testing.assert_array_equal(everything, np.tile(whole, (4, 1, 1)))
        np.testing.assert_array_equal(most, np.maximum(parts[::2], parts[1::2]).reshape(4, size // 2, 2))
        assert numbers.tolist() == [0, 1, 2, 3]


# ---------------------------------------------------------------------------------------------------------------------


def outcome(program: Callable[[Devices], Any]) -> str:
    """ "ok", or how the results differ."""
    results = []
    for platform in (PLATFORM, "cpu"):
        devices = jax.devices(platform)[:4]
        with jax.default_device(devices[0]):
            results.append(jax.tree.leaves(program(devices)))
    for ours, theirs in zip(*results, strict=True):
        assert {d.platform for d in ours.devices()} == {PLATFORM}
        wide = np.asarray(theirs).astype(np.complex128)
        loose = 2e-2 if theirs.dtype in (jnp.float16, jnp.bfloat16) else 2e-5
        np.testing.assert_allclose(np.asarray(ours).astype(np.complex128), wide, rtol=loose, atol=loose)
        assert ours.dtype == theirs.dtype
    return "ok"


def run(name: str) -> str:
    """The outcome, or the failure."""
    try:
        if name in CASES:
            return outcome(CASES[name])
        CHECKS[name](jax.devices(PLATFORM)[:4])
        return "ok"
    except Exception:
        return traceback.format_exc()[-3000:]


if __name__ == "__main__":
    print(json.dumps({name: run(name) for name in (*CASES, *CHECKS)}))
