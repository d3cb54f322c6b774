# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that `test_jax.py` runs in a process of their own, on the plugin's platform and on XLA's CPU.

A case is a function without arguments whose arrays are compared. `python -m tests.pjrt.jax_programs` prints, as JSON,
"ok" or what is wrong for each.
"""

from __future__ import annotations

import ctypes
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback, topologies
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxlib import xla_client

import shlo_disc
from shlo_disc.runtime.native_module import plugin_programs
from tests.pjrt import layout_programs  # noqa: F401 - its programs are in the table, too
from tests.pjrt.program_table import PLATFORM, case, check, print_outcomes, ramp, refused


@case
def eager_arithmetic() -> Any:
    x = jnp.asarray(ramp(8))
    return x + 1, x * x - 2, x > 0, jnp.where(x > 0, x, -x)


@check
def programs_for_several_devices_are_counted() -> None:
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    x = jax.device_put(np.arange(12, dtype=np.float32), NamedSharding(mesh, PartitionSpec("x")))
    total = jax.jit(lambda x: (x * 3).sum())
    before = plugin_programs().counts["compiled"]
    assert float(total(x)) == 198 and float(total(x)) == 198
    assert plugin_programs().counts["compiled"] == before + 1


@case
def programs_that_are_called_by_jax() -> Any:
    """Compiled programs inside a jitted function, at several sizes, and their gradients."""
    layer = shlo_disc.compile(lambda w, x: jnp.tanh(x @ w), args=(((4, 8), "float32"), ("n, 4", "float32")))

    @jax.jit
    def both(w: Any, x: Any) -> Any:
        return jax.value_and_grad(lambda w: (layer(w, x * 2) ** 2).sum())(w)

    w = jnp.asarray(ramp(4, 8)) / 8
    return [both(w, jnp.asarray(ramp(n, 4))) for n in (2, 3, 5, 6)]


@case
def jitted_layers() -> Any:
    @jax.jit
    def model(x: Any, w: Any, b: Any) -> Any:
        return jax.nn.softmax(jnp.tanh(x @ w + b))

    return model(ramp(5, 7), ramp(7, 3), ramp(3))


@case
def gradients() -> Any:
    def loss(w: Any, x: Any) -> Any:
        return jnp.mean(jnp.sin(x @ w) ** 2)

    return jax.jit(jax.value_and_grad(loss))(ramp(4, 3), ramp(6, 4))


@case
def a_scan() -> Any:
    def step(carry: Any, x: Any) -> Any:
        return jnp.tanh(carry + x), carry * x

    return jax.lax.scan(step, jnp.zeros(4), ramp(6, 4))


@case
def control_flow() -> Any:
    counted = jax.lax.while_loop(lambda c: c < 100, lambda c: 2 * c + 1, 1)
    return counted, jax.lax.cond(counted > 50, lambda: 1.5, lambda: 2.5)


@case
def random_numbers() -> Any:
    key, other = jax.random.split(jax.random.key(3))
    return jax.random.normal(key, (5,)), jax.random.randint(other, (4,), 0, 100)


@case
def linear_algebra() -> Any:
    a = ramp(4, 4) + 3 * np.eye(4, dtype=np.float32)
    return jnp.linalg.solve(a, ramp(4)), jnp.linalg.eigvalsh(a + a.T), jnp.linalg.det(a)


@case
def indexing() -> Any:
    x = jnp.asarray(ramp(6, 5))
    return x[2:5, ::2], x.at[1, 2].set(9), x[jnp.array([3, 0, 3])], jnp.sort(x[:, ::-1], axis=0)


@case
def element_types() -> Any:
    names = ("bfloat16", "float16", "int8", "uint16", "int4", "float8_e4m3fn", "complex64", "bool")
    arrays = [jnp.asarray(np.array([0, 1, 2, 3]), dtype=name) for name in names]
    return [a.astype(jnp.complex64) for a in arrays], arrays[0] + 1, arrays[6] * (1 + 2j)


@case
def an_exported_program() -> Any:
    specs = jax.export.symbolic_args_specs((jax.ShapeDtypeStruct((1, 4), jnp.float32),), "b, 4")
    exported = jax.export.export(jax.jit(jnp.cumsum), platforms=["cpu", PLATFORM])(*specs)
    return jax.jit(exported.call)(ramp(3, 4))


@case
def programs_exported_for_the_cpu() -> Any:
    def function(x: Any) -> Any:
        return jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos, default=jnp.tan) + jnp.linalg.cholesky(x @ x.T)

    def call(*platforms: str) -> Any:
        return jax.export.export(jax.jit(function), platforms=platforms)(x).call(x)

    x = ramp(3, 3) + np.eye(3, dtype=np.float32)
    return call("cpu"), call("tpu", "cpu"), jax.jit(lambda: call("cpu"))()


@case
def exported_products_of_groups() -> Any:
    """For both platforms, and for the one that runs; the bytes are read again."""
    arrays = ramp(8, 3), ramp(3, 3, 4), np.array([3, 0, 5], np.int32)

    def call(*platforms: str) -> Any:
        exported = jax.export.export(jax.jit(jax.lax.ragged_dot), platforms=platforms)(*arrays)
        return jax.export.deserialize(exported.serialize()).call(*arrays)

    return call("cpu", PLATFORM), call(jax.config.jax_default_device.platform)


@check
def programs_exported_for_others() -> None:
    elsewhere = jax.export.export(jax.jit(jnp.sin), platforms=["tpu"])(ramp(3))
    refused(lambda: elsewhere.call(ramp(3)), f"used on '('{PLATFORM}',)'", error=ValueError)


@case
def one_shard() -> Any:
    mesh = jax.sharding.Mesh([jax.config.jax_default_device], ("i",), axis_types=(AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("i")
    return jax.jit(jax.shard_map(lambda a: jax.lax.psum(2 * a, "i"), mesh=mesh, in_specs=spec, out_specs=spec))(ramp(4))


@case
def host_arrays_in_any_order() -> Any:
    x = ramp(3, 4, 5)
    return [jax.device_put(a) for a in (x.T, x[:, ::2], x[::-1], np.asfortranarray(x), x[1:1], np.float32(3))]


@check
def donated_arguments_are_deleted() -> None:
    x = jnp.arange(5.0)
    y = jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    assert y.tolist() == [1, 2, 3, 4, 5]


@check
def arrays_of_numpy_are_safe() -> None:
    """A view keeps the memory that its array gives up."""
    x = jnp.arange(1000.0) + 1
    view = np.asarray(x)
    x.delete()
    again = [jnp.arange(1000.0) * k for k in range(5)]
    assert view[:3].tolist() == [1, 2, 3]
    assert len(again) == 5


@check
def transfers_between_platforms() -> None:
    x = jax.device_put(ramp(3), jax.devices("cpu")[0])
    y = jax.device_put(x, jax.devices(PLATFORM)[0])
    assert next(iter(y.devices())).platform == PLATFORM
    assert np.array_equal(jax.device_put(y + 0, jax.devices("cpu")[0]), ramp(3))


@check
def two_devices() -> None:
    first, second = jax.devices(PLATFORM)
    y = jax.jit(lambda a: a * 2)(jax.device_put(ramp(3), second))
    assert y.devices() == {second}
    assert jax.device_put(y, first).devices() == {first}


@check
def what_a_compilation_tells() -> None:
    compiled = jax.jit(lambda a: a + 1).lower(jnp.zeros((4, 2))).compile()
    assert compiled.cost_analysis() == {"bytes accessed": 64.0, "flops": 8.0}
    assert compiled.memory_analysis().output_size_in_bytes == 32
    product = lambda x: jax.lax.cond(x.sum() > 0, lambda: x @ x.T, lambda: x.T @ x)  # noqa: E731
    repeated = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, c: product(c), x)).lower(jnp.zeros((8, 8)))
    assert 3 * 1024 <= repeated.compile().cost_analysis()["flops"] < 3 * (1024 + 100)
    assert "add" in compiled.as_text()


def loaded(text: str) -> Any:
    """An executable of StableHLO's text, as `jax.jit` loads it."""
    client = jax.devices(PLATFORM)[0].client
    return client.compile_and_load(
        text.encode(), xla_client.DeviceList((jax.devices(PLATFORM)[0],)), xla_client.CompileOptions()
    )


