# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text that describes a compilation."""

from __future__ import annotations

from typing import Any

from shlo_disc.driver.compilation import Compilation, made
from shlo_disc.driver.stages import STAGES
from shlo_disc.errors import OptionError
from shlo_disc.shape_dialect.dialect.types import product
from shlo_disc.shape_dialect.dtypes import BY_NAME
from shlo_disc.shape_dialect.ops.variants import allocations_of
from shlo_disc.shape_dialect.symbolic.expr import Expr


def stage_text(c: Compilation, stage: str) -> str:
    """A stage's MLIR, or a view of the target, of a compilation that went that far. Raises OptionError on others."""
    if stage in c.snapshots:
        return str(c.snapshots[stage])
    views = c.backend.views
    if stage not in views:
        raise OptionError(f"no stage {stage!r}; stages are {', '.join([*STAGES, *views])}")
    return c.backend.view(stage, c.llvm_ir, made(c.code))


def peak_memory(c: Compilation) -> Expr:
    """The bytes that a call allocates, arena and results, as an expression of the symbols."""
    arena = sum(allocations_of(c.snapshots["plan"]), Expr.const(0))
    return c.facts.simplify(arena + result_bytes(c))


def result_bytes(c: Compilation) -> Expr:
    """The bytes of a program's results."""
    return sum((_bytes_of(spec) for spec in c.signature.results), Expr.const(0))


def _bytes_of(spec: Any) -> Expr:
    return product(spec.dims) * BY_NAME[spec.dtype].bytes


__all__ = ["peak_memory", "result_bytes", "stage_text"]
