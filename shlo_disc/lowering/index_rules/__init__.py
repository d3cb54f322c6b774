# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index rules: the operand elements that an op needs for a result element."""

from __future__ import annotations

from shlo_disc.lowering.index_rules import folds, moves, windows
from shlo_disc.lowering.index_rules.folds import nest
from shlo_disc.lowering.index_rules.rule import Rule

INDEX_RULES: dict[str, Rule] = {**moves.RULES, **folds.RULES, **windows.RULES}

__all__ = ["INDEX_RULES", "nest"]
