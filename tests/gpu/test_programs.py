# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole programs for GPUs: compiled, loaded, called, over the mock driver and the emulator."""

from __future__ import annotations

import functools
import gc
import threading
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArgumentTypeError, ArtifactError, DeviceError, ShapeError
from shlo_disc.runtime import Artifact, Client
from shlo_disc.runtime.allocation import AllocationError
from shlo_disc.tools.cli import main
from tests.gpu.emulated import fresh_client, install, loaded
from tests.gpu.loop_programs import LOOPS, ROWS, rows
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import OUT_OF_MEMORY, MockDriver
from tests.ir.gpu_cases import CASES, EXACT, arrays, assert_close

pytestmark = needs_mock_driver

DIMS = ({"b": 1, "s": 1}, {"b": 3, "s": 7}, {"b": 2, "s": 33}, {"b": 5, "s": 300})


@functools.cache
def program(name: str) -> shlo_disc.Executable:
    case = CASES[name]
    with jax.enable_x64(True):
        return shlo_disc.compile(case.function, target="cuda:sm_90", options=EXACT, args=case.arguments)


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_case_at_several_sizes(client: Client, name: str) -> None:
    case = CASES[name]
    with jax.enable_x64(True):
        run = loaded(program(name), client)
        for dims in DIMS:
            given = arrays(case, dims)
            assert_close(run(*given), jax.jit(case.function)(*given), case.tolerance)


def test_buffers_stay_on_the_gpu_and_say_when_they_are_there(driver: MockDriver, client: Client) -> None:
    run = loaded(program("softmax"), client)
    driver.launches.clear()
    given = client.buffer_from_host(rows(3, 50))
    first = run.execute([given], output="buffer")
    second = run.execute([first], output="buffer")
    assert driver.launches == [], "calls give work, and do not wait for it"
    assert not second.is_ready()
    event = second.ready_event()
    event.block_until_ready()
    assert event.is_ready() and event.error() is None and second.is_ready() and first.is_ready()
    assert len(driver.launches) == 2
    assert_close(second.to_host(), jax.nn.softmax(jax.nn.softmax(rows(3, 50))), 1e-6)
    assert first.device.platform == "cuda" and first.memory.kind == "device"


def test_an_event_is_told_to_who_asks(client: Client) -> None:
    run = loaded(program("softmax"), client)
    told, done = [], threading.Event()
    result = run.execute([rows(4, 9)], output="buffer")
    result.ready_event().on_ready(lambda error: (told.append(error), done.set()))
    assert done.wait(10) and told == [None]
    with pytest.raises(TimeoutError):
        run.execute([rows(4, 9)], output="buffer").ready_event().block_until_ready(timeout=0)


@pytest.mark.slow
def test_memory_of_calls_is_used_again(driver: MockDriver, client: Client) -> None:
    run = loaded(program("in_place"), client)
    with jax.enable_x64(True):
        given = arrays(CASES["in_place"], {"b": 3, "s": 20})
        run(*given)
        gc.collect()  # what earlier tests have left
        held = driver.live_bytes
        for _ in range(5):
            assert_close(run(*given), jax.jit(CASES["in_place"].function)(*given), 1e-5)
    assert driver.live_bytes == held
    client.trim()
    assert driver.live_bytes < held


@pytest.mark.parametrize("place", [np.asfortranarray, lambda a: a.astype(">f4"), jnp.asarray])
def test_arguments_of_any_kind(client: Client, place: Any) -> None:
    run = loaded(program("softmax"), client)
    given = rows(6, 11)
    assert_close(np.asarray(run(place(given))), jax.nn.softmax(given), 1e-6)


def test_bound_arguments_are_on_the_gpu(driver: MockDriver, client: Client) -> None:
    run = loaded(program("gelu_bias"), client)
    bias = np.linspace(-1, 1, 21, dtype=np.float32)
    for options in ({}, {"copy": False}):
        bound = bound_sum(client, bias, options)
        assert_close(bound(rows(4, 21)), rows(4, 21) + bias, 1e-6)
    want = jax.nn.gelu(rows(4, 21) + bias, approximate=False)
    assert_close(run(rows(4, 21), client.buffer_from_host(bias)), want, 2e-6)


