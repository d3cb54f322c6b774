# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `fuse` stage: groups of StableHLO ops become private functions, one kernel each."""

from __future__ import annotations

from shlo_disc.mlir import func, ir, passmanager
from shlo_disc.shape_dialect.annotate import entry_block
from shlo_disc.transforms.fusion.attention import outline_attentions
from shlo_disc.transforms.fusion.budget import Budget
from shlo_disc.transforms.fusion.grouping import group
from shlo_disc.transforms.fusion.outline import Outliner
from shlo_disc.transforms.fusion.side_by_side import merge_recurrences
from shlo_disc.transforms.regions import close_regions

CLEAN = "builtin.module(func.func(cse))"


def fuse(module: ir.Module, budget: Budget) -> None:
    """Fuse a simplified module in place, as often as the budget allows."""
    block = entry_block(module)
    Outliner(module, block, group(block, budget), budget).run()
    passmanager.PassManager.parse(CLEAN).run(module.operation)
    outline_attentions(module, budget)
    merge_recurrences(module, budget)
    for function in module.body.operations:
        if isinstance(function, func.FuncOp):
            close_regions(function.entry_block)
