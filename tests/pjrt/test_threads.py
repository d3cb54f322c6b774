# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One client in many threads at once: programs, buffers, donation, transfers, calls over several devices.

In a build with `DISC_SANITIZE=thread` this is what ThreadSanitizer watches (`docs/testing.md`): no JAX is in the
process, whose own synchronisation it does not see.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from tests.pjrt.plugin import library

pypjrt: Any = pytest.importorskip("pypjrt")
client_module: Any = pytest.importorskip("pypjrt.client")
options_module: Any = pytest.importorskip("pypjrt.compile_options")
F32 = pytest.importorskip("pypjrt._abi.pjrt_0_114").PJRT_Buffer_Type_F32

THREADS, ROUNDS, DEVICES = 4, 12, 2
SQUARES = """
func.func @main(%a: tensor<SIZExf32>) -> tensor<SIZExf32> {
  %0 = stablehlo.multiply %a, %a : tensor<SIZExf32>
  return %0 : tensor<SIZExf32>
}
"""
DONATED = """
func.func @main(%a: tensor<512xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<512xf32>) -> tensor<512xf32> {
  %0 = stablehlo.add %a, %b : tensor<512xf32>
  return %0 : tensor<512xf32>
}
"""
SUMS = """
module attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {
func.func @main(%a: tensor<700xf32>) -> tensor<700xf32> {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<700xf32>) -> tensor<700xf32>
  return %0 : tensor<700xf32>
}
}
"""


def artifact(text: str) -> bytes:
    """A program as JAX sends it."""
    with make_context():
        return bytes(stablehlo.serialize_portable_artifact(ir.Module.parse(text), "1.17.0"))


class Work:
    """The operations that threads run on one client. Each method may run in all of them at once."""

    def __init__(self, client: Any, devices: Sequence[Any]):
        self.client = client
        self.devices = devices
        self.squares = {size: artifact(SQUARES.replace("SIZE", str(size))) for size in range(3, 3 + 2 * ROUNDS)}
        self.donated = client.compile(artifact(DONATED))
        both = options_module.CompileOptions(num_replicas=DEVICES)
        self.sums = client.compile(artifact(SUMS), options=both)
        self.shared = self.put(np.ones(512, np.float32), 0)

    def put(self, array: np.ndarray, device: int) -> Any:
        return self.client.buffer_from_host(
            memoryview(array.view(np.uint8)), F32, list(array.shape), self.devices[device]
        )

    def get(self, buffer: Any) -> np.ndarray:
        return np.frombuffer(buffer.to_host(), np.float32)

    def known_programs(self, number: int) -> None:
        """One skeleton at many sizes, which one thread generalises while the others ask for it."""
        size = 3 + number
        x = np.arange(size, dtype=np.float32)
        executable = self.client.compile(self.squares[size])
        (result,) = executable(self.put(x, 0))
        assert np.array_equal(self.get(result), x * x)
        executable.close()

    def donation(self, number: int) -> None:
        a = self.put(np.full(512, number, np.float32), 0)
        (result,) = self.donated(a, self.shared)
        assert a.is_deleted
        assert np.array_equal(self.get(result), np.full(512, number + 1, np.float32))
        result.delete()

    def several_devices(self, number: int) -> None:
        rows = [[self.put(np.full(700, number + d, np.float32), d)] for d in range(DEVICES)]
        for (result,) in self.sums.execute_sharded(rows):
            assert np.array_equal(self.get(result), np.full(700, 2 * number + 1, np.float32))

    def copies(self, number: int) -> None:
        copy = self.shared.copy_to_device(self.devices[number % DEVICES])
        assert self.get(copy).sum() == 512
        copy.delete()


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    monkeypatch.setattr("pypjrt._loader.pjrt_call", contextlib.nullcontext)  # the client's lock around each call
    plugin = pypjrt.Plugin(library())
    plugin.initialize()
    client = client_module.Client(plugin, options={"device_count": DEVICES})
    with client.devices() as devices:
        yield Work(client, devices)
    client.close()


@pytest.mark.parametrize("name", ["known_programs", "donation", "several_devices", "copies", "all"])
def test_many_threads(work: Work, name: str) -> None:
    names = ["known_programs", "donation", "several_devices", "copies"] if name == "all" else [name]
    start = threading.Barrier(THREADS)

    def run(thread: int) -> None:
        start.wait()
        for number in range(ROUNDS):
            method: Callable[[int], None] = getattr(work, names[(thread + number) % len(names)])
            method(number + thread)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(run, thread) for thread in range(THREADS)]:
            done.result()
