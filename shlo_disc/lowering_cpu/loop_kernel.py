# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop kernels: every element of the outputs computed on its own, vectors along the last axis.

Work is divided over the elements of a one-dimensional space, else over the rows of the leading axes.
"""

from __future__ import annotations

from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.kernels import delinearize, op_cost, output_positions
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_cpu.kernel import Frame, either, for_range, over_lanes, store
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.symbolic.expr import Expr


def build_loop(frame: Frame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of work items and the cost of one."""
    domain = dims_of(frame.outputs[0])
    cost = max(1, sum(op_cost(op) for op in frame.fusion.entry_block.operations))
    if not domain:
        elements = frame.elements(1)
        for_range(frame.begin, frame.end, lambda _: write_outputs(frame, elements, (), domain, False))
        return Expr.const(1), Expr.const(cost)
    streams = frame.streams()
    if len(domain) == 1:
        frame.by_length(domain[0], lambda lanes: _one_row(frame, frame.elements(lanes), domain, streams), True)
        return domain[0], Expr.const(cost)
    frame.by_length(domain[-1], lambda lanes: _rows(frame, frame.elements(lanes), domain, streams))
    return product(domain[:-1]), cost * domain[-1]


def _one_row(frame: Frame, elements: Elements, domain: Dims, streams: ir.Value | None) -> None:
    def all_vectors(streaming: bool) -> None:
        with elements.scope():
            _vectors(frame, elements, [], domain, frame.begin, frame.end, False, streaming)

    either(streams, all_vectors)


def _rows(frame: Frame, elements: Elements, domain: Dims, streams: ir.Value | None) -> None:
    inner = domain[-1]

    def row(linear: ir.Value) -> None:
        with elements.scope():
            outer = delinearize(linear, domain[:-1], frame.size_of)
            divisible = frame.is_whole(elements.width, inner)
            end = frame.size_of(inner)

            def row_vectors(streaming: bool) -> None:
                with elements.scope():
                    _vectors(frame, elements, outer, domain, index_constant(0), end, divisible, streaming)

            either(streams, row_vectors)

    for_range(frame.begin, frame.end, row)


def _vectors(
    frame: Frame,
    elements: Elements,
    outer: list[ir.Value],
    domain: Dims,
    begin: ir.Value,
    end: ir.Value,
    divisible: bool,
    streaming: bool,
) -> None:
    def body(position: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
        write_outputs(frame, elements, (*(Position(v) for v in outer), position), domain, streaming)
        return []

    over_lanes(elements, begin, end, divisible, [], body)


def write_outputs(frame: Frame, elements: Elements, positions: Positions, domain: Dims, streaming: bool) -> None:
    """All outputs are computed before any is written, so that an output may take over an input's buffer."""
    places = [output_positions(v, positions, domain) for v in frame.outputs]
    values = [elements.at(v, p) for v, p in zip(frame.outputs, places, strict=True)]
    for value, place, output, buffer in zip(values, places, frame.outputs, frame.output_buffers, strict=True):
        store(buffer, value, place, element_of(output.type), elements, streaming)
