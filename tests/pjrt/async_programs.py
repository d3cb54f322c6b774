# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that return before their runs end, which `test_async.py` makes in a process of their own, on four devices.

`python -m tests.pjrt.async_programs` prints, as JSON, "ok" or what is wrong for each.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax.experimental import io_callback
from jax.sharding import NamedSharding, PartitionSpec

from tests.pjrt.program_table import PLATFORM, case, check, print_outcomes, ramp, refused

MOST_RUNS = 32  # that a device has been given and that have not ended, as `execute.cpp` has it


@jax.jit
def turns(x: Any, count: Any) -> Any:
    """A run whose time is proportional to `count`: x + 1, in the end."""
    return lax.fori_loop(0, count, lambda _, c: lax.optimization_barrier(-c), x) + 1


@functools.cache
def long_count() -> int:
    """An even number of turns that takes a twentieth of a second, at least."""
    count = 1 << 12
    turns(jnp.zeros(8), count).block_until_ready()  # compiles it
    while True:
        start = time.perf_counter()
        turns(jnp.zeros(8), count).block_until_ready()
        if (taken := time.perf_counter() - start) > 0.05:
            return count
        count = round(count * min(2, 0.03 / taken + 1)) * 2


def slowly(x: Any) -> Any:
    """x + 1, a while later."""
    return turns(x, long_count())


@check
def a_call_returns_before_its_run_ends() -> None:
    x = jnp.asarray(ramp(8))
    jax.block_until_ready(slowly(x) * 2)  # compiles both
    y = slowly(x)
    z = y * 2
    assert not y.is_ready() and not z.is_ready()
    np.testing.assert_allclose(z, (ramp(8) + 1) * 2, rtol=1e-6)
    assert y.is_ready()


@check
def short_runs_end_within_their_calls() -> None:
    program = jax.jit(lambda x: x + 1)
    x = jnp.asarray(ramp(8))
    assert sum(jax.block_until_ready(program(x)) is not None and program(x).is_ready() for _ in range(50)) > 25


@case
def chains() -> Any:
    """More calls than there may be in flight, of small and of large arrays, some of which are short."""
    found = []
    for rows in (1, 17, 700):
        x = y = jnp.asarray(ramp(rows, 64) / 50)
        w = jnp.asarray(ramp(64, 64) / 500)
        step = jax.jit(lambda x, w: jnp.tanh(x @ w) + x)
        for _ in range(MOST_RUNS + 8):
            x, y = step(x, w), y * 0.5 + x[:1]
        found += [x, y]
    return found