@check
def names_of_programs_are_any_text() -> None:
    program = loaded("""module @"an \\22odd\\22 \\5C name" {
      func.func @main() -> tensor<3xi32> {
        %0 = stablehlo.iota dim = 0 : tensor<3xi32>
        return %0 : tensor<3xi32>
      }
    }""")
    assert "shlo_disc" in program.hlo_modules()[0].to_string()


@check
def sizes_that_depend_on_data() -> None:
    program = loaded("""func.func @main(%a: tensor<2xi32>) -> tensor<?x?xi32> {
      %0 = stablehlo.dynamic_iota %a, dim = 0 : (tensor<2xi32>) -> tensor<?x?xi32>
      return %0 : tensor<?x?xi32>
    }""")
    results = program.execute_sharded([jnp.asarray([2, 3], np.int32)])
    ((got,),) = results.disassemble_into_single_device_arrays()
    assert np.array_equal(got, [[0, 0, 0], [1, 1, 1]])


@check
def memory_statistics() -> None:
    device = jax.devices(PLATFORM)[0]
    before = device.memory_stats()["bytes_in_use"]
    x = jnp.ones(1 << 20) + 1
    assert device.memory_stats()["bytes_in_use"] >= before + x.nbytes
    x.delete()


@check
def kinds_of_memory() -> None:
    x = jnp.arange(4.0)
    pinned = x.sharding.with_memory_kind("pinned_host")
    y = jax.jit(lambda a: a * 2, out_shardings=pinned)(x)
    assert y.sharding.memory_kind == "pinned_host"
    z = jax.jit(lambda a: a + 1, in_shardings=pinned, out_shardings=x.sharding.with_memory_kind("device"))(y)
    assert z.sharding.memory_kind == "device"
    assert z.tolist() == [1, 3, 5, 7]


