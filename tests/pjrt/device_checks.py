# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several devices of the plugin, which `test_devices.py` runs in a process of their own.

Those of `device_programs.py` run on four devices of the plugin and on four of XLA's CPU; here are those with assertions
of their own. `python -m tests.pjrt.device_checks [NAME ...]` prints, as JSON, "ok" or what is wrong for each, and "left
out" for those that are not named, where any are.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax._src.config import use_shardy_partitioner
from jax.experimental import io_callback, serialize_executable
from jax.experimental.custom_partitioning import custom_partitioning
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding
from jaxlib import xla_client

from shlo_disc.runtime.native_module import plugin_programs
from tests.pjrt import custom_partitioning_programs, unreduced_programs  # noqa: F401 - they add to CASES
from tests.pjrt.device_programs import CASES, Devices, P, grid, laid, line, manual
from tests.pjrt.program_table import PLATFORM, ramp, refused
from tests.pjrt.unreduced_programs import explicit, left

CHECKS: dict[str, Callable[[Devices], None]] = {}


def check(function: Callable[[Devices], None]) -> Callable[[Devices], None]:
    """Something about the devices, with assertions of its own."""
    CHECKS[function.__name__] = function
    return function


@check
def devices_that_part(devices: Devices) -> None:
    """A device that waits in vain gets an error, and the devices go on with the next program."""

    def branch(a: Any) -> Any:
        return lax.cond(lax.axis_index("i") == 0, lambda: lax.psum(a, "i"), lambda: a * 2)

    def trips(a: Any) -> Any:
        return lax.fori_loop(0, jnp.where(lax.axis_index("i") == 0, 3, 2), lambda _, c: lax.psum(c, "i"), a)

    for body in (branch, trips):
        mapped = shard_map(body, mesh=line(devices), in_specs=P("i"), out_specs=P("i"), check_vma=False)
        refused(lambda m=mapped: jax.jit(m)(ramp(8, 3)), "INTERNAL", "wait for others that do not come")
    assert manual(line(devices), lambda a: lax.psum(a, "i"), P("i"), P(), np.ones(4)).tolist() == [4]


def _weights(mesh: Mesh, specs: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sizes = {"a": (16, 32), "b": (32,), "c": (32, 16)}
    return {name: laid(mesh, 0.2 * rng.standard_normal(sizes[name], np.float32), *specs[name]) for name in sizes}


def _loss(weights: dict[str, Any], x: Any) -> Any:
    scores = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", x, jnp.tanh(x)))
    hidden = jax.nn.gelu(jnp.einsum("bqk,bkd->bqd", scores, x) @ weights["a"] + weights["b"])
    return jnp.mean((hidden @ weights["c"] - x) ** 2)


def _step(weights: dict[str, Any], x: Any) -> Any:
    loss, gradients = jax.value_and_grad(_loss)(weights, x)
    return loss, jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


WHOLE: dict[str, Any] = {"a": (), "b": (), "c": ()}
DIVIDED: dict[str, Any] = {"a": (None, "m"), "b": ("m",), "c": ("m", None)}
LAYOUTS = {
    "data parallel": ((4, 1), WHOLE, ("d",)),
    "tensor parallel": ((1, 4), DIVIDED, ()),
    "both": ((2, 2), DIVIDED, ("d",)),
}


@check
def one_program_serves_all_shapes(devices: Devices) -> None:
    """Each way to lay a train step over devices needs one program as it is, and at most two with symbols."""
    hosts = jax.devices("cpu")[:4]
    shapes = [(8, 5), (12, 7), (20, 3), (4, 6), (24, 11)]
    for grid_of, specs, spec in LAYOUTS.values():
        step, before, compiled = jax.jit(_step), dict(plugin_programs().counts), []
        for batch, length in shapes:
            x = ramp(batch * length, 16).reshape(batch, length, 16) % 7 - 3
            found = []
            for ds in (devices, hosts):
                mesh = Mesh(np.array(ds).reshape(grid_of), ("d", "m"))
                found.append(jax.tree.leaves(step(_weights(mesh, specs), laid(mesh, x, *spec))))
            for ours, theirs in zip(*found, strict=True):
                assert ours.sharding.is_equivalent_to(
                    NamedSharding(Mesh(np.array(devices).reshape(grid_of), ("d", "m")), theirs.sharding.spec), ours.ndim
                )
                np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-4, atol=1e-5)
            compiled.append(plugin_programs().counts["compiled"] - before["compiled"])
        symbolic = plugin_programs().counts["compiled_symbolic"] - before["compiled_symbolic"]
        assert compiled[-1] == 1 and 1 <= symbolic <= 2, (compiled, symbolic)


