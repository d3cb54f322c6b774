# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PJRT's nouns in Python: devices, memories, topologies, events, and programs of several devices."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import replace

import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import ArtifactError, CustomCallError, OptionError, ShapeError
from shlo_disc.runtime import Client, Event, LoadedExecutable, TopologyDescription

from .programs import add_one, array, identity, symbol

SUM = """
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<ui32>) {
    %sum = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %id = stablehlo.replica_id : tensor<ui32>
    return %sum, %id : tensor<?x3xf32>, tensor<ui32>
  }
}
"""

WAVES = """
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    %sine = stablehlo.sine %x : tensor<?xf32>
    %result = stablehlo.tanh %sine : tensor<?xf32>
    return %result : tensor<?xf32>
  }
}
"""


@pytest.fixture
def client() -> Client:
    return Client(device_count=2, threads=1)


def test_devices_have_numbers_and_memories(client: Client) -> None:
    first, second = client.devices()
    assert (first.id, second.id, client.device(1)) == (0, 1, second)
    kinds = [memory.kind for memory in second.memories()]
    assert kinds == ["device", "pinned_host", "unpinned_host"] == client.topology().memory_kinds
    assert second.default_memory() is second.memories()[0]
    assert second.memory("pinned_host").addressable_by_devices() == [second]
    assert len({memory.id for memory in client.memories()}) == 6
    with pytest.raises(ValueError, match="no memory of kind 'disk'"):
        first.memory("disk")
    with pytest.raises(ValueError, match="no device 2"):
        client.device(2)
    with pytest.raises(ValueError, match="device_count"):
        Client(device_count=0)


def test_topologies(client: Client) -> None:
    topology = client.topology()
    again = TopologyDescription.deserialize(topology.serialize())
    assert again == topology == TopologyDescription(2)
    assert again.fingerprint == topology.fingerprint != TopologyDescription(3).fingerprint
    assert again.device_count == 2
    with pytest.raises(ValueError, match="no topology"):
        TopologyDescription.deserialize(b"something else")


def test_buffers_lie_in_a_memory(client: Client) -> None:
    x = np.arange(6, dtype=np.float32)
    second = client.device(1)
    buffer = client.buffer_from_host(x, second)
    assert (buffer.device, buffer.memory) == (second, second.default_memory())
    pinned = buffer.copy_to_memory(client.device(0).memory("pinned_host"))
    buffer.delete()
    assert pinned.device is client.device(0)
    assert np.array_equal(pinned.to_host(), x)
    with pytest.raises(RuntimeError, match="deleted"):
        buffer.copy_to_memory(second.default_memory())
    assert client.buffer_from_host(x).device is client.device(0)


class OnlyDLPack:
    """An array of a library that has DLPack and nothing else."""

    def __init__(self, array: np.ndarray):
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_dlpack_in_and_out(client: Client) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    buffer = client.buffer_from_host(OnlyDLPack(x))
    shared = np.from_dlpack(buffer)
    x[:] = 0
    assert np.array_equal(shared, np.arange(6).reshape(2, 3))
    assert shared.ctypes.data == np.asarray(buffer).ctypes.data
    buffer.delete()
    assert shared[1, 2] == 5


def test_what_is_there_is_ready(client: Client) -> None:
    event = client.buffer_from_host(np.ones(3)).ready_event()
    seen: list[BaseException | None] = []
    event.on_ready(seen.append)
    event.block_until_ready()
    assert (type(event), event.is_ready(), event.error(), seen) == (Event, True, None, [None])


def test_calls_that_nobody_waits_for(client: Client) -> None:
    loaded = client.load(add_one())
    x = np.ones((4, 8), np.float32)
    gate = threading.Event()
    client.run_async(gate.wait)
    future = loaded.execute_async([x])
    assert not future.is_ready()
    with pytest.raises(TimeoutError):
        future.result(timeout=0.01)
    gate.set()
    result = future.result()
    assert np.array_equal(result.to_host(), x + 1)
    assert result.memory is client.device(0).default_memory()

    async def wait() -> np.ndarray:
        found: np.ndarray = await loaded.execute_async([x], output="numpy")
        return found

    assert np.array_equal(asyncio.run(wait()), x + 1)
    failed = loaded.execute_async([np.ones((4, 9), np.float32)])
    assert isinstance(failed.error(), ShapeError)
    with pytest.raises(ShapeError):
        failed.block_until_ready()


def test_sizes_from_the_arguments(client: Client) -> None:
    loaded = client.load(add_one())
    assert loaded.dims_of((5, 8)) == {"b": 5}
    assert loaded.result_shapes(**loaded.dims_of((5, 8))) == ((5, 8),)
    for shapes in ([(5, 7)], [(5,)], [], [(5, 8), (5, 8)], [(1000001, 8)]):
        with pytest.raises(ShapeError):
            loaded.dims_of(*shapes)


def test_costs_and_memory_are_functions_of_the_sizes(client: Client) -> None:
    arguments = [("x", [{"b": 2, "": 1}, 4], "f32")]
    loaded = client.load(identity(arguments, [symbol("b", 0, 0, scale=2, offset=1)], arena=64))
    for b in (1, 10):
        size = 4 * 4 * (2 * b + 1)
        stats = loaded.memory(b=b)
        assert (stats.argument_bytes, stats.result_bytes, stats.arena_bytes) == (size, size, 64)
        assert stats.code_bytes > 0
        assert loaded.cost_analysis(b=b) == {"bytes accessed": 2.0 * size}
    with pytest.raises(ShapeError):
        loaded.cost_analysis(c=1)


