# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lines of a text that are new in the next, found fast enough for tens of thousands of lines.

The longest common subsequence is found with one bit a line of one side, and a few additions of integers of that many
bits a line of the other (Heikki Hyyro, "Bit-parallel LCS length computation revisited", 2004). Texts too long for that
are cut first where lines occur once in both and stand in the same order (Bram Cohen's patience diff); where no line is
unique, the k-th line of a kind is matched with the k-th of the other text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

Change = tuple[int, int, int, int]
"""The range of lines in the first text and in the second."""

MOST_BITS = 400_000_000
"""Lines times lines whose longest common subsequence is found: that many bits are held."""

_OP = re.compile(r"\s*(?:%[%, :\d]* = )?(?:\w+ )*\"?([\w.]+)\"?[^@:]*(@[\w.]+)?")
"""The op of a line, and the first symbol before its types."""

_VALUE = re.compile(r"%[\w$.#-]+")


def changes(left: Sequence[str], right: Sequence[str]) -> list[Change]:
    """The ranges that differ, in order. Values of MLIR and LLVM IR (`%12`) may have any names."""
    a, b = ([_VALUE.sub("%", line) for line in lines] for lines in (left, right))
    matched = [False] * len(a)
    partner = [-1] * len(a)
    for i, j in _matches(a, b):
        matched[i], partner[i] = True, j
    found: list[Change] = []
    i = j = 0
    for k in [*(k for k in range(len(a)) if matched[k]), len(a)]:
        end = partner[k] if k < len(a) else len(b)
        found += _refined(a, b, (i, k, j, end))
        i, j = k + 1, end + 1
    return found


def _refined(a: Sequence[str], b: Sequence[str], change: Change) -> Iterator[Change]:
    """Lines of the same op side by side, and what is on one side only."""
    first, end, other, other_end = change
    ops = [[_op_of(line) for line in lines] for lines in (a[first:end], b[other:other_end])]
    for k, m in [*_matches(*ops), (end - first, other_end - other)]:
        i, j = k + change[0], m + change[2]
        if i > first:
            yield first, i, other, other
        if j > other:
            yield i, i, other, j
        if i < end and j < other_end:
            yield i, i + 1, j, j + 1
        first, other = i + 1, j + 1


def _op_of(line: str) -> str:
    match = _OP.match(line)
    return line if match is None else f"{match[1]} {match[2]}"


def _matches(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    pending = [(0, len(a), 0, len(b))]
    while pending:
        first, end, other, other_end = pending.pop()
        while first < end and other < other_end and a[first] == b[other]:
            found.append((first, other))
            first, other = first + 1, other + 1
        while first < end and other < other_end and a[end - 1] == b[other_end - 1]:
            end, other_end = end - 1, other_end - 1
            found.append((end, other_end))
        if first == end or other == other_end:
            continue
        gap, other_gap = a[first:end], b[other:other_end]
        is_short = len(gap) * len(other_gap) <= MOST_BITS
        anchors = [] if is_short else _in_order(gap, other_gap)
        pairs = _common(gap, other_gap) if is_short else anchors or _in_order(_numbered(gap), _numbered(other_gap))
        found += [(i + first, j + other) for i, j in pairs]
        cuts = [(i + first, j + other) for i, j in anchors]
        starts = [(first, other), *((i + 1, j + 1) for i, j in cuts)]
        ends = [*cuts, (end, other_end)]
        pending += [(i, k, j, m) for (i, j), (k, m) in zip(starts, ends, strict=True) if anchors]
    return sorted(found)


def _in_order(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest list of pairs of lines, each the only one of its kind in both, that go up on both sides."""
    times_a, times_b = Counter(a), Counter(b)
    place = {line: j for j, line in enumerate(b) if times_b[line] == 1}
    pairs = [(i, place[line]) for i, line in enumerate(a) if times_a[line] == 1 and line in place]
    ends: list[int] = []  # of the best list of each length, its last place in b
    at: list[int] = []  # and the pair that it belongs to
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        at[length : length + 1] = [number]
    found = []
    number = at[-1] if at else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _common(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """A longest common subsequence. Bit j of a row is 0 where line j of `b` makes it longer, for the lines of `a` so
    far."""
    where: dict[str, int] = {}
    for j, line in enumerate(b):
        where[line] = where.get(line, 0) | 1 << j
    full = (1 << len(b)) - 1
    rows = [full]
    for line in a:
        row = rows[-1]
        at = row & where.get(line, 0)
        rows.append(((row + at) | (row - at)) & full)
    found = []
    i, j = len(a), len(b)
    while i and j:
        if rows[i] >> (j - 1) & 1:
            j -= 1
        elif not rows[i - 1] >> (j - 1) & 1:
            i -= 1
        else:
            i, j = i - 1, j - 1
            found.append((i, j))
    return found[::-1]


def _numbered(lines: Sequence[str]) -> list[tuple[str, int]]:
    """Each line with how many of its kind came before."""
    seen: Counter[str] = Counter()
    found = []
    for line in lines:
        found.append((line, seen[line]))
        seen[line] += 1
    return found