@check
def a_manual_program_serves_all_shapes(devices: Devices) -> None:
    mesh = line(devices)

    def body(a: Any, b: Any) -> Any:
        gathered = lax.all_gather(a, "i", axis=0, tiled=True)
        moved = lax.ppermute(b, "i", [(n, (n + 1) % 4) for n in range(4)])
        split = lax.all_to_all(gathered, "i", 1, 0, tiled=True)
        return lax.psum_scatter(gathered, "i", scatter_dimension=0, tiled=True), moved + lax.axis_index("i"), split

    function = jax.jit(shard_map(body, mesh=mesh, in_specs=(P("i"), P("i")), out_specs=P("i")))
    before = dict(plugin_programs().counts)
    for rows in (8, 12, 4, 20, 28):
        a, b = ramp(rows, 8), ramp(2 * rows, 3)
        scattered, moved, split = map(np.asarray, function(a, b))
        np.testing.assert_allclose(scattered, 4 * a)
        parts = np.split(b, 4)
        np.testing.assert_allclose(moved, np.concatenate([parts[(n - 1) % 4] + n for n in range(4)]))
        columns = np.split(np.concatenate([a] * 4), 4)
        expected = [np.concatenate([np.split(column, 4, 1)[n] for column in columns]) for n in range(4)]
        np.testing.assert_allclose(split, np.concatenate(expected))
    counts = plugin_programs().counts
    assert counts["compiled"] - before["compiled"] == 1
    assert counts["instances"] - before["instances"] >= 2


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


@check
def threads_are_used_again(devices: Devices) -> None:
    """A call starts no threads that the one before it started; the child of a fork starts its own."""
    program = jax.jit(shard_map(lambda a: lax.psum(a, "i"), mesh=line(devices), in_specs=P("i"), out_specs=P()))
    a = laid(line(devices), ramp(8, 3), "i")
    expected = np.asarray(program(a))
    threads = set(os.listdir("/proc/self/task"))
    for _ in range(50):
        assert np.array_equal(program(a), expected)
    assert set(os.listdir("/proc/self/task")) == threads
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX advises against forks
        child = os.fork()
    if child == 0:
        is_right = False
        try:
            is_right = np.array_equal(program(a), expected)
        finally:
            os._exit(not is_right)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(program(a), expected)


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


