# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The window of a dynamic_update_slice, written into a buffer that holds the operand."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.frame import Frame
from shlo_disc.lowering.positions import Position
from shlo_disc.shape_dialect.mlir import ir


def write_into_window(
    frame: Frame, elements: Elements, op: ir.OpView, where: Positions, starts: Sequence[Position]
) -> None:
    """The element(s) of the window at `where`, which begins at `starts`."""
    value = elements.at(op.operands[1], where)
    target = tuple(elements.math.add(p, s) for p, s in zip(where, starts, strict=True))
    frame.store(frame.output_buffers[0], value, target, op.results[0], elements, False)
