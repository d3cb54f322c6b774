# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `fuse` stage: groups of StableHLO ops become private functions, one kernel each."""

from __future__ import annotations

from shlo_disc.mlir import func, ir, passmanager
from shlo_disc.shape_dialect.utils.regions import entry_block
from shlo_disc.transforms.control_flow.barriers import thin_barriers
from shlo_disc.transforms.decisions import Decisions
from shlo_disc.transforms.fusion.grouping import group
from shlo_disc.transforms.fusion.outline import Outliner
from shlo_disc.transforms.fusion.outline_attention import outline_attentions
from shlo_disc.transforms.fusion.side_by_side import merge_recurrences
from shlo_disc.transforms.regions import close_regions

CLEAN = "builtin.module(func.func(cse))"


def fuse(module: ir.Module, decisions: Decisions) -> None:
    """Fuse a simplified module in place, as often as `decisions` allow."""
    block = entry_block(module)
    thin_barriers(block)
    Outliner(module, block, group(block, decisions), decisions).run()
    passmanager.PassManager.parse(CLEAN).run(module.operation)
    outline_attentions(module, decisions)
    merge_recurrences(module, decisions)
    for function in module.body.operations:
        if isinstance(function, func.FuncOp):
            close_regions(function.entry_block)
