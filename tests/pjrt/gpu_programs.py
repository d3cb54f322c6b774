# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of `jax.jit` on the platform of GPUs, over the mock driver, beside XLA's CPU.

Run as a program with JAX_PLATFORMS=shlo_disc_cuda,cpu: one line of JSON, with the error of
each check, or null.
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shlo_disc.runtime import Client, clients, cuda_libraries
from shlo_disc.runtime.native_module import plugin_programs
from tests.gpu import mock_fft, mock_nccl, mock_solver
from tests.gpu.emulated import install
from tests.gpu.mock_driver import mock_driver

CHECKS: list[Callable[[], None]] = []


def check(function: Callable[[], None]) -> Callable[[], None]:
    """One of those that are run, in order."""
    CHECKS.append(function)
    return function


def over_mock_driver(devices: int = 2) -> None:
    """Have the plugin's GPUs be those of the mock driver, which learns what each program's kernels do.

    Products take all bits, so that results can be compared with those of processors.
    """
    jax.config.update("jax_default_matmul_precision", "highest")
    mock_driver().devices = devices
    clients.gpu_client = functools.cache(lambda ordinal=0: Client.of_gpu(ordinal, uses_libraries=False))
    from shlo_disc.pjrt import compile as of_plugin

    load = of_plugin._loaded

    def load_emulated(executable: Any, gpu: int) -> Any:
        install(executable)
        return load(executable, gpu)

    of_plugin._loaded = load_emulated
    of_plugin.nccl_names = lambda: [str(mock_nccl.library())]
    mock_nccl.mock_nccl()
    cuda_libraries.fft_names = lambda: [str(mock_fft.library())]
    mock_fft.mock_fft()
    cuda_libraries.solver_names = lambda: [str(mock_solver.solver_library())]
    cuda_libraries.cublas_names = lambda: [str(mock_solver.cublas_library())]
    mock_solver.mock_solver()
    mock_solver.mock_cublas()


def compare(function: Callable[..., Any], *args: Any, rtol: float = 2e-5) -> None:
    """Results on the GPU are XLA's."""
    found = jax.jit(function)(*args)
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = jax.jit(function)(*args)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert {d.platform for d in ours.devices()} == {"shlo_disc_cuda"}, ours.devices()
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=rtol, atol=1e-6)


def numbers(*shape: int) -> np.ndarray:
    """Floats from -1 to 1."""
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


@check
def devices_are_described() -> None:
    first, second = jax.devices()
    assert (first.platform, first.device_kind, first.id, second.id) == ("shlo_disc_cuda", "Mock GPU", 0, 1)
    assert first.compute_capability == "9.0"
    assert first.default_memory().kind == "device"
    assert {"device", "pinned_host"} <= {memory.kind for memory in first.addressable_memories()}
    kept = jax.device_put(numbers(1 << 12))
    assert first.memory_stats()["bytes_in_use"] >= jax.block_until_ready(kept).nbytes


@check
def elements() -> None:
    for size in (0, 1, 3, 4, 5, 37):
        compare(lambda x: jnp.tanh(x) * 2 + x, numbers(size))


@check
def one_compile_serves_new_shapes() -> None:
    @jax.jit
    def softmax(x: jax.Array) -> jax.Array:
        return jnp.exp(x - x.max(-1, keepdims=True)) / jnp.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)

    before = plugin_programs().counts
    for rows, columns in ((2, 3), (4, 5), (3, 7), (5, 9), (6, 11)):
        x = numbers(rows, columns)
        shifted = np.exp(x - x.max(-1, keepdims=True))
        np.testing.assert_allclose(np.asarray(softmax(x)), shifted / shifted.sum(-1, keepdims=True), rtol=2e-5)
    after = plugin_programs().counts
    assert after["compiled"] - before["compiled"] == 1, (before, after)
    assert after["compiled_symbolic"] - before["compiled_symbolic"] == 1, (before, after)
    assert after["instances"] - before["instances"] == 3, (before, after)


@check
def fourier_transforms() -> None:
    for shape in ((2, 5), (3, 8), (4, 9), (3, 7)):
        x = numbers(*shape)
        compare(lambda x: jnp.abs(jnp.fft.fft2(jnp.sin(x))), x, rtol=1e-4)
        compare(lambda x: jnp.fft.ihfft(x).real, x, rtol=1e-4)
    assert not mock_fft.mock_fft().mistakes


@check
def linear_algebra() -> None:
    for n in (2, 5, 3):
        a = numbers(n, n) + n * np.eye(n, dtype=np.float32)
        compare(lambda a: jnp.linalg.cholesky(a @ a.T), a, rtol=1e-4)
        compare(jnp.linalg.solve, a, numbers(n, 2), rtol=1e-4)
    assert not mock_solver.mock_solver().mistakes and not mock_solver.mock_cublas().mistakes


