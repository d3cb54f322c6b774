# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guard pages: right results in this mode, a signal for a wrong access. Wrong accesses end a process of their own."""

from __future__ import annotations

import mmap
import signal
import subprocess
import sys

import numpy as np
import pytest

import shlo_disc
from shlo_disc.runtime import Client

ADD = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %r = stablehlo.add %x, %y : tensor<?xf32>
  return %r : tensor<?xf32> }"""

ACCESS = """
import ctypes, sys
import numpy as np
from shlo_disc.runtime import Client
offset, write = int(sys.argv[1]), sys.argv[2] == "write"
buffer = Client(guard_pages=True).buffer_from_host(np.ones(5, np.float32))
element = ctypes.c_float.from_address(np.asarray(buffer).ctypes.data + 4 * offset)
if write:
    element.value = 2
print(element.value, flush=True)
del buffer
"""


def access(offset: int, kind: str) -> subprocess.CompletedProcess[str]:
    """A process that reads or writes element `offset` of a block of five floats, and then frees it."""
    return subprocess.run([sys.executable, "-c", ACCESS, str(offset), kind], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("kind", ["read", "write"])
def test_past_the_end_is_a_signal(kind: str) -> None:
    assert access(5, kind).returncode == -signal.SIGSEGV


@pytest.mark.parametrize("kind", ["read", "write"])
def test_the_last_element_is_not(kind: str) -> None:
    done = access(4, kind)
    assert (done.returncode, done.stdout) == (0, "1.0\n" if kind == "read" else "2.0\n")


def test_writing_before_the_start_is_found_when_the_block_is_freed() -> None:
    done = access(-1, "write")
    assert done.returncode == -signal.SIGABRT
    assert "wrote beside a block of 20 bytes" in done.stderr


def test_unwritten_memory_is_nan() -> None:
    assert access(-1, "read").stdout == "nan\n"


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 1024, 1025])
def test_programs_run(size: int) -> None:
    program = shlo_disc.compile(ADD, options=shlo_disc.Options(guard_pages=True))
    x = np.arange(size, dtype=np.float32)
    result = program(x, x)
    np.testing.assert_array_equal(result, 2 * x)
    assert (result.ctypes.data + result.nbytes) % mmap.PAGESIZE == 0 or size == 0


def test_nothing_is_kept() -> None:
    client = Client(guard_pages=True)
    client.buffer_from_host(np.ones(5, np.float32)).delete()
    stats = client.devices()[0].memory_stats()
    assert (stats["live_bytes"], stats["cached_bytes"]) == (0, 0)
