# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over rows of a few elements that do not divide a vector, such as the coordinates of points.

A masked vector for each row would leave most lanes idle. Several vectors are some rows together: 3 vectors of 16 lanes
are 16 rows of 3. What such a row shares is read by a vector and spread over the lanes.
"""

from __future__ import annotations

import math

from shlo_disc.lowering.frame import OneElement
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_cpu.emitters.loops import first_lanes, for_range
from shlo_disc.lowering_cpu.emitters.vector_elements import Part, VectorElements
from shlo_disc.shape_dialect.dialect.types import Dims, product
from shlo_disc.shape_dialect.mlir import arith, ir

_MOST_VECTORS = 3


def vectors_of_period(domain: Dims, lanes: int) -> int:
    """The number of vectors after which rows begin where a vector does; 0 for rows that are better walked through."""
    columns = product(domain[1:]).constant if len(domain) > 1 else None
    if not columns or columns >= lanes:
        return 0
    count = math.lcm(columns, lanes) // lanes
    return count if 1 < count <= _MOST_VECTORS else 0


def walk_periods(
    elements: VectorElements, count: int, columns: int, begin: ir.Value, end: ir.Value, body: OneElement
) -> None:
    """`body` for all elements of the rows from `begin` to before `end`, `count` vectors at a time, then row by row.

    Its positions are the row, and the place in it.
    """
    period = count * elements.width
    rows = index_constant(period // columns)
    middle = arith.subi(end, arith.remui(arith.subi(end, begin), rows))
    width = index_constant(columns)

    def vectors_at(row: ir.Value) -> None:
        first = arith.muli(row, width)
        for start in range(0, period, elements.width):
            with elements.scope():
                base = arith.addi(first, index_constant(start))
                elements.parts[base] = Part(first, start, period)
                body(elements, elements.math.divmod(Position(base, 1), width), False)

    for_range(begin, middle, vectors_at, rows)

    def masked_row(row: ir.Value) -> None:
        with elements.scope(), elements.valid(mask=first_lanes(elements.width, width)):
            body(elements, (Position(row), Position(index_constant(0), 1)), False)

    for_range(middle, end, masked_row)
