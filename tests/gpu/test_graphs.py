# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that come again are CUDA graphs, and everything is as it is without them."""

from __future__ import annotations

import functools
import gc
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import DeviceError
from shlo_disc.runtime import Client
from tests.gpu.emulated import fresh_client, loaded
from tests.gpu.loop_programs import newton
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import ILLEGAL_ADDRESS, OUT_OF_MEMORY, Image, MockDriver, Refused
from tests.gpu.mock_streams import CAPTURE_INVALIDATED, CAPTURE_UNSUPPORTED
from tests.ir.gpu_cases import EXACT, in_place

pytestmark = needs_mock_driver

ARGUMENTS = (("b, s", "float32"), ("b, b, s", "float32"))
"""Those of `in_place`, which takes several kernels and an arena."""


@pytest.fixture
def driver(driver: MockDriver) -> Iterator[MockDriver]:
    """The driver, whose caller must end the graphs that it makes."""
    gc.collect()
    before = graphs_of(driver)
    yield driver
    gc.collect()
    assert graphs_of(driver) == before


def graphs_of(driver: MockDriver) -> list[str]:
    return [name for name in driver.live_handles if name.startswith("Graph")]


@functools.cache
def program(function: Callable[..., Any], arguments: tuple[tuple[str, str], ...]) -> shlo_disc.Executable:
    return shlo_disc.compile(function, target="cuda:sm_90", options=EXACT, args=arguments)


def several(client: Client) -> Any:
    return loaded(program(in_place, ARGUMENTS), client)


@functools.cache
def inputs(b: int, s: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng((b, s, seed))
    return random.random((b, s), np.float32), random.random((b, b, s), np.float32)


@functools.cache
def wanted(b: int, s: int, seed: int = 0) -> Any:
    return [np.asarray(r) for r in jax.jit(in_place)(*inputs(b, s, seed))]


def check(got: Any, want: Any) -> None:
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=2e-5, atol=2e-6)


def call(run: Any, b: int, s: int, seed: int = 0) -> None:
    check(run(*inputs(b, s, seed)), wanted(b, s, seed))


def stats(client: Client) -> dict[str, int]:
    return client.device(0).launch_stats()


def changes(client: Client, body: Callable[[], Any]) -> dict[str, int]:
    """The changes of the counters, where there are any."""
    before = stats(client)
    body()
    return {name: value - before[name] for name, value in stats(client).items() if value != before[name]}


def test_the_second_call_is_captured_and_later_ones_are_replays(driver: MockDriver) -> None:
    client = fresh_client()
    run = several(client)
    first = changes(client, lambda: call(run, 3, 5))
    count = first.pop("commands")
    assert first == {"runs": 1} and count >= 3
    made = {"replays": 1, "captures": 1, "graphs": 1, "graph_commands": count}
    assert changes(client, lambda: call(run, 3, 5, seed=1)) == made
    driver.launches.clear()
    launches = driver.graph_launches
    for seed in range(2, 6):
        assert changes(client, functools.partial(call, run, 3, 5, seed)) == {"replays": 1}
    assert driver.graph_launches - launches == 4
    assert len(driver.launches) == 4 * count, "each replay does all the work"


@pytest.mark.parametrize(("b", "s"), [(1, 1), (2, 31), (1, 32), (3, 33), (2, 7), (1, 301)])
def test_each_size_has_a_graph_of_its_own(driver: MockDriver, b: int, s: int) -> None:
    client = fresh_client()
    run = several(client)
    for seed in range(5):  # the first ones may take blocks that the other size has made
        call(run, b, s, seed)
        call(run, 2, 2, seed)
    assert stats(client)["graphs"] >= 2 and stats(client)["replays"] >= 6


def test_no_elements_are_no_work(driver: MockDriver) -> None:
    client = fresh_client()
    run = loaded(program(lambda x: (jnp.exp(x), x.sum(0)), (("b - 1, s - 1", "float32"),)), client)
    for _ in range(3):
        for b, s in ((0, 3), (3, 0), (2, 3)):
            x = np.random.default_rng(b).random((b, s), np.float32)
            check(run(x), [np.exp(x), x.sum(0)])


