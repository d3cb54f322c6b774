# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C, and other signals whose handlers raise, while a program runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

START = """
import faulthandler, os, signal, threading, time
import jax, jax.numpy as jnp, numpy as np, shlo_disc

signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs in the background ignore
faulthandler.dump_traceback_later(250, exit=True)  # also where nobody waits any more
FOREVER = np.int32(2**31 - 1)  # trips
x = np.full((256, 256), 0.01, np.float32)

def repeated(step):
    return lambda x, n: jax.lax.fori_loop(0, n, lambda i, y: step(y), x)

def compiled(function, shape=(256, 256)):
    return shlo_disc.compile(function, args=((shape, "float32"), ((), "int32")))

def interrupt_soon(seconds=0.3, number=signal.SIGINT):
    threading.Timer(seconds, lambda: os.kill(os.getpid(), number)).start()
"""

PLAIN = """
def check(program, given):
    expected = program(given, np.int32(7))
    bound, live = program.bind(given), program.memory_stats()["live_bytes"]
    for call, args in ((program, (given, FOREVER)), (program.loaded, (given, FOREVER)), (bound, (FOREVER,))):
        interrupt_soon()
        try:
            call(*args)
            print("not interrupted")
        except KeyboardInterrupt:
            print("interrupted")
        assert program.memory_stats()["live_bytes"] == live, program.memory_stats()
        np.testing.assert_array_equal(program(given, np.int32(7)), expected)

check(compiled(repeated(lambda y: jnp.tanh(y @ y))), x)
check(compiled(repeated(lambda y: y * 0.5 + 1), ()), np.float32(3))  # of kernels that the host program calls itself
check(compiled(repeated(lambda y: jax.lax.cond(y.sum() > 0, jnp.sin, jnp.cos, y))), x)
"""

KERNELS = """
def recurrence(x, n):
    weights = np.full((16, 16), 0.1, np.float32)

    def step(carried):
        i, y, total = carried
        return i + 1, jnp.tanh(y @ weights + x), total + y

    first = jnp.int32(0), jnp.zeros_like(x), jnp.zeros_like(x)
    return jax.lax.while_loop(lambda carried: carried[0] < n, step, first)[1:]

def averages(x, n):
    return jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + x), (jnp.int32(0), x))[1]

def wide(x, n):
    weights = np.full((240, 240), 1e-3, np.float32)
    step = lambda carried: (carried[0] + 1, jnp.tanh(carried[1] @ weights) + x.sum(-1, keepdims=True))
    return jax.lax.while_loop(lambda c: c[0] < n, step, (jnp.int32(0), jnp.zeros((x.shape[0], 240))))[1]

def both(x, n):  # two loops that are one kernel, and one behind them
    return averages(recurrence(x, n)[0], n), averages(x + 1, n)

for function in (recurrence, averages, wide, both):
    program = shlo_disc.compile(function, args=(("b, 16", "float32"), ((), "int32")))
    kinds = {kernel.kind for kernel in program.kernels}
    for rows in (1, 2, 7, 300):
        given = np.ones((rows, 16), np.float32)
        expected = program(given, np.int32(7))
        live = program.memory_stats()["live_bytes"]
        for call in (program, program.loaded):
            interrupt_soon(0.2)
            start = time.perf_counter()
            try:
                call(given, FOREVER)
                print("not interrupted")
            except KeyboardInterrupt:
                late = time.perf_counter() - start
                print("interrupted" if late < 5 else f"after {late} s")
            assert program.memory_stats()["live_bytes"] == live, program.memory_stats()
            jax.tree.map(np.testing.assert_array_equal, program(given, np.int32(7)), expected)
    assert "recurrence" in kinds, (function, kinds)
"""

OTHER_THREADS = """
def averages(x, n):
    return jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + x), (jnp.int32(0), x))[1]

program = shlo_disc.compile(averages, args=(("b, 16", "float32"), ((), "int32")))
given, steps, found = np.ones((2, 16), np.float32), np.int32(200_000_000), []
others = [threading.Thread(target=lambda: found.append(program(given, steps))) for _ in range(2)]
for other in others:
    other.start()
interrupt_soon(0.3)
try:
    program(given, FOREVER)
except KeyboardInterrupt:
    print("interrupted", len(found))
for other in others:
    other.join()
for one in found:
    np.testing.assert_array_equal(one, np.full_like(given, 2))
print(len(found), "others are done")
"""

