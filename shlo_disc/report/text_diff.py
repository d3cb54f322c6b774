# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Differences of two texts of a compiler, MLIR, LLVM IR or assembly, up to the names of values.

A value that is made early shifts the numbers of all others. Lines are therefore aligned without names, and aligned
lines are the same if one renaming, by which different names stay different, takes the names of all of them into each
other: that of a value or a block for a function, that of a numbered symbol, alias or label for the whole text. Names of
a processor's registers stay as they are.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

CONTEXT = 3
"""Lines that are shown around a difference."""

MOST_DIFFERENCES = 2000
"""Lines that differ up to which texts are aligned as well as they can be; the time grows with the square of this."""

_GLOBAL = r"@[A-Za-z][\w.\$]*_\d+\b|\.L\w+|\$L\w+|#map\d*\b|(?<![\w%])[#!]\d+\b"
"""Numbered symbols, labels of assembly and PTX, aliases of MLIR, attributes and metadata of LLVM."""

_NUMBER = re.compile(r"\d+$")


class Syntax(NamedTuple):
    """The syntax of a text: names, of which those that `is_local` finds are a function's, and where a function begins.

    definition: what stands behind a name that is given to another value from here on; None where none ever is.
    """

    names: re.Pattern[str]
    is_local: re.Pattern[str]
    function: re.Pattern[str]
    definition: re.Pattern[str] | None = None

    @classmethod
    def of(cls, local: str, function: str, definition: str | None = None) -> Syntax:
        """By regular expressions."""
        names = f"{local}|{_GLOBAL}"
        patterns = (re.compile(names), re.compile(local), re.compile(function))
        return cls(*patterns, None if definition is None else re.compile(definition))


_NEVER = r"(?!)"

MLIR = Syntax.of(r"%[\w\$.-]+|\^\w+", r"\s*(?:func|gpu|llvm)\.func\b", r"(?::\d+)?\s*=(?!=)|:(?!\d)")
LLVM = Syntax.of(r"%[\w\$.-]+|^\d+(?=:)", r"define\b")
PTX = Syntax.of(r"%\w+", r"(?:\.\w+ )*\.(?:entry|func)\b")
ASSEMBLY = Syntax.of(_NEVER, _NEVER)
PLAIN = Syntax(*[re.compile(_NEVER)] * 3)
"""A text whose names all matter."""


@dataclass(frozen=True)
class Hunk:
    """Lines that differ, with some around them: each begins with " ", "-" or "+". The first lines count from 1;
    of no lines, it is the line before.
    """

    from_line: int
    from_count: int
    to_line: int
    to_count: int
    lines: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The fields."""
        return asdict(self)

    def __str__(self) -> str:
        heading = f"@@ -{self.from_line},{self.from_count} +{self.to_line},{self.to_count} @@"
        return "\n".join([heading, *self.lines])


def differences(before: str, after: str, syntax: Syntax = PLAIN) -> list[Hunk]:
    """The differences, as `diff -u` has them; none where the texts are the same but for names."""
    return list(_hunks(list(_changes(before.splitlines(), after.splitlines(), syntax))))


Change = tuple[str, str]
"""A line and how it begins in the output."""


def _changes(old: Sequence[str], new: Sequence[str], syntax: Syntax) -> Iterator[Change]:
    """All lines of both texts; between lines that are the same, those that are gone come first."""
    names = _Renaming(syntax)
    keys, other_keys = ([_without_names(line, syntax) for line in text] for text in (old, new))
    gone: list[str] = []
    come: list[str] = []
    a = b = 0
    for x, y in [*_aligned(keys, other_keys), (len(old), len(new))]:
        gone += old[a:x]
        come += new[b:y]
        names.forget(old[a:x], new[b:y])
        a, b = x + 1, y + 1
        if x < len(old) and not names.takes(old[x], new[y]):
            gone.append(old[x])
            come.append(new[y])
            continue
        yield from (("-", line) for line in gone)
        yield from (("+", line) for line in come)
        yield from ((" ", line) for line in old[x : x + 1])
        gone, come = [], []


def _aligned(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The places of equal lines, in their order: the most that there can be, where few lines differ."""
    pairs = _longest(old, new, MOST_DIFFERENCES)
    if pairs is None:
        blocks = difflib.SequenceMatcher(None, old, new).get_matching_blocks()
        pairs = [(block.a + n, block.b + n) for block in blocks for n in range(block.size)]
    return pairs


def _longest(old: Sequence[str], new: Sequence[str], most: int) -> list[tuple[int, int]] | None:
    """A longest common subsequence by the greedy algorithm of Myers (1986); None beyond so many lines that differ.

    `furthest[k]` is the place in `old` that d lines that differ lead to at most on the diagonal k, `old` minus `new`.
    """
    furthest, steps = {1: 0}, list[dict[int, int]]()
    for d in range(most + 1):
        steps.append(dict(furthest))
        for k in range(-d, d + 1, 2):
            x = furthest[k + 1] if _comes_from_above(furthest, k, d) else furthest[k - 1] + 1
            while x < len(old) and x - k < len(new) and old[x] == new[x - k]:
                x += 1
            furthest[k] = x
            if x >= len(old) and x - k >= len(new):
                return _path(steps, len(old), len(new))
    return None


