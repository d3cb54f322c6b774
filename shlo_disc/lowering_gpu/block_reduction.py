# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Combining the accumulators of a team's threads: shuffles within each warp, shared memory between the warps.

Values are combined in the order of the threads, whatever the body of the reduction, and always in the same way, so
results do not change from run to run.
"""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Accumulators, Combiner
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.shuffles import from_lane, from_lane_above, narrow, wide
from shlo_disc.lowering_gpu.teams import PART, Team
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf


def across_team(frame: GpuFrame, team: Team, combiner: Combiner, own: Accumulators) -> Accumulators:
    """The combination of the accumulators of a team, in each of its threads. All threads of the block must get here.

    Before they get here again, blocks that are one team must meet at a barrier: some of their threads may still read
    what the warps left.
    """
    own = _doubled(combiner, own, 1, PART)
    own = _if_larger(team, PART, own, lambda: _doubled(combiner, own, PART, WARP))
    if team.is_block:
        return _across_warps(frame, combiner, own)
    first = arith.shli(arith.shrui(_lane(), team.shift), team.shift)
    return _if_larger(team, WARP, own, lambda: _across_warps(frame, combiner, own), first)


def _doubled(combiner: Combiner, own: Accumulators, offset: int, end: int) -> Accumulators:
    """Lane i holds lanes i to i + offset - 1, and then so many that they are `end`, where there are as many."""
    while offset < end:
        own = combiner.combine_partials(own, [from_lane_above(v, offset) for v in own])
        offset *= 2
    return own


def _if_larger(
    team: Team, size: int, own: Accumulators, then: Callable[[], Accumulators], first: ir.Value | None = None
) -> Accumulators:
    """`then()` in teams of more than `size` threads. In others what a thread has, or what the lane `first` has."""

    def otherwise() -> Accumulators:
        return own if first is None else [from_lane(v, first) for v in own]

    if team.sizes[-1] <= size:
        return otherwise()
    if team.sizes[0] > size:
        return then()
    choice = scf.IfOp(team.is_larger_than(size), [v.type for v in own], has_else=True)
    for block, values in ((choice.then_block, then), (choice.else_block, otherwise)):
        with ir.InsertionPoint(block):
            scf.yield_(values())
    return list(choice.results)


def _lane() -> ir.Value:
    return arith.remui(thread(), index_constant(WARP))


def _across_warps(frame: GpuFrame, combiner: Combiner, own: Accumulators) -> Accumulators:
    """The first lane of every warp leaves its value in shared memory; every thread combines what is there."""
    words = [wide(v) for v in own]
    buffers = [frame.shared_memory(THREADS // WARP, v.type) for v in words]
    first = scf.IfOp(arith.cmpi(arith.CmpIPredicate.eq, _lane(), index_constant(0)), [])
    with ir.InsertionPoint(first.then_block):
        warp = arith.divui(thread(), index_constant(WARP))
        for value, buffer in zip(words, buffers, strict=True):
            memref.store(value, buffer, [warp])
        scf.yield_([])
    gpu.barrier()

    def of_warp(number: int) -> Accumulators:
        place = [index_constant(number)]
        return [narrow(memref.load(b, place), v.type) for b, v in zip(buffers, own, strict=True)]

    total = of_warp(0)
    for number in range(1, THREADS // WARP):
        total = combiner.combine_partials(total, of_warp(number))
    return total