HANDLERS = """
products = compiled(repeated(lambda y: jnp.tanh(y @ y)))

class TooLong(Exception):
    pass

def raise_too_long(number, frame):
    raise TooLong("for the whole second")

signal.signal(signal.SIGALRM, raise_too_long)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    products(x, FOREVER)
except TooLong as error:
    print(error)
counted = []
signal.signal(signal.SIGALRM, lambda number, frame: counted.append(products(x, np.int32(2)).shape))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
interrupt_soon(1.0)
try:
    products(x, FOREVER)
except KeyboardInterrupt:
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("handled", len(counted) > 1, set(counted))
"""

OTHERS = """
products = compiled(repeated(lambda y: jnp.tanh(y @ y)))
start = time.perf_counter()
products(x, np.int32(100))
steps = np.int32(300 * max(1.0, 0.2 / (time.perf_counter() - start)))
expected, found = products(x, steps), []
threads = [threading.Thread(target=lambda: found.append(products(x, steps))) for _ in range(2)]
for thread in threads:
    thread.start()
interrupt_soon(0.05)
try:
    products(x, FOREVER)
except KeyboardInterrupt:
    print("interrupted")
for thread in threads:
    thread.join()
for one in found:
    np.testing.assert_array_equal(one, expected)
print(len(found), "others are done")
"""

CALLBACKS = """
depth = []

def again(a):
    depth.append(len(depth))
    return inner(a, FOREVER)

inner = compiled(repeated(lambda y: jnp.tanh(y @ y)))
outer = shlo_disc.compile(lambda y: jax.pure_callback(again, jax.ShapeDtypeStruct(y.shape, y.dtype), y) + 1, args=(x,))
interrupt_soon()
try:
    outer(x)
except KeyboardInterrupt:
    print("interrupted", depth)
np.testing.assert_array_equal(inner(x, np.int32(0)), x)
"""

WAIT = """
program = compiled(repeated(lambda y: jnp.tanh(y @ y)))
start = time.perf_counter()
program(x, np.int32(100))
steps = np.int32(300 * max(1.0, 0.2 / (time.perf_counter() - start)))
running = program.loaded.execute_async((x, steps))
interrupt_soon(0.05)
try:
    running.result()
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", running.is_ready())
np.testing.assert_array_equal(np.asarray(running.result()), program(x, steps))
"""


def output_of(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", START + script], capture_output=True, text=True, check=False, timeout=300
    )
    return done.stdout if done.returncode == 0 else done.stderr


def test_a_call_ends_between_its_commands() -> None:
    """Loops of products, of kernels that the host program calls, and of branches; bound and loaded programs, too. They
    can be called again, and have given all memory back."""
    assert output_of(PLAIN) == "interrupted\n" * 9


@pytest.mark.slow
def test_a_loop_inside_of_a_kernel_ends() -> None:
    """Loops over data of which each is one kernel, of few rows and of many, which several threads work on."""
    assert output_of(KERNELS) == "interrupted\n" * 32


@pytest.mark.slow
def test_kernels_of_other_threads_go_on() -> None:
    assert output_of(OTHER_THREADS) == "interrupted 0\n2 others are done\n"


@pytest.mark.slow
def test_handlers_may_raise_what_they_like_or_go_on() -> None:
    assert output_of(HANDLERS) == "for the whole second\nhandled True {(256, 256)}\n"


@pytest.mark.slow
def test_calls_of_other_threads_go_on() -> None:
    assert output_of(OTHERS) == "interrupted\n2 others are done\n"


@pytest.mark.slow
def test_a_call_within_a_callback() -> None:
    assert output_of(CALLBACKS) == "interrupted [0]\n"


@pytest.mark.slow
def test_a_wait_for_a_call_can_be_interrupted() -> None:
    assert output_of(WAIT) == "interrupted False\n"