@check
def parts_by_columns(devices: Devices) -> None:
    """Each device's part lies in the order that is stated, or as it comes out."""
    mesh = Mesh(np.array(devices).reshape(2, 2), ("x", "y"))
    columns = Format(Layout((1, 0)), NamedSharding(mesh, P("x", "y")))
    a = jax.device_put(ramp(8, 4), columns)

    def f(a: Any) -> Any:
        turned = lax.with_sharding_constraint(a.T, Format(Layout((1, 0)), NamedSharding(mesh, P("y"))))
        return a @ a.T, a.T, turned, a.sum(0)

    auto = Format(Layout.AUTO)
    results = jax.jit(f, in_shardings=columns, out_shardings=(columns, auto, auto, None))(a)
    assert [r.format.layout.major_to_minor for r in (a, *results)] == [(1, 0), (1, 0), (0, 1), (1, 0), (0,)]
    assert results[0].sharding == columns.sharding
    whole = ramp(8, 4)
    for found, expected in zip(results, (whole @ whole.T, whole.T, whole.T, whole.sum(0)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert np.array_equal(jax.jit(lambda a: a * 2)(a), whole * 2)
    rows = jax.device_put(a, Format(Layout((0, 1)), NamedSharding(mesh, P("x"))))
    assert rows.format.layout.major_to_minor == (0, 1) and np.array_equal(rows, whole)


@check
def programs_of_callbacks(devices: Devices) -> None:
    """A product of `custom_partitioning`, with a collective that XLA's CPU backend does not run, and of three sizes."""

    @custom_partitioning
    def f(a: Any, b: Any) -> Any:
        return a @ b

    def partition(mesh: Any, arguments: Any, results: Any) -> Any:
        mesh = arguments[0].sharding.mesh
        rows, both, columns = (NamedSharding(mesh, P(*spec)) for spec in (("x", None), ("x", "y"), ("y", None)))
        return mesh, lambda a, b: lax.psum(jax.jit(jnp.dot)(a, b), "y"), rows, (both, columns)

    f.def_partition(
        partition,
        sharding_rule="i j, j k -> i k",
        infer_sharding_from_operands=lambda mesh, arguments, _: NamedSharding(arguments[0].sharding.mesh, P("x", None)),
    )
    mesh = grid(devices)
    for shardy in (True, False):
        with use_shardy_partitioner(shardy):
            for rows in (4, 8, 12):
                a, b = ramp(rows, 8), ramp(8, 6)
                found = jax.jit(f)(laid(mesh, a, "x"), laid(mesh, b, "y"))
                np.testing.assert_allclose(np.asarray(found), a @ b, rtol=1e-5)
                assert {shard.data.shape for shard in found.addressable_shards} == {(rows // 2, 6)}

    def fail(mesh: Any, arguments: Any, results: Any) -> Any:
        raise ValueError("not like this")

    f.def_partition(fail, sharding_rule="i j, j k -> i k")
    refused(lambda: jax.jit(f)(laid(mesh, ramp(8, 8), "x"), ramp(8, 6)), "INTERNAL", "ValueError: not like this")


@check
def element_types_of_unreduced_arrays(devices: Devices) -> None:
    """XLA's CPU backend crashes on some of these types."""
    with jax.set_mesh(explicit(devices)):
        for dtype in (np.int8, np.uint32, jnp.bfloat16, np.complex64):
            whole = np.arange(32).reshape(8, 4).astype(dtype)
            a = jax.device_put(whole, P("x"))
            sums = jax.jit(lambda a: lax.reduce_sum(a, [0], out_sharding=left()))(a)
            assert np.array_equal(jax.sharding.reshard(sums, P()), whole.sum(0, dtype=dtype))
            for spec in (left(), left(axes="xy"), P("y")):
                assert np.array_equal(jax.sharding.reshard(jax.sharding.reshard(a, spec), P()), whole)


@check
def programs_name_their_collectives(devices: Devices) -> None:
    """The text of a compiled program has HLO's names of what devices exchange, and of nothing else."""
    some, everything = P("i"), P()
    found: list[set[str]] = []
    for body, out in (
        (lambda a: a * 2, some),
        (lambda a: lax.all_gather(a, "i", tiled=True), some),
        (lambda a: lax.psum(a, "i"), everything),
        (lambda a: lax.psum_scatter(a, "i", tiled=True), some),
        (lambda a: lax.all_to_all(a, "i", 0, 0, tiled=True), some),
        (lambda a: lax.ppermute(a, "i", [(0, 3)]), some),
    ):
        mapped = shard_map(body, mesh=line(devices), in_specs=some, out_specs=out)
        text = jax.jit(mapped).lower(ramp(16, 3)).compile().as_text()
        found.append({name for name in COLLECTIVES if name in text})
    assert found == [set(), *({name} for name in COLLECTIVES)], found


COLLECTIVES = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute")
"""HLO's names, in the order of the programs above."""


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
    programs = [*CASES, *CHECKS]
    print(json.dumps(dict.fromkeys(programs, "left out") | {name: run(name) for name in sys.argv[1:] or programs}))
