# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime's GPU over a driver that does as little and as late as it may."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from shlo_disc.errors import DeviceError
from shlo_disc.runtime.allocation import AllocationError
from shlo_disc.runtime.native_module import Gpu, GpuModule
from tests.gpu.marks import needs_no_driver
from tests.gpu.mock_driver import ILLEGAL_ADDRESS, OUT_OF_MEMORY, Image, MockDriver, Refused, mock_driver

pytestmark = needs_no_driver

HALF = 4 << 20
"""Half of the pinned memory that copies go through."""

SIZES = (1, 511, HALF - 1, HALF, HALF + 1, 2 * HALF, 2 * HALF + 1, 5 * HALF + 77)
_ordinals = itertools.count()


@pytest.fixture
def driver(driver: MockDriver) -> Iterator[MockDriver]:
    """The driver, whose caller must free all memory."""
    gc.collect()  # what earlier tests have left
    before = driver.live_bytes
    yield driver
    assert driver.live_bytes == before


@pytest.fixture
def gpu(driver: MockDriver) -> Any:
    """One that no test had before."""
    return Gpu.get(next(_ordinals))


def add(driver: MockDriver, grid: Sequence[int], block: Sequence[int], words: Sequence[int]) -> None:
    """y[i] += amount, for a count of floats at x."""
    address, count, amount = words
    assert grid[0] * block[0] >= count
    driver.view(address, 4 * count).view(np.float32)[...] += amount


def wild(driver: MockDriver, grid: Sequence[int], block: Sequence[int], words: Sequence[int]) -> None:
    """Touches what is not allocated."""
    raise Refused(ILLEGAL_ADDRESS)


@pytest.fixture
def module(driver: MockDriver, gpu: Any) -> Any:
    driver.images[b"kernels"] = Image({"add": (3, add), "wild": (0, wild)})
    return GpuModule(gpu, b"kernels")


def test_what_a_gpu_has(driver: MockDriver, gpu: Any) -> None:
    assert Gpu.count() == driver.devices
    assert Gpu.get(gpu.ordinal) is gpu
    assert gpu.facts == {
        "name": "Mock GPU", "compute_capability": (9, 0), "multiprocessors": 132, "memory": driver.memory,
        "shared_memory": 227 << 10, "registers": 65536, "cache": 50 << 20,
    }  # fmt: skip
    assert gpu.free_memory == driver.memory - driver.live_bytes
    with pytest.raises(DeviceError, match=f"there is no GPU {driver.devices}; there are {driver.devices}"):
        Gpu.get(driver.devices)
    with pytest.raises(DeviceError, match="there is no GPU -1"):
        Gpu.get(-1)


@pytest.mark.parametrize("count", SIZES)
def test_copies_through_pinned_memory(gpu: Any, count: int) -> None:
    """The source is spoilt at once, and nothing has been copied to the GPU by then but what had to be."""
    given = np.random.default_rng(count).integers(0, 256, count, np.uint8)
    want = given.tobytes()
    first, second = gpu.allocate(count), gpu.allocate(count)
    gpu.write(first, given)
    given[...] = 0
    gpu.copy(second, first, count)
    gpu.fill(first, 7, count)
    assert gpu.read(second, count) == want
    assert gpu.read(first, count) == b"\7" * count
    gpu.release(first)
    gpu.release(second)


def test_copies_of_nothing(gpu: Any) -> None:
    gpu.write(0, b"")
    gpu.copy(0, 0, 0)
    gpu.fill(0, 1, 0)
    assert gpu.read(0, 0) == b""


def test_work_is_done_in_order_and_waited_for(driver: MockDriver, gpu: Any, module: Any) -> None:
    kernel = module.kernel("add", "model.py:12")
    address = gpu.allocate(4 * 300)
    gpu.write(address, np.arange(300, dtype=np.float32))
    for amount in (1, 10, 100):
        gpu.launch(kernel, (2, 1, 1), (256, 1, 1), 0, [address, 300, amount])
    event = gpu.record()
    assert driver.launches == []
    assert not event.is_done()
    event.wait()
    assert event.is_done()
    assert driver.launches == ["add"] * 3
    np.testing.assert_array_equal(np.frombuffer(gpu.read(address, 1200), np.float32), np.arange(300) + 111)
    gpu.release(address)


def test_memory_that_is_not_there(driver: MockDriver, gpu: Any) -> None:
    with pytest.raises(AllocationError, match=f"GPU {gpu.ordinal} has too little memory left"):
        gpu.allocate(driver.memory + 1)
    driver.fails["cuMemAlloc_v2"] = OUT_OF_MEMORY
    with pytest.raises(AllocationError):
        gpu.allocate(16)
    gpu.release(gpu.allocate(16))


def test_code_that_does_not_load(driver: MockDriver, gpu: Any, module: Any) -> None:
    with pytest.raises(DeviceError, match=r'load code, of which the driver says "line 1: syntax error".*INVALID_PTX'):
        GpuModule(gpu, b"nonsense")
    with pytest.raises(DeviceError, match=r"find the kernel gone \(GPU \d+\): CUDA_ERROR_NOT_FOUND \(not found\)"):
        module.kernel("gone")


def test_a_launch_that_is_refused_leaves_the_gpu_usable(gpu: Any, module: Any) -> None:
    kernel = module.kernel("add", "model.py:12")
    with pytest.raises(DeviceError, match=r"start the kernel add \(model.py:12\) .*CUDA_ERROR_INVALID_VALUE"):
        gpu.launch(kernel, (1, 1, 1), (2048, 1, 1), 0, [0, 0, 0])
    gpu.wait()


