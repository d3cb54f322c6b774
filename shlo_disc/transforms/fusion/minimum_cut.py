# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Minimum cuts of small networks, by shortest augmenting paths (Edmonds and Karp, 1972)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable

ALWAYS = 1 << 60
"""The capacity of an edge that no cut may have."""

SOURCE, SINK = "source", "sink"

Edge = tuple[Hashable, Hashable]


class Network:
    """Directed edges with integer capacities between nodes, from `SOURCE` to `SINK`."""

    def __init__(self) -> None:
        self._left: defaultdict[Hashable, dict[Hashable, int]] = defaultdict(dict)

    def add(self, start: Hashable, end: Hashable, capacity: int) -> None:
        """An edge; edges between the same nodes add up."""
        self._left[start][end] = self._left[start].get(end, 0) + capacity
        self._left[end].setdefault(start, 0)

    def side_of_sink(self) -> set[Hashable]:
        """The nodes behind a minimum cut; of several such cuts, behind the one that is nearest to the sink."""
        while path := self._augmenting_path():
            flow = min(self._left[start][end] for start, end in path)
            for start, end in path:
                self._left[start][end] -= flow
                self._left[end][start] += flow
        reached: set[Hashable] = {SINK}
        pending: deque[Hashable] = deque([SINK])
        while pending:
            end = pending.popleft()
            found = [start for start in self._left[end] if start not in reached and self._left[start][end] > 0]
            reached.update(found)
            pending.extend(found)
        return reached

    def _augmenting_path(self) -> list[Edge]:
        """The edges of a shortest path from the source to the sink that has capacity left; none where there is none."""
        before: dict[Hashable, Hashable] = {SOURCE: SOURCE}
        pending: deque[Hashable] = deque([SOURCE])
        while pending and SINK not in before:
            start = pending.popleft()
            found = [end for end, left in self._left[start].items() if left > 0 and end not in before]
            before.update(dict.fromkeys(found, start))
            pending.extend(found)
        path: list[Edge] = []
        end: Hashable = SINK
        while end in before and end != SOURCE:
            path.append((before[end], end))
            end = before[end]
        return path