@check
def serialized_executables() -> None:
    from jax.experimental import serialize_executable

    compiled = jax.jit(lambda a: a * 3).lower(jnp.zeros(4)).compile()
    parts = serialize_executable.serialize(compiled)
    again = serialize_executable.deserialize_and_load(*parts, execution_devices=jax.devices(PLATFORM)[:1])
    assert again(jnp.ones(4)).tolist() == [3, 3, 3, 3]


@check
def errors_have_codes() -> None:
    unknown = jax.jit(jax.ffi.ffi_call("no_such_function", jax.ShapeDtypeStruct((3,), jnp.float32)))
    refused(lambda: unknown(jnp.ones(3)), "UNIMPLEMENTED: ", "no_such_function")


@check
def weights_that_come_again() -> None:
    """The right-hand sides of products are packed when they come a second time; others may take their place."""
    product = jax.jit(lambda x, w: x @ w)
    x = jnp.asarray(ramp(8, 64))
    weights = [jnp.asarray(ramp(64, 64) + k) for k in range(2)]
    for k in (0, 0, 0, 1, 1, 0):
        np.testing.assert_allclose(product(x, weights[k]), ramp(8, 64) @ (ramp(64, 64) + k), rtol=1e-4)


@check
def weights_that_others_write() -> None:
    """A packed form of an array whose address somebody outside has, or had, serves while nobody writes the array."""
    product = jax.jit(lambda x, w: x @ w)
    for columns in (64, 256):  # of too few pages for a watch of writes, and of enough
        x = jnp.asarray(ramp(8, 64))
        raw = np.empty(4 * 64 * columns + 64, np.uint8)
        owner = raw[-raw.ctypes.data % 64 :][: 4 * 64 * columns].view(np.float32).reshape(64, columns)
        owner[:] = ramp(64, columns)
        shared = jax.device_put(owner)
        for turn in range(12):
            np.testing.assert_allclose(product(x, shared), ramp(8, 64) @ owner, rtol=1e-4)
            owner[:] += turn % 3 if turn > 5 else turn == 4
    mine = jax.jit(lambda a: a + 1)(shared)
    expected = owner + 1
    for turn in range(8):
        np.testing.assert_allclose(product(x, mine), ramp(8, 64) @ expected, rtol=1e-4)
        if turn % 4 == 3:
            on_cpu = jax.device_put(mine, jax.devices("cpu")[0])
            expected = np.from_dlpack(on_cpu) * 2
            ctypes.memmove(np.from_dlpack(on_cpu).ctypes.data, expected.ctypes.data, expected.nbytes)
            del on_cpu


