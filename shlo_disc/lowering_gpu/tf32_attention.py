# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of f32 by the TF32 instructions of tensor cores, where the program allows TF32 for both products.

Each thread rounds what it has brought of queries, keys and values in shared memory, before others read it. Fragments of
scores have two neighbouring columns a lane, fragments of weights two that are four apart: so the k-th column of a
product is column 2 k of the weights, and column 2 k + 1 is the one four behind it, for both sides.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.lowering_gpu.attention_rows import AttentionTask
from shlo_disc.lowering_gpu.index_math import times
from shlo_disc.lowering_gpu.shared_tile import MATRIX, SharedTile
from shlo_disc.lowering_gpu.tensor_attention import TensorAttention
from shlo_disc.lowering_gpu.tf32 import round_to_tf32
from shlo_disc.shape_dialect.mlir import ir, vector

WIDEST = 64
"""Elements of a head up to which keys and values of a piece, or queries, are in the shared memory of every launch."""


class Tf32Attention(TensorAttention):
    """The body of a kernel, at the insertion point."""

    step = MATRIX
    narrow = 0
    multiply = staticmethod(nvgpu.multiply_add_tf32)

    @staticmethod
    def is_for(task: AttentionTask) -> bool:
        """Tells whether it may compute an attention."""
        return task.problem.element == "f32" and task.allows_tf32 and max(task.depth, task.width) <= WIDEST

    def _arrive(self, tile: SharedTile) -> None:
        super()._arrive(tile)
        tile.change(round_to_tf32)

    def _right(self, row: int) -> list[ir.Value]:
        place = times(self.in_group, 2)
        return [self.values.right_of_pair(row, place, column, self.group) for column in range(0, self.width, MATRIX)]

    def _rounded(self, weights: Sequence[list[ir.Value]], pairs: range) -> ir.Value:
        """Weights as A (16 x 8): the first of two neighbours in both rows, then the second."""
        (first,) = pairs
        numbers = [round_to_tf32(own[first + one]) for one in range(2) for own in weights]
        return vector.from_elements(ir.VectorType.get([4, 1], ir.F32Type.get()), numbers)