def _comes_from_above(furthest: Mapping[int, int], k: int, d: int) -> bool:
    """Tells whether the diagonal k is reached by a line of `new`, rather than by one of `old`."""
    return k == -d or (k != d and furthest[k - 1] < furthest[k + 1])


def _path(steps: Sequence[Mapping[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """The equal lines on the way to the end of both texts."""
    pairs: list[tuple[int, int]] = []
    for d in reversed(range(len(steps))):
        k = x - y
        before = k + 1 if _comes_from_above(steps[d], k, d) else k - 1
        start = steps[d][before]
        while x > start and y > start - before:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = start, start - before
    return pairs[::-1]


def _without_names(line: str, syntax: Syntax) -> str:
    """A line in which only the kinds of names are left, and of a symbol what stands before its number."""

    def kind(found: re.Match[str]) -> str:
        name = found[0]
        return _NUMBER.sub("?", name) if name[0] == "@" or name.isdigit() else name[0]

    return syntax.names.sub(kind, line)


class _Renaming:
    """The correspondence of the names of two texts, up to where they have been read."""

    def __init__(self, syntax: Syntax):
        self._syntax = syntax
        self._local = _Bijection()
        self._global = _Bijection()

    def takes(self, old: str, new: str) -> bool:
        """Tells whether two lines that are the same without names are so with them."""
        if self._syntax.function.match(old):
            self._local = _Bijection()
        names = zip(self._syntax.names.finditer(old), self._syntax.names.finditer(new), strict=True)
        taken = [self._takes(x[0], y[0], self._is_definition(old, x.end())) for x, y in names]
        return all(taken)

    def _takes(self, old: str, new: str, is_definition: bool) -> bool:
        if not self._syntax.is_local.fullmatch(old) and not old.isdigit():
            return self._global.takes(old, new)
        # The heading of one of LLVM's blocks is the name of that block without its sign.
        old, new = (f"%{name}" if name.isdigit() else name for name in (old, new))
        if is_definition:
            self._local.forget(old, new)
        return self._local.takes(old, new)

    def forget(self, old: Sequence[str], new: Sequence[str]) -> None:
        """Forget the names that unequal lines define: they are other values from here on."""
        for name in self._defined(old):
            self._local.forget(name, None)
        for name in self._defined(new):
            self._local.forget(None, name)

    def _defined(self, lines: Sequence[str]) -> Iterator[str]:
        for line in lines:
            for found in self._syntax.names.finditer(line):
                if self._is_definition(line, found.end()):
                    yield found[0]

    def _is_definition(self, line: str, end: int) -> bool:
        definition = self._syntax.definition
        return definition is not None and definition.match(line, end) is not None


class _Bijection:
    def __init__(self) -> None:
        self._forward: dict[str, str] = {}
        self._backward: dict[str, str] = {}

    def takes(self, old: str, new: str) -> bool:
        """Tells whether the one may be the other; it is from then on."""
        known = self._forward.get(old), self._backward.get(new)
        if known == (None, None):
            self._forward[old], self._backward[new] = new, old
        return known in ((None, None), (new, old))

    def forget(self, old: str | None, new: str | None) -> None:
        """These are free again."""
        if old is not None and old in self._forward:
            del self._backward[self._forward.pop(old)]
        if new is not None and new in self._backward:
            del self._forward[self._backward.pop(new)]


def _hunks(changes: Sequence[Change]) -> Iterator[Hunk]:
    """The changes with some lines around them; those close to each other come together."""
    places = [number for number, (sign, _) in enumerate(changes) if sign != " "]
    ranges: list[tuple[int, int]] = []
    for place in places:
        first, last = max(0, place - CONTEXT), min(len(changes), place + CONTEXT + 1)
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], last)
        else:
            ranges.append((first, last))
    old = new = done = 0
    for first, last in ranges:
        old += sum(sign != "+" for sign, _ in changes[done:first])
        new += sum(sign != "-" for sign, _ in changes[done:first])
        part = changes[first:last]
        counts = [sum(sign != other for sign, _ in part) for other in "+-"]
        starts = [at + (count > 0) for at, count in zip((old, new), counts, strict=True)]
        yield Hunk(starts[0], counts[0], starts[1], counts[1], tuple(sign + line for sign, line in part))
        old, new, done = old + counts[0], new + counts[1], last


__all__ = ["ASSEMBLY", "LLVM", "MLIR", "PLAIN", "PTX", "Hunk", "Syntax", "differences"]