@check
def options_of_the_compiler() -> None:
    jax.jit(jnp.sin, compiler_options={"xla_embed_ir_in_executable": True})(1.0)
    unknown = jax.jit(jnp.sin, compiler_options={"no_such_option": 1})
    refused(lambda: unknown(1.0), "No such compile option: 'no_such_option'")


@check
def callbacks_to_python() -> None:
    seen: list[float] = []

    @jax.jit
    def program(xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            io_callback(lambda a: seen.append(float(a)), None, x, ordered=True)
            return carry + x, None

        total, _ = jax.lax.scan(step, 0.0, xs)
        jax.debug.callback(lambda a: seen.append(-float(a)), total, ordered=True)
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(xs.shape, xs.dtype), xs, vmap_method="sequential")

    for _ in range(2):
        seen.clear()
        np.testing.assert_allclose(program(jnp.arange(4.0)), np.sin(np.arange(4.0)), rtol=1e-6)
        jax.effects_barrier()
        assert seen == [0, 1, 2, 3, -6], seen


@check
def callbacks_in_branches_and_loops() -> None:
    seen: list[float] = []

    def note(x: Any) -> None:
        jax.debug.callback(lambda a: seen.append(float(a)), x, ordered=True)

    @jax.jit
    def program(x: Any) -> Any:
        jax.lax.fori_loop(0, 4, lambda i, _: note(i), None, unroll=2)
        return jax.lax.cond(x > 0, lambda a: (note(-a), a + 1)[1], lambda a: (note(a), a - 1)[1], x)

    assert program(5.0) == 6
    assert program(-5.0) == -6
    jax.effects_barrier()
    assert seen == [0, 1, 2, 3, -5, 0, 1, 2, 3, -5], seen


@check
def callbacks_of_several_traces() -> None:
    """A trace has functions of its own, and needs no compile; what calls one function twice is another program."""

    def call(function: Any) -> Any:
        return jax.jit(lambda x: jax.pure_callback(function, jax.ShapeDtypeStruct(x.shape, x.dtype), x))

    def calls(*functions: Any) -> Any:
        inner = {f: call(f) for f in functions}
        return jax.jit(lambda x: jnp.stack([inner[f](x + i) for i, f in enumerate(functions)]))

    def count() -> int:
        counts = plugin_programs().counts
        return counts["compiled"] + counts["compiled_symbolic"]

    x = np.arange(3, dtype=np.float32)
    programs = [(np.sin, np.cos), (np.cos, np.tanh), (np.exp, np.exp), (np.tanh, np.sin)]
    kept, counts = [calls(*functions) for functions in programs], []
    for _ in range(2):
        for program, functions in zip(kept, programs, strict=True):
            wanted = np.stack([f(x + i) for i, f in enumerate(functions)])
            np.testing.assert_allclose(program(x), wanted, rtol=1e-6)
            counts.append(count())
    if PLATFORM == "shlo_disc":
        compiled = np.diff(counts).tolist()
        assert compiled[0] == 0 and sum(compiled[2:]) == 0, compiled


@check
def a_callback_that_fails() -> None:
    def refuse(_: Any) -> Any:
        raise ValueError("not this one")

    program = jax.jit(lambda x: jax.pure_callback(refuse, x, x))
    refused(lambda: program(jnp.ones(3)), "ValueError: not this one")
    wrong_shape = jax.jit(lambda x: jax.pure_callback(lambda a: a[1:], x, x))
    refused(lambda: wrong_shape(jnp.ones(3)), "Incorrect output shape")


