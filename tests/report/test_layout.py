# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions of boxes in graphs."""

from __future__ import annotations

import random
from itertools import pairwise

from shlo_disc.report.page.layout import BEND_WIDTH, HEIGHT, WIDTH, layout


def test_edges_go_down_and_nothing_overlaps() -> None:
    draw = random.Random(1)
    count = 120
    edges = sorted({(draw.randrange(max(0, t - 12), t), t) for t in range(1, count) for _ in range(2)})
    found = layout(count, edges)
    assert all(found.nodes[s][1] < found.nodes[t][1] for s, t in edges)
    rows: dict[float, list[tuple[float, float]]] = {}
    for x, y in found.nodes:
        rows.setdefault(y, []).append((x, WIDTH))
    for trunk in found.trunks:
        for x, y in trunk:
            rows.setdefault(y, []).append((x, BEND_WIDTH))
    for row in rows.values():
        for (x, width), (other, other_width) in pairwise(sorted(row)):
            assert other - x >= (width + other_width) / 2 - 1e-6


def test_an_edge_has_a_bend_in_each_layer_that_it_passes() -> None:
    chain = [(0, 1), (1, 2), (2, 3)]
    found = layout(4, [*chain, (0, 3), (0, 2)])
    assert found.bends == [0, 0, 0, 2, 1]
    assert [y for _, y in found.trunks[0]] == [HEIGHT, 2 * HEIGHT]


def test_arguments_stand_above_what_reads_them() -> None:
    found = layout(5, [(0, 2), (2, 3), (3, 4), (1, 4)], lowered=[0, 1])
    assert found.nodes[1][1] == found.nodes[4][1] - HEIGHT
    assert found.nodes[0][1] == found.nodes[2][1] - HEIGHT


def test_a_straight_chain_is_straight() -> None:
    assert {x for x, _ in layout(9, [(i, i + 1) for i in range(8)]).nodes} == {0.0}
