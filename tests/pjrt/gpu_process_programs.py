# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over mock GPUs of several processes, which `test_gpu_processes.py` starts; called as `process_programs`.

GPUS is how many each process has. Process i writes the outcomes into FILE.i, and the mistakes that the mocks found.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import lax, shard_map
from jax.sharding import NamedSharding

from tests.gpu import mock_nccl
from tests.gpu.mock_driver import mock_driver
from tests.pjrt import process_programs
from tests.pjrt.device_programs import P, line
from tests.pjrt.gpu_programs import over_mock_driver
from tests.pjrt.process_programs import join, refused, sums

PLATFORM = "shlo_disc_cuda"
MISTAKES = "mistakes"
CHECKS: dict[str, Callable[[], None]] = {}
LOST: dict[str, Callable[[], None]] = {}


def check(function: Callable[[], None]) -> Callable[[], None]:
    """Something with assertions of its own, after which the job goes on."""
    CHECKS[function.__name__] = function
    return function


def lost(function: Callable[[], None]) -> Callable[[], None]:
    """The same, after which the job is over."""
    LOST[function.__name__] = function
    return function


def everywhere(mesh: Any, everything: np.ndarray) -> jax.Array:
    """An array along the devices of all processes."""
    return jax.make_array_from_callback(everything.shape, NamedSharding(mesh, P("i")), lambda index: everything[index])


def here(array: jax.Array) -> dict[int, np.ndarray]:
    """This process's parts, by device."""
    return {shard.device.id: np.asarray(shard.data) for shard in array.addressable_shards}


@check
def devices_are_described() -> None:
    assert {d.device_kind for d in jax.devices()} == {"Mock GPU"}
    assert {d.compute_capability for d in jax.devices()} == {"9.0"}
    assert {d.process_index for d in jax.devices()} == set(range(jax.process_count()))
    assert [str(d) for d in jax.devices()][-1].endswith(f"process={jax.process_count() - 1})")


@check
def collectives_of_all_sizes() -> None:
    """Each with NumPy's, at sizes around pieces."""
    mesh, count = line(jax.devices()), len(jax.devices())
    circle = [(k, (k + 1) % count) for k in range(count)]

    def body(a: Any) -> tuple[Any, ...]:
        return (
            lax.psum(a, "i"), lax.all_gather(a, "i", tiled=True), lax.psum_scatter(a.T, "i", tiled=True),
            lax.all_to_all(a.T, "i", 0, 0, tiled=True), lax.ppermute(a, "i", circle),
            lax.pmax(a, "i"), lax.ppermute(a, "i", [(0, count - 1)]),
        )  # fmt: skip

    mapped = jax.jit(
        shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=(P("i"),) * 7, check_vma=False)  # as each device has it
    )
    for rows in (1, 3, 5, 67):
        parts = np.random.default_rng(rows).integers(-50, 50, (count, rows, 2 * count)).astype(np.float32)
        found = mapped(everywhere(mesh, parts.reshape(count * rows, 2 * count)))
        turned = parts.transpose(0, 2, 1)
        cut = turned.reshape(count, count, 2, rows)  # by source and target
        moved = np.roll(parts, 1, 0)
        one = np.zeros_like(parts)
        one[-1] = parts[0]
        total = np.broadcast_to(parts.sum(0), parts.shape)
        expected = (
            total, np.broadcast_to(parts.reshape(1, count * rows, -1), (count, count * rows, 2 * count)),
            turned.sum(0).reshape(count, 2, rows), cut.swapaxes(0, 1).reshape(count, 2 * count, rows), moved,
            np.broadcast_to(parts.max(0), parts.shape), one,
        )  # fmt: skip
        for ours, wanted in zip(found, expected, strict=True):
            for device, part in here(ours).items():
                np.testing.assert_array_equal(part, wanted[device])


@check
def arrays_without_elements() -> None:
    mesh, count = line(jax.devices()), len(jax.devices())

    def body(a: Any) -> tuple[Any, Any]:
        return lax.psum(a, "i"), lax.ppermute(a, "i", [(k, (k + 1) % count) for k in range(count)])

    mapped = jax.jit(shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=(P(), P("i"))))
    for found in mapped(everywhere(mesh, np.ones((count, 0), np.float32))):
        assert jax.block_until_ready(found).size == 0


