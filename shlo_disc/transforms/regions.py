# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies of reductions and scatters that stand on their own.

MLIR's canonicaliser and CSE move constants out of regions. The body of an op that goes into a kernel must not refer to
anything outside, so constants are copied back in.
"""

from __future__ import annotations

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import CONTROL
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.regions import captured, constant_of


def isolate_regions(block: ir.Block) -> None:
    """Copy the constants that bodies of the block's ops use from outside into those bodies, in place.

    Loops and branches may use anything from outside; only the bodies in them are closed.
    """
    for inner in all_blocks(block):
        for op in inner.operations:
            if op.operation.name in CONTROL:
                continue
            for region in op.regions:
                for body in region.blocks:
                    _close(body)


def _close(body: ir.Block) -> None:
    copies: dict[ir.Value, ir.Value] = {}
    for user, position, value in list(captured(body)):
        constant = constant_of(value)
        if constant is None:
            raise CompilerError(f"a body uses {value}, which is defined outside of it")
        if value not in copies:
            with ir.InsertionPoint.at_block_begin(body):
                copies[value] = constant.clone().results[0]
        user.operands[position] = copies[value]
