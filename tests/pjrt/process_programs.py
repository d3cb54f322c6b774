# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over the devices of several processes, which `test_processes.py` starts with mpiexec.

`python -m tests.pjrt.process_programs PORT FILE NAME...` runs what is named, in each process. There are several of
them, under mpiexec or with numbers in the variable PROCESS. It runs programs of `device_programs.py`, compared with
four of XLA's CPU devices in the same process, and what is here. Process i writes "ok" or what is wrong for each, as
JSON, into FILE.i.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import jax
import numpy as np
from jax import lax, shard_map
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding

from shlo_disc.runtime.native_module import plugin_programs
from tests.pjrt.device_programs import CASES, P, line
from tests.pjrt.program_table import PLATFORM, ramp

CHECKS: dict[str, Callable[[], None]] = {}


def check(function: Callable[[], None]) -> Callable[[], None]:
    """Something with assertions of its own."""
    CHECKS[function.__name__] = function
    return function


def refused(program: Callable[[], Any], *texts: str) -> None:
    """Expect an error with one of these texts."""
    try:
        jax.block_until_ready(program())
    except jax.errors.JaxRuntimeError as error:
        assert any(text in str(error) for text in texts), str(error)
    else:
        raise AssertionError("there is no error")


def whole(array: jax.Array) -> np.ndarray:
    """All elements, those of other processes included."""
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))


def sums(size: int = 3) -> Any:
    """The sum over all devices of an array that depends on the process."""
    mesh = line(jax.devices())
    mine = np.full((len(jax.local_devices()), size), 1.0 + jax.process_index(), np.float32)
    a = jax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), mine)
    return jax.jit(shard_map(lambda a: lax.psum(a, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))(a)


@check
def devices_of_all_processes() -> None:
    count, index = jax.process_count(), jax.process_index()
    here = jax.local_devices()
    assert [d.id for d in jax.devices()] == list(range(count * len(here)))
    assert [d.id for d in here] == [len(here) * index + k for k in range(len(here))]
    assert [d.local_hardware_id for d in here] == list(range(len(here)))
    assert {d.process_index for d in here} == {index}
    assert (jax.jit(lambda a: a + 1)(np.ones(3)) == 2).all()


@check
def arrays_of_all_processes() -> None:
    mesh = line(jax.devices())
    everything = ramp(2 * len(jax.devices()), 3)
    mine = np.split(everything, jax.process_count())[jax.process_index()]
    a = jax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), mine)
    assert a.shape == everything.shape and not a.is_fully_addressable
    np.testing.assert_array_equal(whole(jax.jit(lambda a: a * 2)(a)), everything * 2)
    np.testing.assert_allclose(jax.jit(lambda a: a.sum(0))(a), everything.sum(0), rtol=1e-5)


@check
def utilities() -> None:
    index, count = jax.process_index(), jax.process_count()
    gathered: Any = multihost_utils.process_allgather(np.float32(index))
    assert gathered.tolist() == list(range(count))
    assert multihost_utils.broadcast_one_to_all(np.int32(index + 7)) == 7
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal(np.arange(5), "differs")


@check
def sums_in_the_order_of_devices() -> None:
    """Bit for bit what one process with as many devices gets."""
    mesh, count = line(jax.devices()), len(jax.devices())
    for size in (100, 50_001):  # whole arrays, and shares of them
        parts = np.random.default_rng(size).standard_normal((count, size)).astype(np.float32)
        mine = np.split(parts, jax.process_count())[jax.process_index()]
        a = jax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), mine)
        found = jax.jit(shard_map(lambda a: lax.psum(a, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))(a)
        expected = parts[0]
        for part in parts[1:]:
            expected = expected + part
        assert np.array_equal(np.asarray(found)[0], expected)


@check
def one_program_for_all_shapes() -> None:
    """Compiled once as it is and once with symbols, in each process, while sums go between them."""
    mesh, count = line(jax.devices()), len(jax.devices())
    before = dict(plugin_programs().counts)
    step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: ((jax.nn.tanh(x @ w) - x) ** 2).mean())(w))
    w = jax.make_array_from_callback((4, 4), NamedSharding(mesh, P()), lambda i: np.eye(4, dtype=np.float32)[i])
    for rows in (2, 3, 5, 4, 7, 11):
        everything = ramp(rows * count, 4) % 3
        mine = np.split(everything, jax.process_count())[jax.process_index()]
        x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), mine)
        y = np.tanh(everything)
        gradient = everything.T @ ((y - everything) * (1 - y**2)) * 2 / everything.size
        np.testing.assert_allclose(step(w, x), np.eye(4) - 0.1 * gradient, rtol=1e-5, atol=1e-6)
    counts = plugin_programs().counts
    assert counts["compiled"] - before["compiled"] <= 2, counts
    assert 1 <= counts["compiled_symbolic"] - before["compiled_symbolic"] <= 2, counts