@check
def some_exchange_nothing() -> None:
    """Processes without a member in any group end their runs with the others."""
    mesh, count = line(jax.devices()), len(jax.devices())
    mapped = jax.jit(shard_map(lambda a: lax.ppermute(a, "i", [(0, 1)]), mesh=mesh, in_specs=P("i"), out_specs=P("i")))
    for size in (1, 5):
        parts = np.arange(1.0 + count * size, dtype=np.float32)[1:].reshape(count, size)
        for device, part in here(mapped(everywhere(mesh, parts))).items():
            np.testing.assert_array_equal(part[0], parts[0] if device == 1 else 0 * parts[0])


@check
def groups_within_and_across_processes() -> None:
    """Some groups are of one process, some of several, some of a device alone; in two orders."""
    devices = jax.devices()
    count, each = len(devices), len(jax.local_devices())
    within = [list(range(first, first + each)) for first in range(0, count, each)]
    across = [list(range(first, count, each)) for first in range(each)]
    mesh = line(devices)

    def body(a: Any) -> Any:
        b = lax.psum(a, "i", axis_index_groups=within) * 2 + a
        return lax.psum(b, "i", axis_index_groups=across) + lax.psum(a, "i", axis_index_groups=within[::-1])

    parts = np.arange(3.0 * count, dtype=np.float32).reshape(count, 3)
    found = jax.jit(shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))(
        everywhere(mesh, parts)
    )
    sums_within = np.concatenate([np.repeat(parts[g].sum(0, keepdims=True), each, 0) for g in within])
    b = sums_within * 2 + parts
    wanted = np.stack([b[k % each :: each].sum(0) for k in range(count)]) + sums_within
    for device, part in here(found).items():
        np.testing.assert_array_equal(part[0], wanted[device])


@check
def loops_that_read_what_was_exchanged() -> None:
    """The host decides by sums over all processes, so it waits in the middle of runs."""
    mesh, count = line(jax.devices()), len(jax.devices())

    def body(a: Any) -> Any:
        return lax.while_loop(lambda c: lax.psum(c, "i").sum() < 100 * count, lambda c: c * 2, a)

    parts = np.arange(1.0, count + 1, dtype=np.float32)[:, None]
    found = jax.jit(shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))(
        everywhere(mesh, parts)
    )
    wanted = parts
    while wanted.sum() < 100 * count:
        wanted = wanted * 2
    for device, part in here(found).items():
        np.testing.assert_array_equal(part[0], wanted[device])


@check
def communicators_are_kept() -> None:
    sums()
    made = mock_nccl.mock_nccl().calls.count("ncclCommInitRankConfig")
    for size in (3, 4, 5):
        expected = sum(1.0 + p for p in range(jax.process_count())) * len(jax.local_devices())
        assert (np.asarray(sums(size)) == expected).all()
    assert mock_nccl.mock_nccl().calls.count("ncclCommInitRankConfig") == made > 0


# ---- what goes wrong ------------------------------------------------------------------------------------------------


def limit() -> float:
    """Seconds after which a collective fails that waits for others."""
    return float(os.environ["XLA_FLAGS"].rpartition("seconds=")[2])


def fails_soon(texts: tuple[str, ...], seconds: float) -> None:
    """The sum of all devices fails with one of these texts, so soon, and again."""
    begin = time.monotonic()
    refused(sums, *texts)
    assert time.monotonic() - begin < seconds, time.monotonic() - begin
    refused(sums, "failed, in process", "waits for process", *texts)
    assert (jax.jit(lambda a: a + 1)(np.ones(3)) == 2).all()


@lost
def a_process_is_lost_in_a_collective() -> None:
    """The last process is killed once the GPUs of all others wait for its own."""
    last = jax.process_count() - 1
    sums()
    if jax.process_index() == last:
        mock = mock_nccl.mock_nccl()
        mock.__dict__["_meet"] = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    fails_soon((f"process {last}",), 20)


@lost
def a_process_is_lost_between_programs() -> None:
    last = jax.process_count() - 1
    sums()
    if jax.process_index() == last:
        os.kill(os.getpid(), signal.SIGKILL)
    fails_soon((f"process {last}",), 20)


