# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Combining what the threads of a block have, in their order, so that each knows what all before it have together.

Within a warp in log2(32) steps (Hillis and Steele, "Data parallel algorithms"), then over the warps' totals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Accumulators
from shlo_disc.lowering_gpu.block_loops import when
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.shuffles import from_lane_below, narrow, wide
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref

Combine = Callable[[Accumulators, Accumulators], Accumulators]
"""The combination of two neighbouring parts. Parts keep their order, however they are joined."""


@dataclass(frozen=True)
class Prefix:
    """The combined values of all threads before this one, which the first one does not have, and those of the block."""

    before: Accumulators
    total: Accumulators

    def then(self, combine: Combine, own: Accumulators) -> Accumulators:
        """The combined values of the threads before this one and then `own`."""
        return _chosen(_is(thread(), 0), own, combine(self.before, own))


def prefix_of_block(frame: GpuFrame, combine: Combine, own: Accumulators) -> Prefix:
    """The prefix of what each thread has. All threads of the block must get here.

    Before they get here again, they must meet at a barrier: some may still read what the warps left.
    """
    warp_size = index_constant(WARP)
    lane, warp = arith.remui(thread(), warp_size), arith.divui(thread(), warp_size)
    through = _prefix_of_warp(combine, own, lane)
    totals = _totals_of_warps(frame, through, lane, warp)
    ahead = total = totals(0)
    for number in range(1, THREADS // WARP):
        ahead = _chosen(_is(warp, number), total, ahead)
        total = combine(total, totals(number))
    below = [from_lane_below(v, 1) for v in through]
    inside = _chosen(_is(warp, 0), below, combine(ahead, below))
    return Prefix(_chosen(_is(lane, 0), ahead, inside), total)


def any_of_block(frame: GpuFrame, flag: ir.Value) -> ir.Value:
    """Tells whether some thread of the block has its flag set; as `prefix_of_block`."""
    return prefix_of_block(frame, lambda a, b: [arith.ori(a[0], b[0])], [flag]).total[0]


def _prefix_of_warp(combine: Combine, own: Accumulators, lane: ir.Value) -> Accumulators:
    """The combined values of the lanes up to this one."""
    offset = 1
    while offset < WARP:
        has_lane = arith.cmpi(arith.CmpIPredicate.uge, lane, index_constant(offset))
        own = _chosen(has_lane, combine([from_lane_below(v, offset) for v in own], own), own)
        offset *= 2
    return own


def _totals_of_warps(
    frame: GpuFrame, through: Accumulators, lane: ir.Value, warp: ir.Value
) -> Callable[[int], Accumulators]:
    """The last lane of every warp leaves its value in shared memory; gives how all threads read that of a warp."""
    words = [wide(v) for v in through]
    buffers = [frame.shared_memory(THREADS // WARP, v.type) for v in words]

    def leave() -> None:
        for value, buffer in zip(words, buffers, strict=True):
            memref.store(value, buffer, [warp])

    when(_is(lane, WARP - 1), leave)
    gpu.barrier()

    def of_warp(number: int) -> Accumulators:
        place = [index_constant(number)]
        return [narrow(memref.load(b, place), v.type) for b, v in zip(buffers, through, strict=True)]

    return of_warp


def _is(index: ir.Value, number: int) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.eq, index, index_constant(number))


def _chosen(condition: ir.Value, yes: Accumulators, no: Accumulators) -> Accumulators:
    return [arith.select(condition, a, b) for a, b in zip(yes, no, strict=True)]