@case
def training() -> Any:
    """Donated states, a batch of NumPy's for each step, and a loss that is read now and then."""

    def loss(w: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(w: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(w, x, y)
        return jax.tree.map(lambda w, g: w - 0.1 * g, w, gradient), value

    w = [jnp.asarray(ramp(96, 128) / 4000), jnp.asarray(ramp(128, 3) / 100)]
    batch, losses = np.empty((257, 96), np.float32), []
    for k in range(40):
        batch[:] = ramp(257, 96) / 1500 + k
        w, value = step(w, batch, ramp(257, 3) / 50)
        losses.append(value if k % 10 else float(value))
    return w, losses


@check
def arguments_that_the_caller_changes_afterwards() -> None:
    """NumPy's arrays are read before a call returns, used in place or not."""
    raw = np.empty(4 * 50_000 + 64, np.uint8)
    for offset in (0, 16):
        owner = raw[-raw.ctypes.data % 64 + offset :][: 4 * 49_000].view(np.float32)
        owner[:] = 3
        y = turns(owner, 400)
        owner[:] = 5
        assert (np.asarray(y) == 4).all()


@check
def donation_waits_for_readers() -> None:
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.full(100_000, 2.0)
    y = turns(x, 400)
    z = add(x)
    assert x.is_deleted()
    others = [jnp.full(100_000, float(k)) * 2 for k in range(8)]  # would take the memory of x
    assert (np.asarray(y) == 3).all() and (np.asarray(z) == 3).all()
    assert [int(other[-1]) for other in others] == [2 * k for k in range(8)]


@check
def deletion_waits_for_readers() -> None:
    x = jnp.full(8, 2.0) * 3
    y = slowly(x)
    x.delete()
    z = slowly(y)
    y.delete()
    refused(lambda: y + 1, "deleted", error=RuntimeError)
    assert (np.asarray(z) == 8).all()


@check
def a_call_may_outlive_its_program() -> None:
    y = jax.jit(lambda x: slowly(x) * 2)(jnp.zeros(8))
    jax.clear_caches()
    assert (np.asarray(y) == 2).all()


@check
def calls_in_flight_are_few() -> None:
    count = long_count() // 40 * 2
    results = [turns(jnp.full(8, float(k)), count) for k in range(MOST_RUNS + 20)]
    assert sum(not y.is_ready() for y in results) <= MOST_RUNS
    assert [int(y[0]) for y in results] == list(range(1, MOST_RUNS + 21))


@check
def memory_is_that_of_one_call_at_a_time() -> None:
    """A queue of donating calls keeps no results that are not there yet."""
    device = jax.devices(PLATFORM)[0]
    step = jax.jit(lambda x: jnp.sin(x) * 2, donate_argnums=0)
    x = step(jnp.ones(1 << 20))
    x.block_until_ready()
    before = device.memory_stats()["bytes_in_use"]
    for _ in range(20):
        x = step(x)
        assert device.memory_stats()["bytes_in_use"] < before + 3 * x.nbytes
    x.block_until_ready()
    assert device.memory_stats()["bytes_in_use"] <= before


@check
def failures_come_with_the_results() -> None:
    def fail(_: Any) -> Any:
        raise ValueError("not this one")

    x = slowly(jnp.zeros(8))
    failed = jax.jit(lambda x: (jax.pure_callback(fail, x, x), x + 1))(x)
    after = slowly(failed[0] * 2)
    for result in (*failed, after):
        refused(lambda r=result: r, "ValueError: not this one")
        refused(lambda r=result: np.asarray(r), "not this one")
    assert (np.asarray(slowly(x)) == 2).all()


@check
def lack_of_memory_comes_with_the_results() -> None:
    program = jax.jit(lambda x: jnp.zeros((1 << 44,), np.int8) + x)
    result = program(np.int8(1))
    refused(lambda: result, "RESOURCE_EXHAUSTED")
    refused(lambda: result[:3], "RESOURCE_EXHAUSTED")


@check
def copies_to_the_host() -> None:
    slowly(jnp.asarray(ramp(4, 2)))  # compiles it
    y = slowly(jnp.asarray(ramp(4, 2)))
    y.copy_to_host_async()
    assert not y.is_ready()
    turned = jax.device_put(y, jax.devices("cpu")[0])
    np.testing.assert_allclose(y, ramp(4, 2) + 1, rtol=1e-6)
    np.testing.assert_allclose(turned, ramp(4, 2) + 1, rtol=1e-6)
    assert all((np.asarray(a) == 1).all() for a in jax.device_get([slowly(jnp.zeros(8)) for _ in range(3)]))


@check
def views_of_results_to_come() -> None:
    y = slowly(jnp.zeros(8))
    on_cpu = jax.device_put(y, jax.devices("cpu")[0])
    assert np.from_dlpack(on_cpu).tolist() == [1] * 8
    z = slowly(y)
    address = z.unsafe_buffer_pointer()
    assert np.asarray(z).ctypes.data == address and (np.asarray(z) == 2).all()
    pinned = jax.device_put(slowly(z), z.sharding.with_memory_kind("pinned_host"))
    assert (np.asarray(pinned) == 3).all()


@check
def effects_keep_their_order() -> None:
    seen: list[float] = []

    @jax.jit
    def note(x: Any) -> Any:
        io_callback(lambda a: seen.append(float(a)), None, x[0], ordered=True)
        jax.debug.callback(lambda a: seen.append(-float(a)), x[0], ordered=True)
        return x * 2

    x = slowly(jnp.ones(8))
    for _ in range(3):
        x = note(slowly(x))
    jax.effects_barrier()
    assert seen == [3, -3, 7, -7, 15, -15], seen


@check
def callbacks_may_call_programs() -> None:
    """While others are in flight, of which one is what a callback reads."""
    waiting = [slowly(jnp.full(8, float(k))) for k in range(4)]

    def call(x: Any) -> Any:
        return np.asarray(slowly(jnp.asarray(x)) + waiting[3])

    y = jax.jit(lambda x: jax.pure_callback(call, x, x) * 2)(waiting[0])
    assert (np.asarray(y) == 12).all()


@check
def many_threads() -> None:
    count = long_count() // 100

    def work(k: int) -> Any:
        x = jnp.full(8, float(k))
        for _ in range(20):
            x = turns(x, count // 2 * 2)
        return x

    stop = threading.Event()
    busy = threading.Thread(target=lambda: [None for _ in iter(stop.is_set, True)])  # keeps Python's lock
    busy.start()
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(12)))
    stop.set()
    busy.join()
    assert [int(x[0]) for x in results] == [20 + k for k in range(12)]


@check
def several_devices() -> None:
    devices = jax.devices(PLATFORM)
    mesh = jax.make_mesh((4,), ("i",), devices=devices)
    a = jax.device_put(ramp(8, 3), NamedSharding(mesh, PartitionSpec("i")))
    count = long_count() // 8 * 2

    def body(a: Any) -> Any:
        return lax.psum(lax.fori_loop(0, count, lambda _, c: lax.optimization_barrier(-c), a), "i")

    program = jax.jit(shard_map(body, mesh=mesh, in_specs=PartitionSpec("i"), out_specs=PartitionSpec()))
    jax.block_until_ready(program(a))
    first = program(a)
    again = program(jax.device_put(jnp.tile(first, (4, 1)), a.sharding))
    assert not again.is_ready()
    expected = ramp(8, 3).reshape(4, 2, 3).sum(0)
    np.testing.assert_allclose(first, expected, rtol=1e-5)
    np.testing.assert_allclose(again, 4 * expected, rtol=1e-5)


@check
def devices_wait_for_each_other() -> None:
    first, second = jax.devices(PLATFORM)[:2]
    x = slowly(jax.device_put(np.zeros(8, np.float32), first))
    y = slowly(jax.device_put(x, second))
    assert not y.is_ready() and y.devices() == {second}
    assert (np.asarray(y) == 2).all()


@check
def a_child_of_a_fork() -> None:
    """A fork waits for runs; the child has workers of its own."""
    y = slowly(jnp.zeros(8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX advises against forks
        child = os.fork()
    if child == 0:
        fine = (np.asarray(y) == 1).all() and (np.asarray(slowly(y)) == 2).all()
        os._exit(0 if fine else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert (np.asarray(slowly(y)) == 2).all()


if __name__ == "__main__":
    print_outcomes()
