# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop kernels: every element of the outputs computed on its own."""

from __future__ import annotations

from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.frame import Frame
from shlo_disc.lowering.kernels import op_cost, output_positions
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.symbolic.expr import Expr


def build_loop(frame: Frame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of work items and the cost of one."""
    domain = dims_of(frame.outputs[0])

    def body(elements: Elements, positions: Positions, streaming: bool) -> None:
        write_outputs(frame, elements, positions, domain, streaming)

    items, each = frame.each_element(domain, body)
    return items, each * max(1, sum(op_cost(op) for op in frame.fusion.entry_block.operations))


def write_outputs(frame: Frame, elements: Elements, positions: Positions, domain: Dims, streaming: bool) -> None:
    """All outputs are computed before any is written, so that an output may take over an input's buffer."""
    places = [output_positions(v, positions, domain) for v in frame.outputs]
    values = [elements.at(v, p) for v, p in zip(frame.outputs, places, strict=True)]
    for value, place, output, buffer in zip(values, places, frame.outputs, frame.output_buffers, strict=True):
        frame.store(buffer, value, place, output, elements, streaming)