@pytest.mark.slow
def test_results_that_are_kept_have_other_addresses(driver: MockDriver) -> None:
    client = fresh_client()
    run = several(client)
    kept = [run.execute(inputs(2, 5, seed), output="buffer") for seed in range(5)]
    counts = stats(client)
    assert counts["runs"] == 5 and counts["captures"] == 0, "what comes once is not captured"
    for seed, results in enumerate(kept):
        check(results, wanted(2, 5, seed))
    del kept, results
    gc.collect()
    for seed in range(8):
        call(run, 2, 5, seed)
    assert stats(client)["captures"] == 1, "the same blocks are taken again"


def test_results_that_take_turns_are_both_captured(driver: MockDriver) -> None:
    """A loop in which each call reads what the one before has made."""
    client = fresh_client()
    run = loaded(program(lambda x: (jnp.tanh(x) + x.max(0), x.sum(1)), (("b, s", "float32"),)), client)
    x = inputs(4, 6)[0]
    state: Any = client.buffer_from_host(x)
    for _ in range(9):
        (state, sums), before = run.execute([state], output="buffer"), x
        x = np.tanh(x) + x.max(0)
        check([state, sums], [x, before.sum(1)])
    assert stats(client)["replays"] >= 5


@pytest.mark.slow
def test_graphs_can_be_turned_off(driver: MockDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        fresh_client(graphs=-1)
    off = fresh_client(graphs=False)
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")  # by which users find the kernel that fails
    blocking = fresh_client()
    for client in (off, blocking):
        run = several(client)
        for _ in range(4):
            assert changes(client, functools.partial(call, run, 2, 4)).keys() == {"runs", "commands"}


def test_processors_have_no_launches() -> None:
    with pytest.raises(AttributeError, match="processors have no launches"):
        Client(threads=1).device(0).launch_stats()


def test_one_kernel_is_started_as_it_is(driver: MockDriver) -> None:
    client = fresh_client()
    run = loaded(program(lambda x: jnp.exp(x), (("b, s", "float32"),)), client)
    x = inputs(3, 3)[0]
    for _ in range(4):
        np.testing.assert_allclose(run(x), np.exp(x), rtol=1e-6)
    assert stats(client)["runs"] == 4 and stats(client)["captures"] == 0


def test_what_data_decides_is_not_captured(driver: MockDriver) -> None:
    client = fresh_client()
    run = loaded(program(newton, (("b, s", "float32"), ("", "int32"))), client)
    for limit in (40, 40, 40, 2, 40):
        x = inputs(2, 3, seed=limit)[0] + np.float32(0.5)
        check(run(x, np.int32(limit)), [np.asarray(w) for w in jax.jit(newton)(x, limit)])
    assert stats(client)["runs"] == 5 and stats(client)["captures"] == 0


def test_sizes_that_are_data_are_planned_anew(driver: MockDriver) -> None:
    """The first segment asks for a size; the last one may be a graph, and is for that size only."""

    def longest(x: Any, limit: Any) -> Any:
        return jnp.tanh(jax.lax.fori_loop(0, limit, lambda i, state: state + x, x)).sum(0), x.max(1)

    client = fresh_client()
    run = loaded(program(longest, (("b, s", "float32"), ("", "int32"))), client)
    for limit in (2, 2, 3, 2, 0, 2):
        x = inputs(2, 3, seed=limit)[0]
        check(run(x, np.int32(limit)), [np.asarray(w) for w in jax.jit(longest)(x, limit)])


@pytest.mark.slow
def test_a_bounded_number_is_kept(driver: MockDriver) -> None:
    client = fresh_client(graphs=2)
    run = several(client)
    before = len(graphs_of(driver))
    for s in (3, 4, 5, 6):
        for seed in range(3):
            call(run, 2, s, seed)
        assert stats(client)["graphs"] <= 2 and len(graphs_of(driver)) - before == stats(client)["graphs"]
    assert stats(client)["captures"] == 4
    assert changes(client, lambda: call(run, 2, 6)) == {"replays": 1}, "the last one is still there"
    assert set(changes(client, lambda: call(run, 2, 3))) == {"runs", "commands"}, "the first one is not"
    call(run, 2, 3)
    assert changes(client, lambda: call(run, 2, 3)) == {"replays": 1}


@pytest.mark.slow
def test_graphs_end_with_their_program_and_when_memory_is_given_back(driver: MockDriver) -> None:
    client = fresh_client()
    before = len(graphs_of(driver))
    run, other = several(client), loaded(program(in_place, ARGUMENTS), client)
    for seed in range(3):
        call(run, 2, 3, seed)
        call(other, 2, 3, seed)
    assert stats(client)["graphs"] == 2
    run.delete()
    gc.collect()
    assert stats(client)["graphs"] == 1 and len(graphs_of(driver)) == before + 1
    client.trim()
    assert stats(client)["graphs"] == 0 and len(graphs_of(driver)) == before
    for seed in range(3):
        call(other, 2, 3, seed)
    assert stats(client)["graphs"] == 1


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("cuStreamBeginCapture_v2", CAPTURE_UNSUPPORTED),
        ("cuStreamEndCapture", CAPTURE_INVALIDATED),
        ("cuGraphInstantiateWithFlags", OUT_OF_MEMORY),
        ("cuGraphLaunch", OUT_OF_MEMORY),
    ],
)
def test_a_graph_that_fails_is_told_once_and_the_call_goes_on(driver: MockDriver, function: str, code: int) -> None:
    client = fresh_client()
    run = several(client)
    call(run, 2, 3)
    driver.fails[function] = code
    with pytest.warns(RuntimeWarning, match="as a CUDA graph failed: could not .*CUDA_ERROR_"):
        failed = changes(client, lambda: call(run, 2, 3, seed=1))
    assert failed["graph_failures"] == 1 and failed["runs"] == 1 and "replays" not in failed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert changes(client, lambda: call(run, 2, 3, seed=2)).keys() == {"runs", "commands"}, "it is not tried again"
        call(run, 2, 4)
        driver.fails[function] = code
        assert changes(client, lambda: call(run, 2, 4, seed=1))["graph_failures"] == 1
        for seed in range(3):
            call(run, 2, 5, seed)
    assert stats(client)["graphs"] == 1, "others are graphs"


