# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C in a program that waits for a long call."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, threading, time
import jax, jax.numpy as jnp, numpy as np, shlo_disc

program = shlo_disc.compile(
    lambda x, n: jax.lax.fori_loop(0, n, lambda i, y: jnp.tanh(y @ y), x), args=(((256, 256), "float32"), ((), "int32"))
)
x = np.full((256, 256), 0.01, np.float32)
start = time.perf_counter()
program(x, np.int32(100))
steps = np.int32(300 * max(1.0, 0.2 / (time.perf_counter() - start)))
running = program.loaded.execute_async((x, steps))
threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    running.result()
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", running.is_ready())
np.testing.assert_array_equal(np.asarray(running.result()), program(x, steps))
"""


@pytest.mark.slow
def test_a_wait_for_a_call_can_be_interrupted() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout == "interrupted False\n", done.stdout + done.stderr
