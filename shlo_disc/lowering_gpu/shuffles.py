# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that the threads of a warp give each other. Shuffles move words of 32 bits, or several."""

from __future__ import annotations

from shlo_disc.lowering_gpu.grid import WARP
from shlo_disc.shape_dialect.mlir import arith, gpu, ir


def from_lane_above(value: ir.Value, offset: int) -> ir.Value:
    """The value of the lane `offset` further; the last lanes, which have none such, get their own."""
    return _shuffled(value, offset, gpu.ShuffleMode.DOWN)


def from_lane_below(value: ir.Value, offset: int) -> ir.Value:
    """The value of the lane `offset` before; the first lanes, which have none such, get their own."""
    return _shuffled(value, offset, gpu.ShuffleMode.UP)


def from_lane(value: ir.Value, lane: ir.Value) -> ir.Value:
    """The value of a lane of the warp, whose number is an index."""
    word = ir.IntegerType.get_signless(32)
    number, width = arith.index_cast(word, lane), arith.constant(word, WARP)
    return narrow(gpu.ShuffleOp(wide(value), number, width, gpu.ShuffleMode.IDX).shuffleResult, value.type)


def from_lane_across(value: ir.Value, offset: int) -> ir.Value:
    """The value of the lane whose number differs in the bits of `offset`."""
    return _shuffled(value, offset, gpu.ShuffleMode.XOR)


def wide(value: ir.Value) -> ir.Value:
    """A value as one or more words."""
    word = ir.IntegerType.get_signless(32)
    is_narrow = isinstance(value.type, ir.IntegerType) and value.type.width < word.width
    return arith.extui(word, value) if is_narrow else value


def narrow(value: ir.Value, type_: ir.Type) -> ir.Value:
    """A value of some type that was made `wide`."""
    return value if value.type == type_ else arith.trunci(type_, value)


def _shuffled(value: ir.Value, offset: int, mode: gpu.ShuffleMode) -> ir.Value:
    word = ir.IntegerType.get_signless(32)
    amount, width = arith.constant(word, offset), arith.constant(word, WARP)
    return narrow(gpu.ShuffleOp(wide(value), amount, width, mode).shuffleResult, value.type)