def test_a_launch_that_fails_while_it_is_captured(driver: MockDriver) -> None:
    client = fresh_client()
    run = several(client)
    call(run, 2, 3)
    driver.fails["cuLaunchKernel"] = OUT_OF_MEMORY
    with pytest.warns(RuntimeWarning, match=r"could not start the kernel \w+ \(.*gpu_cases\.py:\d+\)"):
        call(run, 2, 3, seed=1)
    assert stats(client)["graph_failures"] == 1 and stats(client)["graphs"] == 0


def test_graphs_give_way_to_memory_of_calls(driver: MockDriver) -> None:
    client = fresh_client()
    run = several(client)
    for seed in range(3):
        call(run, 2, 3, seed)
    driver.fails["cuMemAlloc_v2"] = OUT_OF_MEMORY
    call(run, 3, 200)
    assert stats(client)["graphs"] == 0
    call(run, 2, 3)


class Failing:
    """A kernel of a program that can be told to fail."""

    def __init__(self, kernel: Any):
        self.kernel, self.types, self.fails = kernel, kernel.types, False

    def __call__(self, *arguments: Any) -> None:
        if self.fails:
            raise Refused(ILLEGAL_ADDRESS)
        self.kernel(*arguments)


def test_a_kernel_that_fails_in_a_replay_is_named_with_its_line(driver: MockDriver) -> None:
    client = fresh_client()
    executable = program(in_place, ARGUMENTS)
    run = loaded(executable, client)
    image = driver.images[bytes(executable.artifact.sections["ptx"])]
    kernels = {name: Failing(kernel) for name, (_, kernel) in image.kernels.items()}
    failing = Image({name: (len(kernel.types), kernel) for name, kernel in kernels.items()})
    driver.images[bytes(executable.artifact.sections["ptx"])] = failing
    run = client.load(executable.artifact)
    for seed in range(2):
        call(run, 2, 3, seed)
    name = list(kernels)[-1]
    kernels[name].fails = True
    with pytest.raises(DeviceError, match=rf"the last kernels before it: .*{name} \(.*gpu_cases\.py:\d+\)"):
        run(*inputs(2, 3, 2))
    assert stats(client)["replays"] == 2
    with pytest.raises(DeviceError, match="can be used again in a new process"):
        run(*inputs(2, 3))
    del run
    gc.collect()
    lost = [number for number, handle in driver._handles.items() if type(handle).__name__ == "GraphProgram"]
    client.trim()
    for number in lost:  # they have gone with the context, in which nothing can be destroyed
        driver._handles.pop(number)


