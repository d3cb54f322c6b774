# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime at its limits: address space, very many calls, arguments that end where memory ends."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import subprocess
import sys

import numpy as np
import pytest

from shlo_disc.runtime import Client
from tests.unit.runtime.programs import add_one


def run_in_new_process(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, cwd=os.getcwd())


def test_an_address_space_limit_is_an_error_and_not_the_end() -> None:
    """Real failures of the system's allocator, not of the test hook."""
    run_in_new_process("""
import resource
import numpy as np
from shlo_disc.runtime import AllocationError, Client
from tests.unit.runtime.programs import add_one

executable = Client(threads=1).load(add_one())
x = np.ones((1_000_000, 8), np.float32)
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for extra in (8 << 20, 40 << 20):  # neither the result nor, then, the arena of 32 MB fits
    resource.setrlimit(resource.RLIMIT_AS, (in_use + extra, -1))
    try:
        executable(x)
        raise SystemExit("the limit had no effect")
    except AllocationError as error:
        assert error.bytes_asked == x.nbytes
    assert (executable(x[:1000]) == 2).all()
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert (executable(x) == 2).all()
""")


def test_exit_while_threads_run_calls() -> None:
    """The interpreter ends while daemon threads are inside calls: no crash, no hang."""
    run_in_new_process("""
import threading, time
import numpy as np
from shlo_disc.runtime import Client
from tests.unit.runtime.programs import add_one

executable = Client(threads=2).load(add_one())
x = np.ones((20_000, 8), np.float32)
def forever():
    while True:
        executable(x)
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
""")


def test_arguments_that_end_at_a_guard_page() -> None:
    """Nothing reads past the end of an argument, in place or while it is copied."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 4 * page)
    base = np.frombuffer(memory, np.uint8)
    start = base.__array_interface__["data"][0]
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + 3 * page), ctypes.c_size_t(page), 0) == 0
    executable = Client(threads=2).load(add_one())
    try:
        for rows in (1, 2, 3, 17, 96, 384):
            array = base[3 * page - rows * 32 : 3 * page].view(np.float32).reshape(rows, 8)
            array[...] = rows
            assert (executable(array) == rows + 1).all()
            assert (executable(array[::-1]) == rows + 1).all()
    finally:
        assert libc.mprotect(ctypes.c_void_p(start + 3 * page), ctypes.c_size_t(page), 3) == 0


@pytest.mark.slow
def test_a_million_calls_over_a_thousand_shapes() -> None:
    """Less than one byte a call."""
    executable = Client().load(add_one())
    arrays = [np.zeros((rows, 8), np.float32) for rows in range(1, 1001)]

    def resident_bytes() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    for i in range(20_000):
        executable(arrays[i % 1000])
    gc.collect()
    before = resident_bytes()
    for i in range(1_000_000):
        executable(arrays[i % 1000])
    gc.collect()
    assert resident_bytes() - before < 1_000_000


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_workers_leave_the_callers_processor_to_it() -> None:
    executable = Client(threads=2).load(add_one())
    mine, before = os.sched_getaffinity(0), set(os.listdir("/proc/self/task"))
    rows = np.ones((4096, 8), np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(executable(rows), rows + 1)
    masks = [os.sched_getaffinity(int(task)) for task in set(os.listdir("/proc/self/task")) - before]
    assert os.sched_getaffinity(0) == mine
    assert any(len(mask) == len(mine) - 1 and mask < mine for mask in masks)
