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
from shlo_disc.mlir import arith, gpu, ir, memref, scf


def across_block(frame: GpuFrame, combiner: Combiner, own: Accumulators) -> Accumulators:
    """The combination of all threads' accumulators, in every thread. All threads of the block must get here.

    Before they get here again, they must meet at a barrier: some may still read what the warps left.
    """
    offset = 1
    while offset < WARP:
        # Lane i holds lanes i to i + offset - 1; what the last lanes combine is not used.
        own = combiner.combine(own, [_from_lane_above(v, offset) for v in own])
        offset *= 2
    return _across_warps(frame, combiner, own)


def _from_lane_above(value: ir.Value, offset: int) -> ir.Value:
    word = ir.IntegerType.get_signless(32)
    amount, width = arith.constant(word, offset), arith.constant(word, WARP)
    return _narrow(gpu.ShuffleOp(_wide(value), amount, width, gpu.ShuffleMode.DOWN).shuffleResult, value.type)


def _wide(value: ir.Value) -> ir.Value:
    """Shuffles move words of 32 bits, or several."""
    word = ir.IntegerType.get_signless(32)
    is_narrow = isinstance(value.type, ir.IntegerType) and value.type.width < word.width
    return arith.extui(word, value) if is_narrow else value


def _narrow(value: ir.Value, type_: ir.Type) -> ir.Value:
    return value if value.type == type_ else arith.trunci(type_, value)


def _across_warps(frame: GpuFrame, combiner: Combiner, own: Accumulators) -> Accumulators:
    """The first lane of every warp leaves its value in shared memory; every thread combines what is there."""
    wide = [_wide(v) for v in own]
    buffers = [frame.shared_memory(THREADS // WARP, v.type) for v in wide]
    warp_size = index_constant(WARP)
    lane = arith.remui(thread(), warp_size)
    first = scf.IfOp(arith.cmpi(arith.CmpIPredicate.eq, lane, index_constant(0)), [])
    with ir.InsertionPoint(first.then_block):
        warp = arith.divui(thread(), warp_size)
        for value, buffer in zip(wide, buffers, strict=True):
            memref.store(value, buffer, [warp])
        scf.yield_([])
    gpu.barrier()

    def of_warp(number: int) -> Accumulators:
        place = [index_constant(number)]
        return [_narrow(memref.load(b, place), v.type) for b, v in zip(buffers, own, strict=True)]

    total = of_warp(0)
    for number in range(1, THREADS // WARP):
        total = combiner.combine(total, of_warp(number))
    return total
