# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The allocator's counters: what is refused, by whichever limit, leaves all of them as they were."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.runtime import AllocationError, Artifact, Client

MEGABYTE = 1 << 20
KEPT = 4000  # bytes that are taken before
HUGE = 1 << 43  # rows of four bytes: fewer than an address space has, more than any machine


@pytest.fixture(scope="module")
def negative() -> Artifact:
    """-x of f32[b]."""
    artifact: Artifact = shlo_disc.compile(jnp.negative, args=(("b", "float32"),)).artifact
    return artifact


@pytest.fixture(scope="module")
def sorted_twice() -> Artifact:
    """A result and an arena as large as the argument."""
    program = shlo_disc.compile(lambda x: jnp.sort(jnp.sort(x)[::-1] + 1), args=(("b", "float32"),))
    artifact: Artifact = program.artifact
    return artifact


def stats(client: Client) -> dict[str, int]:
    found: dict[str, int] = client.devices()[0].memory_stats()
    return found


def refused(client: Client, allocate: Callable[[], Any]) -> None:
    before = stats(client)
    with pytest.raises(AllocationError):
        allocate()
    assert stats(client) == before


@pytest.mark.parametrize("guard_pages", [False, True])
def test_what_the_system_does_not_have(negative: Artifact, guard_pages: bool) -> None:
    client = Client(threads=1, guard_pages=guard_pages)
    kept, program = client.buffer_from_host(np.ones(KEPT // 4, np.float32)), client.load(negative)
    before = stats(client)
    refused(client, lambda: program.prepare(b=HUGE))
    assert before["peak_bytes"] == before["live_bytes"] == KEPT
    del kept


@pytest.mark.parametrize("megabytes", [1, 3, 100])
def test_what_the_limit_does_not_allow(negative: Artifact, megabytes: int) -> None:
    client = Client(threads=1, memory_limit=MEGABYTE * megabytes)
    kept, program = client.buffer_from_host(np.ones(KEPT // 4, np.float32)), client.load(negative)
    refused(client, lambda: program.prepare(b=megabytes * MEGABYTE // 4))
    program.prepare(b=megabytes * MEGABYTE // 4 - KEPT // 4)  # all that is left
    assert stats(client)["peak_bytes"] == megabytes * MEGABYTE
    assert stats(client)["live_bytes"] == KEPT
    del kept


@pytest.mark.parametrize("rows", [1, 1000, 1_000_000])
def test_calls_of_which_an_allocation_fails(sorted_twice: Artifact, rows: int) -> None:
    """The result, or the arena behind it: small ones, and an arena that grows."""
    client = Client(threads=1)
    program, given = client.load(sorted_twice), np.ones(rows, np.float32)
    for failing in (1, 2):
        client.native_device.fail_allocation(failing)
        with pytest.raises(AllocationError):
            program.execute((given,), output="numpy")
        found = stats(client)
        assert found["live_bytes"] == 0 and found["peak_bytes"] == (failing - 1) * given.nbytes
        assert found["arena_allocations"] == 0 and found["result_allocations"] == failing - 1
    program.execute((given,), output="numpy")
    assert stats(client)["peak_bytes"] >= 2 * given.nbytes


def test_refusals_beside_allocations_of_other_threads(negative: Artifact) -> None:
    """The peak is that of memory that was there at one time, whatever is being refused meanwhile."""
    client = Client(threads=1)
    program, failures = client.load(negative), []

    def refuse() -> None:
        for _ in range(200):
            try:
                program.prepare(b=HUGE)
                failures.append("not refused")
            except AllocationError:
                pass

    def allocate() -> None:
        for _ in range(2000):
            client.buffer_from_host(np.ones(100, np.float32))

    threads = [threading.Thread(target=work) for work in (refuse, refuse, allocate, allocate)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert stats(client)["live_bytes"] == 0 and 0 < stats(client)["peak_bytes"] <= 4 * 400


def test_a_limit_holds_for_allocations_at_once() -> None:
    """Allocations in progress on other threads count towards the limit."""
    limit = 8 * MEGABYTE
    client, peaks = Client(threads=1, memory_limit=limit, cache_limit=0), []

    def allocate() -> None:
        for _ in range(50):
            try:
                client.buffer_from_host(np.ones(3 * MEGABYTE // 4, np.float32))
            except AllocationError:
                peaks.append(stats(client)["peak_bytes"])

    threads = [threading.Thread(target=allocate) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(peak <= limit for peak in peaks) and stats(client)["peak_bytes"] <= limit
    assert stats(client)["live_bytes"] == 0