@lost
def a_process_is_lost_at_the_connection() -> None:
    """It has the id, and does not use it."""
    last = jax.process_count() - 1
    if jax.process_index() == last:
        mock = mock_nccl.mock_nccl()
        mock.__dict__["ncclGroupStart"] = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    fails_soon((f"process {last}",), 20)


@lost
def a_process_comes_late() -> None:
    """It is busy elsewhere for longer than the others wait."""
    sums()
    if jax.process_index() == 1:
        time.sleep(limit() * 3)
        refused(sums, "failed, in process")
    else:
        fails_soon(("waited for process 1 for",), limit() * 3)


@lost
def a_gpu_is_slow() -> None:
    """All processes have given their GPUs the sum, and one GPU has other work before it for longer than others wait."""
    mesh = line(jax.devices())
    given = everywhere(mesh, np.ones(2 * mesh.size, np.float32))

    def sums_of_products() -> jax.Array:
        return jax.jit(shard_map(lambda a: lax.psum(a * 3, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))(given)

    assert (np.asarray(sums_of_products()) == 3 * mesh.size).all()
    if jax.process_index() == 1:
        mock_driver().kernel_seconds[jax.local_devices()[-1].local_hardware_id] = limit() * 3
    refused(sums_of_products, "waited for process 1 for")


@lost
def nccl_fails_in_one_process() -> None:
    """All get the error, and who has it."""
    sums()
    if jax.process_index() == 1:
        mock_nccl.mock_nccl().cliques[-1].error = mock_nccl.REMOTE
        fails_soon(("remote process exited",), 20)
    else:
        fails_soon(("in process 1: could not",), 20)


@lost
def there_is_no_id() -> None:
    mock_nccl.mock_nccl().fails["ncclGetUniqueId"] = mock_nccl.SYSTEM
    told = "could not make an id" if jax.process_index() == 0 else "in process 0: could not make an id"
    fails_soon((told,), 20)


@lost
def an_id_leads_nowhere() -> None:
    """The error is NCCL's, from one process or another."""
    mock = mock_nccl.mock_nccl()
    if jax.process_index() == 0:
        mock.__dict__["ncclGetUniqueId"] = lambda *_: None
    fails_soon(("GPUs of several processes: NCCL: unhandled system error",), 20)


@lost
def versions_differ() -> None:
    if jax.process_index() == 1:
        mock_nccl.mock_nccl().version = 22703
    fails_soon(("has NCCL 2.27.3, and this one has 2.28.5", "has NCCL 2.28.5, and this one has 2.27.3"), 20)


@lost
def there_is_no_nccl() -> None:
    """The program is refused where it is compiled."""
    from shlo_disc.pjrt import compile as of_plugin

    if jax.process_index() == 1:
        of_plugin.nccl_names = list
        refused(sums, "needs NCCL, which is not installed: pip install nvidia-nccl-cu13")


@lost
def processes_that_part() -> None:
    """They run different programs, of the same sizes."""
    mesh = line(jax.devices())
    a = jax.make_array_from_callback((2 * mesh.size,), NamedSharding(mesh, P("i")), lambda _: np.ones(2, np.float32))
    body = lax.pmax if jax.process_index() else lax.psum
    mapped = jax.jit(shard_map(lambda a: body(a, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
    refused(lambda: mapped(a), "different collectives", "failed, in process")


@lost
def a_process_fails() -> None:
    """Its callback raises, and all processes get the error."""
    process_programs.a_process_fails()


def main() -> None:
    port, file, *names = sys.argv[1:]
    over_mock_driver(int(os.environ["GPUS"]))
    join(port)
    checks = {**process_programs.CHECKS, **CHECKS, **LOST}
    outcomes = {}
    for name in names:
        begin = time.monotonic()
        outcomes[name] = process_programs.run(name, checks, PLATFORM)
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
    mistakes = [*mock_driver().mistakes, *mock_nccl.mock_nccl().mistakes]
    Path(f"{file}.{jax.process_index()}").write_text(json.dumps({**outcomes, MISTAKES: "\n".join(mistakes)}))
    if LOST.keys() & set(names):
        process_programs.end(Path(file), lost=any(name.startswith("a_process_is_lost") for name in names))


if __name__ == "__main__":
    main()
