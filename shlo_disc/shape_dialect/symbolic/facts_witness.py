# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Admissible sample points. A statement that fails at one needs no search for a proof.

Points are looked for near the asked symbols only. One that could not be extended to all symbols costs a proof, never
soundness, because points are used only to give up early.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from random import Random
from typing import NamedTuple

from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts_store import Store

_MAX_SYMBOLS = 16
_MAX_ROWS = 48
_RESTARTS = 14
_MAX_NODES = 250
_STEPS = (0, 1, 2, 3, 4, 6, 9)
_SIZES = (1, 2, 4, 8, 16, 60, 1024, 1 << 20)
_MORE_SIZES = (0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 1000, 4099)


class Witnesses:
    """Sample points for the symbols around an expression, remembered until `forget`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._points: dict[frozenset[str], list[dict[str, int]]] = {}
        self._samples: dict[tuple[frozenset[str], int], list[dict[str, int]]] = {}

    def forget(self) -> None:
        """Drops the points, after the facts changed."""
        self._points.clear()
        self._samples.clear()

    def least(self, e: Expr) -> int | None:
        """The least value of the canonical `e` at the sample points where it is defined, or None without any."""
        values = [value for point in self._around(e) if (value := value_at(e, point)) is not None]
        return min(values, default=None)

    def samples(self, symbols: frozenset[str], count: int) -> list[dict[str, int]]:
        """Up to `count` points for these symbols, and those that facts connect them to, of sizes of all kinds."""
        key = (symbols, count)
        if key not in self._samples:
            self._samples[key] = self._points_of(*self._component(symbols), _MORE_SIZES, count)
        return self._samples[key]

    def _around(self, e: Expr) -> list[dict[str, int]]:
        symbols = e.symbols()
        if symbols not in self._points:
            names, rows = self._component(symbols)
            key = frozenset(names)
            if key not in self._points:
                self._points[key] = self._points_of(names, rows)
            self._points[symbols] = self._points[key]
        return self._points[symbols]

    def _points_of(
        self, names: list[str], rows: list[Expr], sizes: tuple[int, ...] = _SIZES, restarts: int = _RESTARTS
    ) -> list[dict[str, int]]:
        """Up to `restarts` points, the same ones in every process."""
        store, inside = self._store, frozenset(names)
        multiples = tuple((e, k) for e, k in store.congruences if e.symbols() <= inside)
        nonzero = tuple(e for e in store.nonzero if e.symbols() <= inside)
        domains = tuple(_Domain(name, *store.domain(name)) for name in names)
        return list(_points(domains, tuple(rows), multiples, nonzero, sizes, restarts))

    def _component(self, symbols: frozenset[str]) -> tuple[list[str], list[Expr]]:
        names = dict.fromkeys(sorted(symbols))
        queue = list(names)
        rows: dict[Expr, None] = {}
        for name in queue:
            for row in self._store.rows_with(name):
                if len(rows) >= _MAX_ROWS:
                    break
                new = sorted(row.symbols() - names.keys())
                if len(names) + len(new) > max(_MAX_SYMBOLS, len(symbols)):
                    continue
                rows[row] = None
                names.update(dict.fromkeys(new))
                queue.extend(new)
        return sorted(names), list(rows)


class _Domain(NamedTuple):
    """A symbol, the inclusive bounds of its value, and the modulus and residue that it has."""

    name: str
    bounds: tuple[int | None, int | None]
    congruence: tuple[int, int]


@lru_cache(maxsize=1024)
def _points(
    domains: tuple[_Domain, ...],
    rows: tuple[Expr, ...],
    multiples: tuple[tuple[Expr, int], ...],
    nonzero: tuple[Expr, ...],
    sizes: tuple[int, ...],
    restarts: int,
) -> tuple[dict[str, int], ...]:
    """The points of `_Search`, once for the same facts: stages and programs ask the same of a symbol."""
    return tuple(_Search(domains, rows, multiples, nonzero, sizes).points(restarts))


class _Search:
    """Depth-first search over candidate values, restarted with other orders of the candidates."""

    def __init__(
        self,
        domains: Iterable[_Domain],
        rows: tuple[Expr, ...],
        multiples: tuple[tuple[Expr, int], ...],
        nonzero: tuple[Expr, ...],
        sizes: tuple[int, ...],
    ) -> None:
        self._domains = {domain.name: domain for domain in domains}
        # A conjunct is checked as soon as its last symbol has a value.
        self._names = sorted(self._domains, key=lambda n: (-sum(n in row.symbols() for row in rows), n))
        self._rows = self._by_last_symbol(rows)
        self._multiples = multiples
        self._nonzero = nonzero
        self._sizes = sizes
        self._candidates = {name: self._candidates_of(name) for name in self._domains}
        self._nodes = 0

    def points(self, restarts: int) -> list[dict[str, int]]:
        """Up to `restarts` points."""
        found: dict[tuple[int, ...], dict[str, int]] = {}
        random = Random(0)  # noqa: S311
        for restart in range(restarts):
            if restart:
                for candidates in self._candidates.values():
                    random.shuffle(candidates)
            self._nodes = 0
            point: dict[str, int] = {}
            if self._extend(point, 0):
                found[tuple(point[name] for name in self._names)] = point
            elif restart >= 4 and not found:
                break
        return list(found.values())

    def _by_last_symbol(self, rows: Iterable[Expr]) -> dict[str, list[Expr]]:
        position = {name: i for i, name in enumerate(self._names)}
        by_symbol: dict[str, list[Expr]] = {name: [] for name in self._names}
        for row in rows:
            by_symbol[max(row.symbols(), key=lambda n: position[n])].append(row)
        return by_symbol

    def _candidates_of(self, name: str) -> list[int]:
        _, (low, high), (modulus, residue) = self._domains[name]
        stride = max(1, modulus)
        values = [size + (residue - size) % stride for size in self._sizes]
        if low is not None:
            values = [low + stride * step for step in _STEPS] + values
        if high is not None:
            values += [high - stride * step for step in _STEPS]
        if low is None:
            values += [-value + (residue + value) % stride for value in (0, *self._sizes)]
        inside = (v for v in values if (low is None or v >= low) and (high is None or v <= high))
        return list(dict.fromkeys(inside))

    def _extend(self, point: dict[str, int], depth: int) -> bool:
        if depth == len(self._names):
            return self._holds(point)
        name = self._names[depth]
        for value in (*self._solutions(name, point), *self._candidates[name]):
            self._nodes += 1
            if self._nodes > _MAX_NODES:
                return False
            point[name] = value
            if all((v := value_at(row, point)) is not None and v >= 0 for row in self._rows[name]):
                if self._extend(point, depth + 1):
                    return True
        point.pop(name, None)
        return False

    def _solutions(self, name: str, point: dict[str, int]) -> list[int]:
        """Values that make a row zero if it is linear in the symbol; an equality needs just that value."""
        _, (low, high), (modulus, residue) = self._domains[name]
        found: list[int] = []
        for row in self._rows[name]:
            start, next_ = value_at(row, {**point, name: 0}), value_at(row, {**point, name: 1})
            if start is None or next_ is None or next_ == start or start % (next_ - start):
                continue
            value = -start // (next_ - start)
            if (low is None or value >= low) and (high is None or value <= high) and (value - residue) % modulus == 0:
                found.append(value)
        return found

    def _holds(self, point: dict[str, int]) -> bool:
        multiples = ((value_at(e, point), k) for e, k in self._multiples)
        return all(v is not None and v % k == 0 for v, k in multiples) and all(
            value_at(e, point) != 0 for e in self._nonzero
        )


def value_at(e: Expr, point: dict[str, int]) -> int | None:
    """The value, or None where a division by zero leaves it undefined."""
    try:
        return e.evaluate(point)
    except ZeroDivisionError:
        return None