def bound_sum(client: Client, bias: np.ndarray, options: dict[str, bool]) -> Any:
    added = shlo_disc.compile(
        lambda b, x: x + b, target="cuda:sm_90", options=EXACT, args=(("n", "float32"), ("b, n", "float32"))
    )
    return loaded(added, client).bind(bias, **options)


def test_wrong_calls_are_refused_before_anything_runs(driver: MockDriver, client: Client) -> None:
    run = loaded(program("gelu_bias"), client)
    driver.launches.clear()
    with pytest.raises(ShapeError):
        run(rows(4, 21), np.zeros(20, np.float32))
    with pytest.raises(ArgumentTypeError):
        run(rows(4, 21).astype(np.float64), np.zeros(21, np.float32))
    other = fresh_client().buffer_from_host(rows(4, 21))
    with pytest.raises(ArgumentTypeError, match=r"args\[0\] is on GPU \d+, and the program runs on GPU \d+"):
        run(other, np.zeros(21, np.float32))
    client.native_device.gpu.wait()
    assert driver.launches == []


def test_the_cpu_does_not_follow_addresses_of_a_gpu(client: Client) -> None:
    on_cpu = shlo_disc.compile(lambda x: x + 1, args=(("b, s", "float32"),))
    with pytest.raises(ArgumentTypeError, match=r"is on GPU \d+, and the program runs on the CPU"):
        on_cpu(client.buffer_from_host(rows(2, 3)))
    product = shlo_disc.compile(lambda x, w: x @ w, args=(("b, 8", "float32"), ("8, 4", "float32")))
    weight = client.buffer_from_host(rows(8, 4))
    for _ in range(3):  # arrays that come again would be packed
        with pytest.raises(ArgumentTypeError, match=r"args\[1\] is on GPU \d+"):
            product(rows(2, 8), weight)


def test_programs_are_loaded_where_they_are_for(client: Client) -> None:
    on_cpu = shlo_disc.compile(lambda x: x + 1, args=(("b, s", "float32"),))
    with pytest.raises(ArtifactError, match=r"made for the CPU; this client's device is Device\(platform='cuda'"):
        client.load(on_cpu.artifact)
    with pytest.raises(ArtifactError, match=r"made for cuda:sm_90; this client's device is Device\(platform='cpu'"):
        Client().load(program("softmax").artifact)
    header = {**program("softmax").artifact.header, "target": {**program("softmax").artifact.header["target"]}}
    header["target"]["name"] = "cuda:sm_120"
    with pytest.raises(ArtifactError, match="made for cuda:sm_120; Mock GPU is an sm_90"):
        client.load(shlo_disc.runtime.Artifact(header, program("softmax").artifact.sections))