def test_an_error_in_a_kernel_names_what_ran_and_ends_the_gpu(driver: MockDriver, gpu: Any, module: Any) -> None:
    address = gpu.allocate(400)
    for _ in range(20):
        gpu.launch(module.kernel("add"), (1, 1, 1), (128, 1, 1), 0, [address, 100, 1])
    gpu.launch(module.kernel("wild", "model.py:40"), (1, 1, 1), (32, 1, 1), 0, [])
    event = gpu.record()
    message = (
        rf"could not finish the work of a GPU \(GPU {gpu.ordinal}\): CUDA_ERROR_ILLEGAL_ADDRESS .*; the last kernels "
        r"before it: (add, ){15}wild \(model.py:40\)\. .*CUDA_LAUNCH_BLOCKING=1"
    )
    with pytest.raises(DeviceError, match=message):
        gpu.wait()
    for again in (gpu.wait, event.wait, event.is_done, lambda: gpu.allocate(1), lambda: gpu.read(address, 4)):
        with pytest.raises(DeviceError, match=message):
            again()
    gpu.release(address)  # is lost with the context, and not an error
    driver._blocks.pop(address)
    other = Gpu.get(next(_ordinals))
    other.wait()


def test_work_that_is_done_is_not_blamed(gpu: Any, module: Any) -> None:
    address = gpu.allocate(4)
    gpu.launch(module.kernel("add", "first"), (1, 1, 1), (32, 1, 1), 0, [address, 1, 1])
    gpu.wait()
    gpu.launch(module.kernel("wild", "second"), (1, 1, 1), (32, 1, 1), 0, [])
    with pytest.raises(DeviceError, match=r"before it: wild \(second\)\."):
        gpu.wait()
    mock_driver()._blocks.pop(address)


def test_threads_share_a_gpu(gpu: Any, module: Any) -> None:
    kernel = module.kernel("add")
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for count in (100, HALF // 4 + 3):
                given = np.random.default_rng(seed).random(count, np.float32)
                address = gpu.allocate(given.nbytes)
                gpu.write(address, given)
                gpu.launch(kernel, (-(-count // 256), 1, 1), (256, 1, 1), 0, [address, count, seed])
                np.testing.assert_array_equal(np.frombuffer(gpu.read(address, given.nbytes), np.float32), given + seed)
                gpu.release(address)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_wait_for_work_that_another_thread_does(driver: MockDriver, gpu: Any) -> None:
    """As of collectives: one thread waits for its stream and lets others in until all have come."""
    has_begun, may_end, ends, failures = threading.Event(), threading.Event(), [], []

    def meet(driver: MockDriver, grid: Sequence[int], block: Sequence[int], words: Sequence[int]) -> None:
        has_begun.set()
        if not driver._changed.wait_for(may_end.is_set, 20):
            failures.append("nobody came")

    driver.images[b"meet"] = Image({"meet": (0, meet)})
    module = GpuModule(gpu, b"meet")
    gpu.launch(module.kernel("meet"), (1, 1, 1), (1, 1, 1), 0, [])

    def wait(name: str) -> None:
        gpu.wait()
        ends.append((name, may_end.is_set()))

    first, second = (threading.Thread(target=wait, args=(name,)) for name in ("first", "second"))
    first.start()
    assert has_begun.wait(20)
    second.start()
    second.join(0.2)
    assert ends == [], "what is waited for is not done"
    with driver._changed:
        may_end.set()
        driver._changed.notify_all()
    first.join()
    second.join()
    assert sorted(ends) == [("first", True), ("second", True)]
    assert failures == []


def test_nothing_is_collected_in_the_middle_of_work(driver: MockDriver, gpu: Any) -> None:
    """A buffer that ends in a kernel would wait for the kernel, and be freed before it has ended."""
    found: list[bool] = []

    def make_garbage(driver: MockDriver, grid: Sequence[int], block: Sequence[int], words: Sequence[int]) -> None:
        for _ in range(3000):
            cycle: list[Any] = []
            cycle.append(cycle)
        found.append(owner() is None)

    class Owner:
        """Ends when Python collects."""

        def __init__(self) -> None:
            self.me = self

    owner = weakref.ref(Owner())
    driver.images[b"garbage"] = Image({"garbage": (0, make_garbage)})
    module = GpuModule(gpu, b"garbage")
    gpu.launch(module.kernel("garbage"), (1, 1, 1), (1, 1, 1), 0, [])
    gpu.wait()
    assert found == [False]
    assert gc.isenabled()


def test_a_child_process_is_refused(gpu: Any) -> None:
    child = os.fork()
    if child == 0:
        try:
            gpu.wait()
        except DeviceError as error:
            os._exit(0 if "forked" in str(error) and "spawn" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    gpu.wait()


def test_nothing_is_left_behind(driver: MockDriver, gpu: Any) -> None:
    driver.images[b"other"] = Image({"add": (3, add)})
    before = driver.live_handles
    module = GpuModule(gpu, b"other")
    kernel, event = module.kernel("add"), gpu.record()
    assert len(driver.live_handles) == len(before) + 2
    del module, event
    gc.collect()
    assert len(driver.live_handles) == len(before) + 1, "a kernel keeps its module"
    del kernel
    gc.collect()
    assert driver.live_handles == before


def test_a_machine_without_a_driver() -> None:
    """In a process of its own, for this one has the mock."""
    command = [sys.executable, "-m", "tests.gpu.no_driver"]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert said.startswith("there is no GPU to run on: NVIDIA's driver (libcuda.so.1) is not installed; compile with")
