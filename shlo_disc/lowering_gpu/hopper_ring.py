# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tiles of `hopper_product`, and the ring of stages in shared memory that slices of both sides come through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu import hopper
from shlo_disc.lowering_gpu.block_loops import when
from shlo_disc.lowering_gpu.grid import WARP, thread
from shlo_disc.lowering_gpu.hopper import BOX, BOX_BYTES, WARPGROUP, i32
from shlo_disc.lowering_gpu.index_math import divided
from shlo_disc.shape_dialect.mlir import arith, gpu, ir

CONSUMERS = 2
"""Warpgroups that multiply."""

STAGES = 4
"""A power of two."""


@dataclass(frozen=True)
class Tile:
    """A block's part of the result, `m` by `n`: of 128 rows, each warpgroup has 64; of 64 rows, half of the columns."""

    m: int
    n: int

    @property
    def columns(self) -> int:
        """The columns of a warpgroup."""
        return self.n if self.m == CONSUMERS * hopper.M else self.n // CONSUMERS

    @property
    def slice_bytes(self) -> int:
        """The bytes of both sides' slices in one stage."""
        return (self.m + self.n) // BOX * BOX_BYTES


LARGE, MEDIUM, SMALL = Tile(128, 256), Tile(128, 128), Tile(64, 128)
"""The fewest bytes for each product; enough blocks for smaller results."""

STAGE_BYTES = LARGE.slice_bytes
_BARRIERS = STAGES * STAGE_BYTES
SHARED_BYTES = hopper.ATOM_BYTES + _BARRIERS + 2 * 8 * STAGES
"""Bytes that a launch requests: all stages, barriers, and the padding to begin at a multiple of ATOM_BYTES."""


@dataclass(frozen=True)
class Place:
    """The indices of a batch, and the first row and column of a part of a result."""

    batch: Sequence[ir.Value]
    row: ir.Value
    column: ir.Value


@dataclass(frozen=True)
class Stage:
    """The addresses of a slice and its two barriers, and which of their phases it is."""

    start: ir.Value
    full: ir.Value
    empty: ir.Value
    parity: ir.Value


class Ring:
    """All stages, and their barriers, at offsets from a multiple of ATOM_BYTES; their number is a power of two."""

    def __init__(
        self,
        base: ir.Value,
        stages: int = STAGES,
        stage_bytes: int = STAGE_BYTES,
        first_stage: int = 0,
        barriers: int = _BARRIERS,
    ):
        self.base, self.stages, self.stage_bytes = base, stages, stage_bytes
        self.first_stage, self.barriers = first_stage, barriers

    def make_barriers(self) -> None:
        """By the first thread, for all."""
        make_barriers_of([self])

    def init_barriers(self) -> None:
        """By one thread."""
        for stage in range(self.stages):
            hopper.init_barrier(self._at(self.barriers + 8 * stage), 1)
            hopper.init_barrier(self._at(self.barriers + 8 * (self.stages + stage)), CONSUMERS * WARPGROUP // WARP)

    def _at(self, offset: int) -> ir.Value:
        return arith.addi(self.base, i32(offset))

    def stage(self, number: ir.Value) -> Stage:
        """The stage of a slice, which is told by its number among all of the block's."""
        stage = arith.remui(number, i32(self.stages))
        full = arith.addi(self._at(self.barriers), arith.muli(stage, i32(8)))
        parity = arith.remui(arith.divui(number, i32(self.stages)), i32(2))
        start = arith.addi(self._at(self.first_stage), arith.muli(stage, i32(self.stage_bytes)))
        return Stage(start, full, arith.addi(full, i32(8 * self.stages)), parity)

    @staticmethod
    def leave(stage: Stage) -> None:
        """A stage has been read by this warp."""
        lane, _ = divided(thread(), WARP)
        when(arith.cmpi(arith.CmpIPredicate.eq, lane, index_constant(0)), lambda: hopper.arrive(stage.empty))


def make_barriers_of(rings: Sequence[Ring]) -> None:
    """The barriers of rings, by the first thread, for all."""

    def make() -> None:
        for ring in rings:
            ring.init_barriers()
        hopper.publish_barriers()

    when(arith.cmpi(arith.CmpIPredicate.eq, thread(), index_constant(0)), make)
    gpu.barrier()