def work_in_threads(*bodies: Callable[[], None]) -> None:
    """Run functions at once, each a thread; raises what one of them does."""
    failures: list[BaseException] = []

    def guarded(body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"
    assert failures == []


@pytest.mark.slow
def test_threads_call_one_executable(driver: MockDriver) -> None:
    client = fresh_client()
    run = several(client)

    def calls(seed: int) -> None:
        for s in (3, 3, 3, 5, 3, 5, 3):
            call(run, 2, s, seed)

    for s in (3, 5):
        for seed in range(4):
            wanted(2, s, seed)
    work_in_threads(*(functools.partial(calls, seed) for seed in range(4)))
    counts = stats(client)
    assert counts["runs"] + counts["replays"] == 28 and counts["graph_failures"] == 0


@pytest.mark.slow
def test_executables_share_a_gpu_while_others_wait_for_all_of_it(driver: MockDriver) -> None:
    """Buffers that were lent wait for the whole GPU when they end, which must not meet a capture."""
    client = fresh_client()
    run = several(client)
    softmax = loaded(program(lambda x: (jax.nn.softmax(x), x.sum(0)), (("b, s", "float32"),)), client)

    def lend() -> None:
        for seed in range(12):
            x = inputs(3, 4, seed)[0]
            first, second = softmax.execute([x], output="buffer")
            first.__dlpack__()
            check([first, second], [jax.nn.softmax(x), x.sum(0)])

    def sizes() -> None:
        for s in range(1, 7):
            for seed in range(8):
                call(run, 2, s, seed)

    for s in range(1, 7):
        for seed in range(8):
            wanted(2, s, seed)
    work_in_threads(lend, sizes, lend)
    assert stats(client)["graph_failures"] == 0
    assert stats(client)["captures"] >= 2, "how often addresses come again depends on what the others have meanwhile"


def test_a_child_process_is_refused(driver: MockDriver) -> None:
    client = fresh_client()
    run = several(client)
    for seed in range(3):
        call(run, 2, 3, seed)
    child = os.fork()
    if child == 0:
        try:
            run(*inputs(2, 3))
        except DeviceError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    call(run, 2, 3, seed=4)


def test_one_device_of_a_sharded_call(driver: MockDriver) -> None:
    client = fresh_client()
    run = several(client)
    for seed in range(3):
        check(run.execute_sharded([inputs(2, 3, seed)])[0], wanted(2, 3, seed))
    assert stats(client)["replays"] == 2


# ---- the mock driver itself -----------------------------------------------------------------------------------------


def captured(driver: MockDriver, *calls: tuple[str, list[int]]) -> list[str]:
    """The mistakes of a caller that captures work and calls functions meanwhile."""
    cell = np.zeros(4, np.uint64)
    out = cell.ctypes.data
    driver.call("cuCtxPushCurrent_v2", [0x100 + driver.devices - 1])
    driver.call("cuStreamCreate", [out, 1])
    stream = int(cell[0])
    driver.call("cuStreamBeginCapture_v2", [stream, 1])
    for name, arguments in calls:
        driver.call(name, [stream if a == -1 else out if a == -2 else a for a in arguments])
    driver.call("cuStreamEndCapture", [stream, out])
    if cell[0]:
        driver.call("cuGraphDestroy", [int(cell[0])])
    driver.call("cuStreamDestroy_v2", [stream])
    driver.call("cuCtxPopCurrent_v2", [out])
    found = list(driver.mistakes)
    driver.mistakes.clear()
    return found


@pytest.mark.parametrize(
    "bad",
    [
        ("cuMemAlloc_v2", [-2, 512]),
        ("cuCtxSynchronize", []),
        ("cuStreamSynchronize", [-1]),
        ("cuGraphLaunch", [12345, 2]),
        ("cuGraphExecDestroy", [12345]),
    ],
)
def test_the_mock_tells_what_must_not_be_done_while_work_is_captured(driver: MockDriver, bad: Any) -> None:
    assert captured(driver) == []
    assert len(captured(driver, bad)) == 1