def test_no_memory_for_a_call(driver: MockDriver, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    run = loaded(program("softmax"), client)
    for call in range(1, 3):
        client.native_device.fail_allocation(call)
        with pytest.raises(AllocationError):
            run(rows(2, 40))
    monkeypatch.setattr(driver, "memory", driver.live_bytes + 1000)
    with pytest.raises(AllocationError):
        run(rows(99, 4000))
    assert_close(run(rows(2, 40)), jax.nn.softmax(rows(2, 40)), 1e-6)
    monkeypatch.undo()
    run(rows(99, 400))  # what the kept blocks are too small for
    driver.fails["cuMemAlloc_v2"] = OUT_OF_MEMORY  # kept blocks are released, and it is asked again
    run(rows(99, 800))
    assert_close(run(rows(2, 40)), jax.nn.softmax(rows(2, 40)), 1e-6)


def test_a_failing_kernel_names_itself_and_the_users_line(driver: MockDriver) -> None:
    client = fresh_client()
    run = loaded(program("softmax"), client)
    driver.fails["cuLaunchKernel"] = 719
    with pytest.raises(DeviceError, match=r"start the kernel \w+ \(.*gpu_cases\.py:\d+\)"):
        run(rows(2, 3))
    with pytest.raises(DeviceError, match="can be used again in a new process"):
        run(rows(2, 3))


@pytest.mark.slow
def test_two_threads_call_one_program(client: Client) -> None:
    run = loaded(program("softmax"), client)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        try:
            for size in (5, 37, 300):
                given = rows(seed, size)
                assert_close(run(given), jax.nn.softmax(given), 1e-6)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@functools.cache
def loop_program(function: Any, arguments: Any) -> shlo_disc.Executable:
    return shlo_disc.compile(function, target="cuda:sm_90", options=EXACT, args=arguments)


@pytest.mark.parametrize("name", LOOPS)
def test_the_host_reads_what_loops_and_branches_depend_on(client: Client, name: str) -> None:
    function, arguments, make = LOOPS[name]
    run = loaded(loop_program(function, arguments), client)
    for b, s in ((1, 1), (3, 7), (2, 33)):
        given = make(b, s)
        assert_close(run(*given), jax.jit(function)(*given), 1e-5)


def test_a_loop_ends_when_the_gpu_fails(driver: MockDriver) -> None:
    run = loaded(loop_program(*LOOPS["while"][:2]), fresh_client())
    driver.fails["cuMemcpyDtoHAsync_v2"] = 719
    with pytest.raises(DeviceError, match="copy from a GPU"):
        run(np.abs(rows(2, 3)) + 0.5, np.int32(40))


def test_an_executable_goes_to_the_gpu_when_it_is_called(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shlo_disc.driver.executable.gpu_client", lambda ordinal, replicas: client)
    compiled = shlo_disc.compile(lambda x: jnp.exp(x).sum(1), target="cuda:sm_90", options=EXACT, args=ROWS)
    install(compiled)
    assert_close(compiled(rows(3, 20)), np.exp(rows(3, 20)).sum(1), 1e-5)
    assert compiled.memory_stats()["result_allocations"] == 1


class Foreign:
    """An array of another library on a GPU, which is told the stream that waits for it."""

    def __init__(self, buffer: Any):
        self.buffer, self.streams = buffer, []

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        self.streams.append(stream)
        return self.buffer.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.buffer.__dlpack_device__()


def test_arrays_of_other_libraries_are_read_where_they_are(driver: MockDriver, client: Client) -> None:
    run = loaded(program("softmax"), client)
    made = run.execute([rows(3, 8)], output="buffer")
    assert made.__dlpack_device__() == (2, client.device(0).local_hardware_id)
    foreign = Foreign(made)
    copies = client.devices()[0].memory_stats()["argument_copies"]
    result = run.execute([foreign], output="buffer")
    assert made.is_ready() and result.is_ready(), "the call waits, for the array may be freed once it is over"
    assert client.devices()[0].memory_stats()["argument_copies"] == copies
    assert len(foreign.streams) == 1 and foreign.streams[0] > 2, "neither of the default streams"
    assert_close(result.to_host(), jax.nn.softmax(jax.nn.softmax(rows(3, 8))), 1e-6)
    with pytest.raises(ArgumentTypeError, match=r"args\[0\] is on another device than GPU"):
        loaded(program("softmax"), fresh_client())(foreign)
    with pytest.raises(ArgumentTypeError, match=r"args\[0\] is on another device than the CPU"):
        shlo_disc.compile(lambda x: x + 1, args=ROWS)(foreign)


def test_a_file_is_compiled_ahead_of_time(client: Client, tmp_path: Path) -> None:
    source, target = tmp_path / "program.mlir", tmp_path / "program.shlodisc"
    source.write_text(
        """func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
          %y = stablehlo.exponential %x : tensor<?x4xf32>
          return %y : tensor<?x4xf32> }"""
    )
    command = ["compile", str(source), "--target", "cuda:sm_90", "-o", str(target)]
    assert main(command) == 0
    artifact = Artifact.deserialize(target.read_bytes(), trust=True)
    install(shlo_disc.compile(source, target="cuda:sm_90", options=EXACT))
    assert_close(client.load(artifact)(rows(3, 4)), np.exp(rows(3, 4)), 1e-6)
