# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Combining the accumulators of a block's threads: shuffles within each warp, shared memory between the warps.

Values are combined in the order of the threads, whatever the body of the reduction, and always in the same way, so
results do not change from run to run.
"""

from __future__ import annotations

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Accumulators, Combiner
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.shuffles import from_lane_above, narrow, wide
from shlo_disc.mlir import arith, gpu, ir, memref, scf


def across_block(frame: GpuFrame, combiner: Combiner, own: Accumulators) -> Accumulators:
    """The combination of all threads' accumulators, in every thread. All threads of the block must get here.

    Before they get here again, they must meet at a barrier: some may still read what the warps left.
    """
    offset = 1
    while offset < WARP:
        # Lane i holds lanes i to i + offset - 1; what the last lanes combine is not used.
        own = combiner.combine(own, [from_lane_above(v, offset) for v in own])
        offset *= 2
    return _across_warps(frame, combiner, own)


def _across_warps(frame: GpuFrame, combiner: Combiner, own: Accumulators) -> Accumulators:
    """The first lane of every warp leaves its value in shared memory; every thread combines what is there."""
    words = [wide(v) for v in own]
    buffers = [frame.shared_memory(THREADS // WARP, v.type) for v in words]
    warp_size = index_constant(WARP)
    lane = arith.remui(thread(), warp_size)
    first = scf.IfOp(arith.cmpi(arith.CmpIPredicate.eq, lane, index_constant(0)), [])
    with ir.InsertionPoint(first.then_block):
        warp = arith.divui(thread(), warp_size)
        for value, buffer in zip(words, buffers, strict=True):
            memref.store(value, buffer, [warp])
        scf.yield_([])
    gpu.barrier()

    def of_warp(number: int) -> Accumulators:
        place = [index_constant(number)]
        return [narrow(memref.load(b, place), v.type) for b, v in zip(buffers, own, strict=True)]

    total = of_warp(0)
    for number in range(1, THREADS // WARP):
        total = combiner.combine(total, of_warp(number))
    return total
