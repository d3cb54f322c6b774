# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layout of the boxes of a graph without cycles: layers from top to bottom, after Sugiyama, Tagawa and Toda (1981).

A node's layer is the longest path to it. An edge over several layers has a bend in each, which it shares with the other
edges of its source; the order in a layer follows the neighbours' barycentres. Every step takes time linear in nodes,
edges and bends, but for sorting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 240.0, 92.0
"""The distance of nodes, and of layers."""

BEND_WIDTH = 26.0
SWEEPS = 6
MOST_BENDS = 60_000
"""With more, edges run straight."""

Point = tuple[float, float]


@dataclass
class Layout:
    """The middle of each node, its trunk, and of how many points of it each edge is, from its source on."""

    nodes: list[Point]
    trunks: list[list[Point]]
    bends: list[int]


def layout(count: int, edges: Sequence[tuple[int, int]], lowered: Iterable[int] = ()) -> Layout:
    """Place nodes 0 to `count`, given so that every edge leads to a later one.

    lowered: nodes without predecessors that stand just above the first that reads them, such as arguments.
    """
    layers = _layers(count, edges, set(lowered))
    graph = _Graph.of(count, edges, layers)
    for sweep in range(SWEEPS):
        graph.order(downwards=sweep % 2 == 0)
    for sweep in range(2 * SWEEPS):
        graph.move(downwards=sweep % 2 == 0)
    places = [(graph.x[i], graph.layer[i] * HEIGHT) for i in range(len(graph.x))]
    trunks = [[places[bend] for bend in graph.trunks.get(node, ())] for node in range(count)]
    return Layout(places[:count], trunks, graph.bends)


def _layers(count: int, edges: Sequence[tuple[int, int]], lowered: set[int]) -> list[int]:
    layers = [0] * count
    for source, target in sorted(edges, key=lambda e: e[1]):
        if source not in lowered:
            layers[target] = max(layers[target], layers[source] + 1)
    if lowered:
        layers = [layer + 1 for layer in layers]
        first = dict.fromkeys(lowered, max(layers, default=0) + 1)
        for source, target in edges:
            if source in first:
                first[source] = min(first[source], layers[target])
        for node, layer in first.items():
            layers[node] = layer - 1
    return layers


@dataclass
class _Graph:
    """Nodes, then bends: the layer of each, its neighbours above and below, and where it stands in `rows`."""

    layer: list[int]
    above: list[list[int]]
    below: list[list[int]]
    count: int
    bends: list[int] = field(default_factory=list)
    trunks: dict[int, list[int]] = field(default_factory=dict)
    rows: list[list[int]] = field(default_factory=list)
    x: list[float] = field(default_factory=list)

    @staticmethod
    def of(count: int, edges: Sequence[tuple[int, int]], layers: list[int]) -> _Graph:
        graph = _Graph(list(layers), [[] for _ in layers], [[] for _ in layers], count)
        longest: dict[int, int] = {}
        for source, target in edges:
            longest[source] = max(longest.get(source, 0), layers[target] - layers[source] - 1)
        bends = sum(longest.values())
        for source, target in edges:
            graph._connect(source, target, bends <= MOST_BENDS)
        graph.rows = [[] for _ in range(max(graph.layer, default=-1) + 1)]
        for node, layer in enumerate(graph.layer):
            graph.rows[layer].append(node)
        graph.x = [0.0] * len(graph.layer)
        for row in graph.rows:
            graph._spread(row, [0.0] * len(row))
        return graph

    def _connect(self, source: int, target: int, bent: bool) -> None:
        trunk = self.trunks.setdefault(source, [])
        needed = self.layer[target] - self.layer[source] - 1 if bent else 0
        while len(trunk) < needed:
            bend = len(self.layer)
            self.layer.append(self.layer[source] + 1 + len(trunk))
            self.above.append([])
            self.below.append([])
            self._link(trunk[-1] if trunk else source, bend)
            trunk.append(bend)
        self._link(trunk[needed - 1] if needed else source, target)
        self.bends.append(needed)

    def _link(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def order(self, downwards: bool) -> None:
        """Order each layer by the mean place of its neighbours in the one before."""
        near = self.above if downwards else self.below
        for row in self.rows if downwards else reversed(self.rows):
            wanted = {node: self._mean(near[node], self.x[node]) for node in row}
            row.sort(key=lambda node: wanted[node])
            self._spread(row, [0.0] * len(row))

    def move(self, downwards: bool) -> None:
        """Move each layer's nodes, in their order, as near to their neighbours as their widths let them."""
        near = self.above if downwards else self.below
        for row in self.rows if downwards else reversed(self.rows):
            self._spread(row, [self._mean(near[node], self.x[node]) for node in row])

    def _mean(self, nodes: Sequence[int], default: float) -> float:
        return sum(self.x[n] for n in nodes) / len(nodes) if nodes else default

    def _spread(self, row: Sequence[int], wanted: Sequence[float]) -> None:
        """The places nearest to the wanted ones, in least squares, that keep order and distance (isotonic regression).

        With all of them wanted at 0, the row is centred.
        """
        offsets, at = [], 0.0
        for number, node in enumerate(row):
            at += (self._width(row[number - 1]) + self._width(node)) / 2 if number else 0.0
            offsets.append(at)
        blocks: list[tuple[float, int]] = []  # mean of what is wanted, and how many nodes share it
        for place, offset in zip(wanted, offsets, strict=True):
            mean, size = place - offset, 1
            while blocks and blocks[-1][0] > mean:
                other, count = blocks.pop()
                mean, size = (mean * size + other * count) / (size + count), size + count
            blocks.append((mean, size))
        moved = [mean for mean, size in blocks for _ in range(size)]
        for node, start, offset in zip(row, moved, offsets, strict=True):
            self.x[node] = start + offset

    def _width(self, node: int) -> float:
        return WIDTH if node < self.count else BEND_WIDTH