@check
def reductions_and_products() -> None:
    compare(lambda x, y: (x @ y).sum(0), numbers(3, 5), numbers(5, 2))


@check
def products_have_the_precision_of_jax() -> None:
    """Several shapes share a program."""
    bounds = {
        "default": (2**-16, 2**-10), "high": (2**-16, 2**-10), "highest": (0, 2**-20), "F32_F32_F32": (0, 2**-20),
        "TF32_TF32_F32": (2**-16, 2**-10), "TF32_TF32_F32_X3": (0, 2**-20),
    }  # fmt: skip
    for precision, (least, most) in bounds.items():
        multiply = jax.jit(functools.partial(jnp.matmul, precision=precision))
        for size in (5, 6, 7, 65):
            x, y = numbers(size, size + 1), numbers(size + 1, 9)
            error = np.abs(np.asarray(multiply(x, y)) - x.astype(np.float64) @ y) / (np.abs(x) @ np.abs(y))
            assert least <= error.max() <= most, (precision, size, error.max())


@check
def loops_and_branches() -> None:
    compare(lambda x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1], numbers(5))
    compare(lambda x: jax.lax.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, x), numbers(5))


@check
def scatters_and_random_bits() -> None:
    compare(lambda x, i: x.at[i].add(1.0), numbers(7), np.array([1, 1, 5]))
    compare(lambda: jax.random.uniform(jax.random.key(3), (5,)))


@check
def gradients() -> None:
    def loss(w: dict[str, Any], x: Any) -> Any:
        return ((jnp.tanh(x @ w["a"]) @ w["b"]) ** 2).mean()

    compare(jax.grad(loss), {"a": numbers(3, 4), "b": numbers(4, 2)}, numbers(2, 3), rtol=1e-4)


@check
def donated_arguments_are_deleted() -> None:
    x = jax.device_put(numbers(6))
    jax.block_until_ready(x)
    y = jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_allclose(np.asarray(y), numbers(6) + 1, rtol=1e-6)


@check
def arrays_go_between_devices_and_memories() -> None:
    first, second = jax.devices()
    x = jax.device_put(numbers(3, 4).T, first)
    y = jax.device_put(x, second)
    assert y.devices() == {second}
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda a: a + a)(y)), 2 * numbers(3, 4).T)
    host = jax.device_put(x, jax.sharding.SingleDeviceSharding(first, memory_kind="pinned_host"))
    assert host.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(np.asarray(host), numbers(3, 4).T)
    back = jax.device_put(host, jax.sharding.SingleDeviceSharding(first, memory_kind="device"))
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda a: a * 1.5)(back)), numbers(3, 4).T * 1.5)
    np.testing.assert_array_equal(np.asarray(jax.device_put(y, jax.devices("cpu")[0])), numbers(3, 4).T)


@check
def the_host_array_may_change() -> None:
    x = numbers(64)
    y = jax.device_put(x)
    wanted = x.copy()
    jax.block_until_ready(y)
    x[:] = 0
    np.testing.assert_array_equal(np.asarray(y), wanted)


@check
def calls_come_from_several_threads() -> None:
    step = jax.jit(lambda a, b: a * 3 + b)
    wrong: list[Any] = []

    def work(amount: int) -> None:
        for turn in range(4):
            found = np.asarray(step(numbers(9), np.float32(amount + turn)))
            if not np.allclose(found, numbers(9) * 3 + amount + turn, rtol=1e-5):
                wrong.append(found)
        wrong.append(None)

    threads = [threading.Thread(target=work, args=(10 * i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [None, None]


@check
def executables_are_serialized() -> None:
    from jax.experimental import serialize_executable

    compiled = jax.jit(lambda a: jnp.sin(a) + 1).lower(numbers(5)).compile()
    assert compiled.cost_analysis()["bytes accessed"] == 40
    assert compiled.memory_analysis().output_size_in_bytes == 20
    for device in jax.devices():
        given = jax.device_put(numbers(5), device)
        compiled = jax.jit(lambda a: jnp.sin(a) + 1).lower(given).compile()
        written = serialize_executable.serialize(compiled)
        found = serialize_executable.deserialize_and_load(*written, execution_devices=[device])(given)
        assert found.devices() == {device}
        np.testing.assert_allclose(np.asarray(found), np.sin(numbers(5)) + 1, rtol=1e-5)


@check
def what_cannot_be_done_is_refused_by_name() -> None:
    refuses(lambda: jax.jit(jnp.linalg.eigvals)(numbers(3, 3)), "UNIMPLEMENTED", "eig", "gpu_programs.py")


def in_parts(array: np.ndarray, *axes: str | None) -> jax.Array:
    """An array whose axes lie on both GPUs, or on each of them."""
    mesh = jax.make_mesh((2,), ("i",))
    return jax.device_put(array, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)))


@check
def one_program_runs_on_several_gpus() -> None:
    for rows in (2, 6, 4):
        x, w = numbers(rows, 3), numbers(3, 5)
        found = jax.jit(lambda a, b: jnp.tanh(a @ b))(in_parts(x, "i"), in_parts(w))
        assert len(found.sharding.device_set) == 2
        np.testing.assert_allclose(np.asarray(found), np.tanh(x @ w), rtol=2e-5, atol=1e-6)


@check
def gpus_exchange_data_by_nccl() -> None:
    x = numbers(4, 6)
    before = len(mock_nccl.mock_nccl().calls)
    total = jax.jit(lambda a: (a * 2).sum())(in_parts(x, "i"))
    np.testing.assert_allclose(np.asarray(total), (x * 2).sum(), rtol=2e-5)
    whole = jax.sharding.NamedSharding(jax.make_mesh((2,), ("i",)), jax.sharding.PartitionSpec(None, None))
    multiply = jax.jit(lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=whole))
    product = multiply(in_parts(x, None, "i"), in_parts(numbers(6, 3), "i"))
    np.testing.assert_allclose(np.asarray(product), x @ numbers(6, 3), rtol=2e-5, atol=1e-6)
    assert len(mock_nccl.mock_nccl().calls) > before


