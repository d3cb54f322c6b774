# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Large arenas grow where they are; `prepare` takes the memory of a call ahead of it."""

from __future__ import annotations

import resource
import threading

import numpy as np
import pytest

from shlo_disc.errors import ShapeError
from shlo_disc.runtime import Client, LoadedExecutable

from .programs import add_one

ROW = 32  # bytes of arena, argument and result a row
MEGABYTE = 1 << 20


def loaded(**options: int) -> tuple[Client, LoadedExecutable]:
    """A fresh client with x + 1 through an arena."""
    client = Client(threads=1, **options)
    return client, client.load(add_one())


def rows(megabytes: int) -> np.ndarray:
    """An argument that needs an arena of so many megabytes."""
    return np.ones((megabytes * MEGABYTE // ROW, 8), np.float32)


def cached(client: Client) -> int:
    """Bytes in the allocator's cache."""
    return client.devices()[0].memory_stats()["cached_bytes"]


def test_a_larger_call_grows_the_arena() -> None:
    client, executable = loaded()
    for megabytes in (4, 6, 16, 10):
        assert (executable.execute((rows(megabytes),), output="numpy") == 2).all()
    result = 16 * MEGABYTE * 5 // 4  # a quarter more by its size class
    assert cached(client) <= 16 * MEGABYTE + result, "one arena and one result, of the largest size"
    before = client.devices()[0].memory_stats()["system_allocations"]
    for megabytes in (16, 4, 10, 6):
        executable(rows(megabytes))
    assert client.devices()[0].memory_stats()["system_allocations"] == before


def test_results_of_sizes_that_take_turns_are_kept() -> None:
    """A block is no replacement for one of less than an eighth of it."""
    client, executable = loaded()
    for megabytes in (2, 28):
        executable(rows(megabytes))
    before = client.devices()[0].memory_stats()["system_allocations"]
    for megabytes in (2, 28, 2, 14):
        executable(rows(megabytes))
    assert client.devices()[0].memory_stats()["system_allocations"] == before


def test_arenas_of_calls_at_once_are_apart() -> None:
    client, executable = loaded()
    wrong: list[int] = []

    def work(start: int) -> None:
        for step in range(6):
            x = np.full((MEGABYTE // ROW * (1 + (start + step) % 4), 8), start, np.float32)
            if not (executable(x) == start + 1).all():
                wrong.append(start)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert client.trim() > 0
    assert cached(client) == 0


def test_arenas_count_towards_the_limit_of_the_cache() -> None:
    client, executable = loaded(cache_limit=5 * MEGABYTE)
    for megabytes in (1, 4, 8, 2):
        assert (executable(rows(megabytes)) == 2).all()
        assert cached(client) <= 5 * MEGABYTE


def faults() -> int:
    """Pages that this process has touched first so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def test_prepared_calls_touch_no_fresh_pages() -> None:
    _, executable = loaded()
    x = rows(24)
    executable.prepare(b=len(x))
    executable(x[:8])
    for part in (5, 1, 2):
        argument = x[: len(x) // part]
        before = faults()
        result = executable(argument)
        fresh = faults() - before
        assert fresh < 8, "24 MB of arena and 24 MB of result are 12,288 small pages or 24 huge ones"
        assert (result == 2).all()
        del result


def test_large_results_begin_at_a_huge_page() -> None:
    """All but the end of each is of huge pages, whatever its size."""
    _, executable = loaded()
    kept = [executable(rows(megabytes)[:-1]) for megabytes in (3, 5, 7, 24)]
    assert all(result.ctypes.data % (2 * MEGABYTE) == 0 and (result == 2).all() for result in kept)


def test_prepare_checks_its_sizes() -> None:
    client, executable = loaded()
    with pytest.raises(ShapeError, match="expected values for the dimension variables"):
        executable.prepare(c=1)
    with pytest.raises(ShapeError):
        executable.prepare(b=-1)
    assert cached(client) == 0
    executable.prepare(b=MEGABYTE // ROW)
    assert cached(client) >= MEGABYTE