@check
def a_process_fails() -> None:
    """All processes get the error, now and later."""

    def fail(a: Any) -> Any:
        if jax.process_index() == 1:
            raise ValueError("no good")
        return a

    mesh = line(jax.devices())
    body = lambda a: lax.psum(jax.pure_callback(fail, jax.ShapeDtypeStruct(a.shape, a.dtype), a), "i")  # noqa: E731
    a = jax.make_array_from_callback((2 * mesh.size,), NamedSharding(mesh, P("i")), lambda _: np.ones(2))
    refused(lambda: jax.jit(shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P(), check_vma=False))(a), "no good")
    refused(sums, "no good")
    assert (jax.jit(lambda a: a + 1)(np.ones(3)) == 2).all()


@check
def processes_that_part() -> None:
    """They run different programs, of the same sizes."""
    mesh = line(jax.devices())
    a = jax.make_array_from_callback((2 * mesh.size,), NamedSharding(mesh, P("i")), lambda _: np.ones(2))

    def one(a: Any) -> Any:
        return lax.psum(a, "i")

    def other(a: Any) -> Any:
        return lax.pmax(a, "i")

    body = other if jax.process_index() else one
    mapped = jax.jit(shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P()))
    refused(lambda: mapped(a), "different collectives", "failed, in process")


@check
def programs_of_one_name_that_part() -> None:
    """Their results have the same name, place and size, and are not computed in the same way."""
    mesh = line(jax.devices())
    a = jax.make_array_from_callback((2 * mesh.size,), NamedSharding(mesh, P("i")), lambda _: np.ones(2))

    def body(a: Any) -> Any:
        return lax.pmax(a, "i") if jax.process_index() else lax.psum(a, "i")

    mapped = jax.jit(shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P()))
    refused(lambda: mapped(a), "different collectives", "failed, in process")


@check
def a_process_ends() -> None:
    """A process that waits for one that has ended gets an error."""
    assert (np.asarray(sums()) == np.asarray(sums())).all()
    if jax.process_index() == 0:
        refused(sums, "has ended")


def a_process_is_lost() -> None:
    """The last process is killed between two steps; the others end with its number, and soon."""
    step = jax.jit(lambda x: jax.nn.tanh(x).sum())
    mesh, last = line(jax.devices()), jax.process_count() - 1
    for rows in range(1, 200):
        if rows == 5 and jax.process_index() == last:
            os.kill(os.getpid(), signal.SIGKILL)
        mine = ramp(rows * len(jax.local_devices()), 3)
        x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), mine)
        begin = time.monotonic()
        try:
            jax.block_until_ready(step(x))
        except jax.errors.JaxRuntimeError as error:
            assert f"process {last}" in str(error), str(error)
            assert rows >= 5 and time.monotonic() - begin < 20, (rows, time.monotonic() - begin)
            return
    raise AssertionError("there is no error")


LOST = {"a_process_is_lost": a_process_is_lost}


def compare(name: str, platform: str = PLATFORM) -> None:
    """A program over the devices of all processes, against XLA's CPU in this one."""
    each, share = len(jax.local_devices()), 4 // jax.process_count()
    ours = jax.tree.leaves(CASES[name]([d for d in jax.devices() if d.id % each < share]))
    cpus = jax.local_devices(backend="cpu")[:4]
    with jax.default_device(cpus[0]):
        theirs = jax.tree.leaves(CASES[name](cpus))
    for found, expected in zip(ours, theirs, strict=True):
        assert {d.platform for d in found.devices()} == {platform}
        loose = 2e-2 if expected.dtype.itemsize == 2 else 2e-5
        wide = np.asarray(expected).astype(np.complex128)
        np.testing.assert_allclose(whole(found).astype(np.complex128), wide, rtol=loose, atol=loose)


def run(name: str, checks: Mapping[str, Callable[[], None]], platform: str = PLATFORM) -> str:
    """The outcome of a check, or of a program that is compared."""
    try:
        checks[name]() if name in checks else compare(name, platform)
        return "ok"
    except Exception:
        return traceback.format_exc()[-3000:]


def join(port: str) -> None:
    """Become one of the processes of a job."""
    address, own = f"127.0.0.1:{port}", os.environ.get("PROCESS")  # "2 of 4"; None under mpiexec
    if own is None:
        jax.distributed.initialize(address, cluster_detection_method="mpi4py")
    else:
        number, count = map(int, own.split(" of "))
        jax.distributed.initialize(address, num_processes=count, process_id=number)


def end(file: Path, lost: int) -> NoReturn:
    """End a process of a job that is over, for which JAX would wait.

    The process with JAX's coordinator waits until all have reported but those that are lost: its end would end them.
    """
    latest = time.monotonic() + 20 * (jax.process_index() == 0)
    while time.monotonic() < latest and len(list(file.parent.glob(f"{file.name}.*"))) < jax.process_count() - lost:
        time.sleep(0.05)
    os._exit(0)


def main() -> None:
    port, file, *names = sys.argv[1:]
    join(port)
    outcomes = {name: run(name, {**CHECKS, **LOST}) for name in names}
    Path(f"{file}.{jax.process_index()}").write_text(json.dumps(outcomes))
    if LOST.keys() & set(names):
        end(Path(file), lost=1)


if __name__ == "__main__":
    main()
