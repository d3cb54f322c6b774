# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The type of a rule."""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.shape_dialect.mlir import ir

Rule = Callable[[Elements, ir.OpView, ir.Value, Positions], ir.Value]
"""(emitter, op, one of the op's results, where) -> the element(s) of that result there."""
