# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of products bring the rows of B that come next to the second cache, each part by one tile."""

from __future__ import annotations

import ctypes
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import pytest

from shlo_disc.runtime import Client, _native

COLUMNS, ROWS = 32, 14
ROW_BYTES = 4 * COLUMNS
CHUNK = 384
_WORD, _POINTER = ctypes.c_int64, ctypes.c_void_p
_TILE = ctypes.CFUNCTYPE(
    None, _WORD, _POINTER, _POINTER, _WORD, _POINTER, _WORD, _WORD, _WORD, _POINTER, _WORD
)  # fmt: skip


class Call(NamedTuple):
    """Arguments of a tile."""

    rows: int
    a: int
    b: int
    b_step: int
    c: int
    c_step: int
    k: int
    accumulate: int
    fetch: int
    fetch_step: int

    def fetched(self) -> range:
        """The bytes that it fetches, from the first to the last; none where it always fetches the same."""
        return range(
            self.fetch, self.fetch + (self.k - 1) * self.fetch_step + ROW_BYTES if self.fetch_step else self.fetch
        )


def calls_of(m: int, n: int, k: int, packs: bool, columns: int = COLUMNS) -> tuple[list[Call], int, int]:
    """The calls of tiles for one product, and where B, or its packed form, begins and ends."""
    a, b, c = (np.zeros(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    calls: list[Call] = []
    tile = _TILE(lambda *arguments: calls.append(Call(*arguments)))
    none = [0] * 4
    words = [0, 0, *none, *none, *none, *none, m, n, k, k, 1, n, 1, n, 1, a.ctypes.data, b.ctypes.data, c.ctypes.data]
    end = [ctypes.cast(tile, _POINTER).value, ROWS, columns]
    device = Client(threads=1).native_device
    used = b
    if packs:
        used = np.zeros(_native.pack_right(device, [*words, 0, *end], 0), np.float32)
        _native.pack_right(device, [*words, used.ctypes.data, *end], used.ctypes.data)
    _native.dot(device, [*words, used.ctypes.data if packs else 0, *end])
    return calls, used.ctypes.data, used.ctypes.data + used.nbytes


@pytest.mark.parametrize("k", [64, 384, 385, 500, 768, 1100])
@pytest.mark.parametrize("m", [14, 43, 100, 168, 400])
def test_tiles_share_what_comes_next(m: int, k: int) -> None:
    """While rows of a panel are multiplied, all rows that are used after them are fetched, each about once."""
    calls, _, end = calls_of(m, 3 * COLUMNS, k, packs=True)
    groups = [list(group) for _, group in groupby(calls, key=lambda call: call.b)]
    assert len(groups) > 2
    for tiles, after in pairwise(groups):
        here = tiles[0].b + tiles[0].k * ROW_BYTES
        if here == end:
            assert all(len(tile.fetched()) == 0 for tile in tiles)  # the next block begins anew
            continue
        assert after[0].b == here
        there, parts = here, [tile.fetched() for tile in tiles]
        for part, tile in zip(parts, tiles, strict=True):
            assert part.start <= there
            assert tile.fetch_step <= ROW_BYTES or len(tiles) == 1  # no line is left out
            there = part.stop
        assert there >= here + after[0].k * ROW_BYTES
        spare = ROW_BYTES + tiles[0].k  # a row more, and steps in whole bytes
        assert max(map(len, parts)) <= after[0].k * ROW_BYTES / len(tiles) + spare


def test_rows_in_place_are_fetched_ahead() -> None:
    """Few tiles read B that is not packed row by row. Columns are too few for the kernels of few rows."""
    calls, _, _ = calls_of(40, 10 * COLUMNS, 500, packs=False, columns=4)
    assert len(calls) > 10
    for call in calls:
        assert call.b_step == 10 * COLUMNS
        assert (call.fetch, call.fetch_step) == (call.b + 32 * call.b_step * 4, call.b_step * 4)


def test_copies_fetch_nothing() -> None:
    """Panels that are copied to a thread's own memory are in the cache already."""
    calls, _, _ = calls_of(100, 3 * COLUMNS, 100, packs=False)
    assert {call.b for call in calls} == {call.fetch for call in calls}
    assert all(call.b_step == COLUMNS and call.fetch_step == 0 for call in calls)