@check
def algorithms_of_products() -> None:
    presets = jax.lax.DotAlgorithmPreset
    x, y = ramp(3, 40) / 7, ramp(40, 2) / 9
    exact = x.astype(np.float64) @ y.astype(np.float64)
    of_tf32 = 24 if PLATFORM == "shlo_disc" else 10  # processors multiply all bits
    for preset, bits in (
        (presets.F16_F16_F32, 8),
        (presets.BF16_BF16_BF16, 8),
        (presets.TF32_TF32_F32, of_tf32),
        (presets.BF16_BF16_F32_X9, 24),
    ):
        with jax.default_device(jax.devices(PLATFORM)[0]):
            found = np.asarray(jax.lax.dot(x, y, precision=preset))
        np.testing.assert_allclose(found, exact, rtol=4 * 2.0**-bits, atol=1e-3 * 2.0**-bits, err_msg=str(preset))


@check
def profiles_have_programs_and_kernels() -> None:
    x = jnp.ones((64, 64)).block_until_ready()
    program = jax.jit(lambda a: jnp.tanh(a @ a).sum())
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder), jax.profiler.TraceAnnotation("all of it"):
                program(x).block_until_ready()
            (file,) = Path(folder).glob("**/*.xplane.pb")
            data = jax.profiler.ProfileData.from_file(str(file))
        planes = {plane.name: [event for line in plane.lines for event in line.events] for plane in data.planes}
        ours = {event.name: event for event in planes["/device:CUSTOM:shlo_disc"]}
        (around,) = (event for event in planes["/host:CPU"] if event.name == "all of it")
        (run,) = (event for name, event in ours.items() if name.startswith("jit_"))
        inner = ours["product"]
        assert around.start_ns <= run.start_ns <= inner.start_ns, ours
        assert 0 < inner.duration_ns <= run.duration_ns <= around.duration_ns, ours


@check
def arrays_and_caches() -> None:
    x = jax.device_put(np.arange(6.0, dtype=np.float32))
    program = jax.jit(lambda a: a * 2)
    y = program(x)
    assert x.is_ready()
    assert any(array is y for array in jax.live_arrays(PLATFORM))
    jax.clear_caches()
    assert np.array_equal(jax.block_until_ready(program(x)), y)
    on_cpu = jax.device_put(y, jax.devices("cpu")[0])  # the same memory, with all that JAX has for its own arrays
    assert np.from_dlpack(on_cpu).ctypes.data == y.unsafe_buffer_pointer()
    with jax.enable_x64(True):
        assert jax.jit(lambda a: a / 3)(np.arange(4.0)).dtype == np.float64


@check
def functions_of_the_user() -> None:
    """A handler of XLA's FFI that is registered for the platform: here one that comes with jaxlib."""
    from jaxlib import lapack

    handlers = {name: function for name, function, *_ in lapack.registrations()["cpu"]}
    jax.ffi.register_ffi_target("own_potrf", handlers["lapack_spotrf_ffi"], platform=PLATFORM)
    shapes = (jax.ShapeDtypeStruct((3, 3), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32))
    call = jax.ffi.ffi_call("own_potrf", shapes, input_output_aliases={0: 0})
    factor, _ = jax.jit(lambda a: call(a, uplo=np.uint8(ord("L"))))(jnp.diag(jnp.array([1.0, 4.0, 9.0])))
    assert np.diag(factor).tolist() == [1, 2, 3]


@check
def programs_for_a_topology() -> None:
    """jaxlib before 0.12 keeps Python's lock meanwhile, which the compiler needs: an error, not a standstill."""
    topology = topologies.get_topology_desc(platform=PLATFORM)
    (device,) = topology.devices
    assert [memory.kind for memory in device.addressable_memories()] == ["device", "pinned_host", "unpinned_host"]
    assert device.default_memory().kind == "device"
    mesh = topologies.make_mesh(topology, (1,), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    lowered = jax.jit(lambda x: x * x).lower(jax.ShapeDtypeStruct((3,), np.float32, sharding=sharding))
    if jax.__version_info__ < (0, 12):
        refused(lowered.compile, "UNIMPLEMENTED", "Python's lock")
    else:
        assert "shlo_disc" in lowered.compile().as_text()


@check
def several_threads() -> None:
    def work(k: int) -> Any:
        return jax.jit(lambda x: jnp.tanh(x * k) + k)(jnp.arange(8.0))

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(work, range(12)))
    for k, result in enumerate(results):
        np.testing.assert_allclose(result, np.tanh(np.arange(8.0) * k) + k, rtol=1e-5)


if __name__ == "__main__":
    print_outcomes()
