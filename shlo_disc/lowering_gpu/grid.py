# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The threads of a launch, and loops over the grid.

Every loop over the grid has a stride, so a kernel is right for any number of blocks.
"""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.positions import index_constant
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, scf

THREADS = 256
"""Threads of every block: enough to hide latency, few enough for any kernel's registers."""

WARP = 32
"""Threads that exchange values by shuffles."""


def thread() -> ir.Value:
    """This thread's number in its block."""
    return gpu.thread_id(gpu.Dimension.x)


def each_block(total: ir.Value, body: Callable[[ir.Value], None]) -> None:
    """`body(item)` for all items below `total`, one block an item at a time."""
    _strided(gpu.block_id(gpu.Dimension.x), total, gpu.grid_dim(gpu.Dimension.x), body)


def each_thread(total: ir.Value, body: Callable[[ir.Value], None], begin: ir.Value | None = None) -> None:
    """`body(item)` for all items from `begin` to `total`, one thread an item at a time, neighbours side by side."""
    threads = index_constant(THREADS)
    first = arith.addi(arith.muli(gpu.block_id(gpu.Dimension.x), threads), thread())
    if begin is not None:
        first = arith.addi(begin, first)
    _strided(first, total, arith.muli(gpu.grid_dim(gpu.Dimension.x), threads), body)


def _strided(first: ir.Value, total: ir.Value, step: ir.Value, body: Callable[[ir.Value], None]) -> None:
    loop = scf.ForOp(first, total, step, [])
    with ir.InsertionPoint(loop.body):
        body(loop.induction_variable)
        scf.yield_([])
