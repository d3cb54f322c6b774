# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pieces of a concatenation."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.frame import Frame
from shlo_disc.lowering.positions import index_constant
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import arith, ir


def piece_starts(frame: Frame, pieces: Sequence[ir.Value], axis: int) -> list[ir.Value]:
    """The start of each piece along the axis on which they follow each other."""
    starts = [index_constant(0)]
    for piece in pieces[:-1]:
        starts.append(arith.addi(starts[-1], frame.size_of(dims_of(piece)[axis])))
    return starts