@check
def steps_of_training_run_on_several_gpus() -> None:
    def loss(w: Any, x: Any) -> Any:
        return ((jnp.tanh(x @ w["a"]) @ w["b"]) ** 2).mean()

    weights = {"a": numbers(3, 4), "b": numbers(4, 2)}
    step = jax.jit(lambda w, x: jax.tree.map(lambda a, g: a - 0.1 * g, w, jax.grad(loss)(w, x)), donate_argnums=0)
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = step(jax.tree.map(jnp.asarray, weights), numbers(6, 3))
    given = jax.tree.map(in_parts, weights)
    found = step(given, in_parts(numbers(6, 3), "i"))
    assert given["a"].is_deleted()
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-6)


@check
def a_gpu_that_fails_fails_the_program_on_all() -> None:
    mock_nccl.mock_nccl().fails["ncclAllReduce"] = mock_nccl.SYSTEM
    try:
        refuses(lambda: jax.jit(lambda a: a.sum())(in_parts(numbers(8), "i")), "system error")
    finally:
        mock_nccl.mock_nccl().fails.clear()
    np.testing.assert_allclose(
        np.asarray(jax.jit(lambda a: a.sum())(in_parts(numbers(8), "i"))), numbers(8).sum(), 1e-5
    )


def refuses(call: Callable[[], Any], *words: str) -> None:
    """The call fails, and says these words."""
    try:
        jax.block_until_ready(call())
    except Exception as error:
        assert all(word in str(error) for word in words), str(error)
    else:
        raise AssertionError("nothing was refused")


@check
def profiles_have_programs_and_kernels() -> None:
    program = jax.jit(lambda a: jnp.cumsum(a).sum())
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            found = program(numbers(5)).block_until_ready()
        (file,) = Path(folder).glob("**/*.xplane.pb")
        data = jax.profiler.ProfileData.from_file(str(file))
    (plane,) = (plane for plane in data.planes if plane.name == "/device:CUSTOM:shlo_disc")
    names = {event.name for line in plane.lines for event in line.events}
    assert any(name.startswith("jit_") for name in names), names
    assert any("scan" in name for name in names), names
    np.testing.assert_allclose(np.asarray(found), np.cumsum(numbers(5)).sum(), rtol=1e-5)


@check
def too_little_memory_is_an_error() -> None:
    driver = mock_driver()
    before, driver.memory = driver.memory, driver.live_bytes
    try:
        refuses(lambda: jax.device_put(np.zeros(1 << 20, np.float32)), "RESOURCE_EXHAUSTED")
    finally:
        driver.memory = before
    np.testing.assert_array_equal(np.asarray(jax.device_put(numbers(3))), numbers(3))


OF_DRIVER = "the driver is used as it asks"
"""The name of an outcome beside those of the checks."""


def outcome(function: Callable[[], None]) -> str | None:
    """None, or how it failed."""
    try:
        function()
    except Exception:
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    over_mock_driver()
    chosen = [function for function in CHECKS if function.__name__ in sys.argv]
    results = {function.__name__: outcome(function) for function in chosen}
    mistakes = [*mock_driver().mistakes, *mock_nccl.mock_nccl().mistakes]
    results[OF_DRIVER] = "\n".join(map(str, mistakes)) or None
    print(json.dumps(results), flush=True)
