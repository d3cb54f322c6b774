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
PAIRS = 3
"""The format of bf16 whose words are two elements."""
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


class Product:
    """A product of `m` rows by a matrix, which is packed or read where it lies, on one thread."""

    def __init__(self, m: int, n: int, k: int, packs: bool, columns: int = COLUMNS):
        self.arrays = a, b, c = [np.zeros(shape, np.float32) for shape in ((m, k), (k, n), (m, n))]
        self.calls: list[Call] = []
        self.tile = _TILE(lambda *arguments: self.calls.append(Call(*(word or 0 for word in arguments))))
        none, places = [0] * 4, [array.ctypes.data for array in self.arrays]
        self.words = [0, 0, *none, *none, *none, *none, m, n, k, k, 1, n, 1, n, 1, *places]
        self.end = [ctypes.cast(self.tile, _POINTER).value, ROWS, columns]
        self.device = Client(threads=1).native_device
        self.packed = np.zeros(0, np.float32)
        if packs:
            self.packed = np.zeros(_native.pack_right(self.device, [*self.words, 0, *self.end], 0), np.float32)
            place = self.packed.ctypes.data
            _native.pack_right(self.device, [*self.words, place, *self.end], place)

    def run(self) -> list[Call]:
        """The calls of tiles."""
        self.calls.clear()
        place = self.packed.ctypes.data if self.packed.size else 0
        _native.dot(self.device, [*self.words, place, *self.end])
        return list(self.calls)


def calls_of(m: int, n: int, k: int, packs: bool, columns: int = COLUMNS) -> tuple[list[Call], int]:
    """The calls of tiles for one product, and where B, or its packed form, ends."""
    product = Product(m, n, k, packs, columns)
    used = product.packed if packs else product.arrays[1]
    return product.run(), used.ctypes.data + used.nbytes


@pytest.fixture(autouse=True)
def _displaced() -> None:
    """Other products have read some MB: no matrix is near, not even one at the address of another test's."""
    Product(40, 64 * COLUMNS, 512, packs=True).run()


@pytest.mark.parametrize("k", [64, 384, 385, 500, 768, 1100])
@pytest.mark.parametrize("m", [3, 7, 8, 14, 15, 43, 100, 168, 400])
def test_tiles_share_what_comes_next(m: int, k: int) -> None:
    """While rows of a panel are multiplied, all rows that are used after them are fetched, each about once."""
    calls, end = calls_of(m, 3 * COLUMNS, k, packs=True)
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
    calls, _ = calls_of(40, 10 * COLUMNS, 500, packs=False, columns=4)
    assert len(calls) > 10
    for call in calls:
        assert call.b_step == 10 * COLUMNS
        assert (call.fetch, call.fetch_step) == (call.b + 32 * call.b_step * 4, call.b_step * 4)


@pytest.mark.parametrize(
    ("m", "k"), [(43, 100), (43, 384), (100, 100), (100, 385), (100, 1000), (122, 1000), (167, 500)]
)
def test_rows_that_are_copied_are_fetched(m: int, k: int) -> None:
    """Panels are copied to a thread's own memory; the first tile of some rows fetches those that are copied next."""
    n = 3 * COLUMNS
    product = Product(m, n, k, packs=False)
    calls, first = product.run(), product.arrays[1].ctypes.data
    tiles = -(-m // ROWS)
    groups = [calls[i : i + tiles] for i in range(0, len(calls), tiles)]
    place = (0, 0)  # panel, and row
    for group in groups:
        assert {call.b_step for call in group} == {COLUMNS}
        assert len({call.b for call in group}) == 1
        panel, row = place
        place = (panel, row + group[0].k) if row + group[0].k < k else (panel + 1, 0)
        one, *others = group
        assert all((call.fetch, call.fetch_step) == (call.b, 0) for call in others)
        if place[0] == 3:
            assert (one.fetch, one.fetch_step) == (one.b, 0)
        else:
            assert (one.fetch, one.fetch_step) == (first + place[1] * n * 4 + place[0] * ROW_BYTES, n * 4)
    assert place == (3, 0)


def test_words_of_two_rows_are_fetched_by_two_tiles() -> None:
    """A tile fetches a row for each word: the first tile the first row of each pair, the second tile the other one."""
    m, n, k, size = 100, 3 * COLUMNS, 100, 2
    product = Product(m, n, k, packs=False)
    product.words[0] = PAIRS
    calls, first, tiles = product.run(), product.arrays[1].ctypes.data, -(-m // ROWS)
    assert {call.k for call in calls} == {k // 2}
    assert len(calls) == 3 * tiles
    for number, call in enumerate(calls):
        panel, tile = divmod(number, tiles)
        if panel < 2 and tile < 2:
            wanted = first + tile * n * size + (panel + 1) * COLUMNS * size, 2 * n * size
        else:
            wanted = call.b, 0
        assert (call.fetch, call.fetch_step) == wanted


def test_columns_that_are_copied_are_not_fetched() -> None:
    """Lines of memory of dense columns are not the rows that a tile fetches."""
    m, n, k = 100, 3 * COLUMNS, 100
    product = Product(m, n, k, packs=False)
    assert product.words[23:25] == [n, 1]  # b_k, b_n
    product.words[23:25] = [1, k]
    assert all(call.fetch_step == 0 for call in product.run())


def fetches(product: Product) -> set[bool]:
    """Tells whether tiles fetch what comes next, where anything does."""
    end = product.packed.ctypes.data + product.packed.nbytes
    calls = [call for call in product.run() if call.b + call.k * ROW_BYTES < end]
    assert len(calls) > 2
    return {call.fetch_step > 0 for call in calls}


@pytest.mark.parametrize("m", [2, 7])
def test_few_rows_fetch_what_the_caches_do_not_have(m: int) -> None:
    """A matrix is near where it was read within the last MB, and not where more was read since."""
    small, large = (Product(m, n * COLUMNS, 512, packs=True) for n in (5, 20))
    assert small.packed.nbytes < 1 << 20 < large.packed.nbytes
    assert fetches(small) == {True}  # read for the first time
    assert fetches(small) == fetches(small) == {False}
    assert all(call.fetch == 0 for call in small.run())
    assert fetches(large) == fetches(large) == {True}
    assert fetches(small) == {True}
    assert fetches(small) == {False}


def test_other_products_displace_a_matrix() -> None:
    """Products of many rows read as much, and fetch in any case."""
    few, many = Product(3, 5 * COLUMNS, 512, packs=True), Product(40, 20 * COLUMNS, 512, packs=True)
    assert (fetches(few), fetches(few)) == ({True}, {False})
    assert fetches(many) == fetches(many) == {True}
    assert (fetches(few), fetches(few)) == ({True}, {False})


def test_a_tile_of_few_rows_does_its_part_for_larger_ones() -> None:
    """15 rows are a tile of 8 and one of 7, which fetch alike, however near the matrix is."""
    product = Product(15, 5 * COLUMNS, 300, packs=True)
    assert {call.rows for call in product.run()} == {7, 8}
    assert fetches(product) == {True}


def test_a_matrix_in_place_is_not_fetched_for_few_rows() -> None:
    calls, _ = calls_of(5, 10 * COLUMNS, 500, packs=False, columns=4)
    assert len(calls) > 10
    assert all(call.fetch == 0 for call in calls)