def test_the_compiler_counts_flops() -> None:
    text = """
    func.func @main(%x: tensor<?x4xf32>, %w: tensor<4x5xf32>) -> tensor<?x5xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x4xf32>, tensor<4x5xf32>) -> tensor<?x5xf32>
      %1 = stablehlo.tanh %0 : tensor<?x5xf32>
      return %1 : tensor<?x5xf32>
    }"""  # noqa: E501
    executable = shlo_disc.compile(text)
    (name,) = executable.loaded.dims_of((3, 4), (4, 5))
    for b in (1, 7):
        cost = executable.cost_analysis(**{name: b})
        assert cost == {"bytes accessed": 4.0 * (4 * b + 20 + 5 * b), "flops": 2.0 * b * 20 + 5 * b}


def test_donated_buffers_are_gone(client: Client) -> None:
    artifact = identity([("x", [3], "f32"), ("y", [3], "f32")])
    rows = [{**array("x", [3]), "donated": True}, array("y", [3])]
    loaded = client.load(replace(artifact, header={**artifact.header, "arguments": rows}))
    x, y = (client.buffer_from_host(np.ones(3, np.float32)) for _ in range(2))
    with pytest.raises(ShapeError):
        loaded.execute([x, client.buffer_from_host(np.ones(4, np.float32))])
    assert not x.is_deleted()
    results = loaded.execute([x, y])
    assert (x.is_deleted(), y.is_deleted()) == (True, False)
    assert np.array_equal(results[0], np.ones(3, np.float32))


def test_a_program_of_two_devices() -> None:
    executable = shlo_disc.compile(SUM, options=shlo_disc.Options(replicas=2))
    assert [device.id for device in executable.loaded.devices()] == [0, 1]
    for rows in (1, 5):
        shards = [np.full((rows, 3), k + 1, np.float32) for k in range(2)]
        results = executable.execute_sharded([[shard] for shard in shards])
        for number, (total, own) in enumerate(results):
            assert np.array_equal(total, np.full((rows, 3), 3, np.float32))
            assert own == number


def own_threads() -> set[str]:
    """The threads of this process."""
    return set(os.listdir("/proc/self/task"))


@pytest.mark.parametrize(("threads", "more"), [(1, 0), (2, 0), (5, 2), (9, 6)])
def test_devices_share_the_threads(threads: int, more: int) -> None:
    """Each of two devices has half of the threads, its caller among them, and they are used again."""
    executable = shlo_disc.compile(WAVES, options=shlo_disc.Options(replicas=2))
    client = Client(device_count=2, threads=threads)
    program = client.load(executable.loaded.serialize(), trust=True)
    x = np.linspace(-3, 3, 1_000_000, dtype=np.float32)

    def run() -> None:
        for found in program.execute_sharded([[x], [-x]]):
            np.testing.assert_allclose(np.abs(found), np.abs(np.tanh(np.sin(x))), rtol=1e-5, atol=1e-6)

    executable.execute_sharded([[x], [x]])  # has a thread for each device but the caller's, which others use, too
    before = own_threads()
    run()
    first = own_threads()
    assert len(first - before) == more
    for _ in range(20):
        run()
    assert own_threads() == first


def test_results_lie_on_their_devices() -> None:
    executable = shlo_disc.compile(SUM, options=shlo_disc.Options(replicas=2))
    loaded = executable.loaded
    shards = [[np.ones((1, 3), np.float32)]] * 2
    results = loaded.execute_sharded(shards, output="buffer")
    assert [total.device.id for total, _ in results] == [0, 1]
    swapped = loaded.execute_sharded(shards, devices=loaded.devices()[::-1], output="buffer")
    assert [total.device.id for total, _ in swapped] == [1, 0]


def test_programs_of_several_devices_are_refused(client: Client) -> None:
    executable = shlo_disc.compile(SUM, options=shlo_disc.Options(replicas=2))
    x = np.ones((1, 3), np.float32)
    with pytest.raises(ValueError, match="runs on 2 devices, not 1 shards"):
        executable.execute_sharded([[x]])
    with pytest.raises(ShapeError):
        executable.execute_sharded([[x], [x[:, :2]]])
    with pytest.raises(CustomCallError, match="several devices"):
        executable(x)
    with pytest.raises(CustomCallError):  # parts of different sizes
        executable.execute_sharded([[x], [np.ones((2, 3), np.float32)]])
    data = executable.loaded.serialize()
    with pytest.raises(ValueError, match="the client has 1"):
        Client(threads=1).load(data, trust=True)
    again = client.load(data, trust=True)
    assert isinstance(again, LoadedExecutable)
    assert again.fingerprint == executable.loaded.fingerprint
    assert np.array_equal(again.execute_sharded([[x], [x]])[1][0], 2 * x)
    artifact = add_one()
    with pytest.raises(ArtifactError, match="replicas"):
        client.load(replace(artifact, header={**artifact.header, "replicas": 0}))
    with pytest.raises(OptionError, match="replicas"):
        shlo_disc.Options(replicas=0)
