# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the runtime's `attention`.

The scores of some rows at a time are in memory of the thread that works on them: the row kernel, an ordinary one, gets
addresses such that its rows lie there.
"""

from __future__ import annotations

from shlo_disc.lowering_cpu.gemm_format import FORMATS
from shlo_disc.lowering_cpu.gemm_kernel import Tile
from shlo_disc.shape_dialect.dialect.problems import MOST_ROW_AXES, AttentionAxis, AttentionProblem
from shlo_disc.shape_dialect.symbolic.expr import Expr

_ONE, _ZERO = Expr.const(1), Expr.const(0)
_NO_AXIS = AttentionAxis(_ONE, _ZERO, _ZERO, _ZERO, _ZERO)


def attention_words(problem: AttentionProblem, tile: Tile) -> tuple[Expr, ...]:
    """The fields of `DiscAttention` before its pointers."""
    batch = [*problem.batch, *[_NO_AXIS] * (MOST_ROW_AXES - len(problem.batch))]
    words = [Expr.const(FORMATS.index(tile.format)), Expr.const(len(problem.batch))]
    for column in ("size", "query", "key", "value", "result"):
        words += [getattr(axis, column) for axis in batch]
    rows = problem.rows
    words += [rows.size, problem.columns, problem.depth, problem.width]
    words += [rows.query, problem.query_depth, problem.key_column, problem.key_depth]
    words += [problem.value_column, problem.value_width, rows.result, problem.result_width]
    words += [Expr.const(o.start) for o in (problem.query, problem.key, problem.value)]
    return (*words, Expr.const(int(problem.rounds)))


def causal_words(problem: AttentionProblem) -> tuple[Expr, Expr, Expr]:
    """The last fields of `DiscAttention`: offset, reach and magnitude of a mask, 0 without one."""
    causal = problem.causal
    return (_ZERO, _ZERO, _ZERO) if causal is None else (causal.offset, causal.reach, Expr.const(causal.magnitude))
