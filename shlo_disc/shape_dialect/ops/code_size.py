# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The amount of code that an op becomes: the instructions for one vector of its result, roughly.

The figures stand in the definitions of the ops: those of `lowering_cpu/vector_math` on f32 (twice as many where it
computes in f64), and of the reads that `lowering/index_rules` emits. What a kernel's size decides are the time that
LLVM takes and how many versions of the kernel are worth it, for which a factor of two does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable

from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import TABLE
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks

CALL = 12
"""Instructions of a call that computes a function out of line, those that keep other values across it among them."""

_ROUNDED = frozenset({"bf16", "f16", "i4", "ui4", "i2", "ui2"})
_ROUNDING = 6


def code_size(op: ir.Operation | ir.OpView, outlined: bool = False) -> int:
    """Instructions for one vector of the op's result; `outlined`: with the functions of `vector_math` as calls."""
    op = op.operation
    definition = TABLE.get(op.name)
    inner = sum(total_code_size(block.operations, outlined) for block in nested_blocks(op))
    if definition is None:
        return inner
    own = CALL if outlined and definition.is_function else definition.code
    if definition.code_of_each:
        return own * (len(op.operands) - 1)
    is_rounded = definition.is_elementwise and _is_rounded(element_type_of(op.results[0]))
    return own + inner + (_ROUNDING if is_rounded else 0)


@remembered
def _is_rounded(element_type: ir.Type) -> bool:
    """Tells whether values of a type are computed as wider ones."""
    return str(element_type) in _ROUNDED


def total_code_size(ops: Iterable[ir.Operation | ir.OpView], outlined: bool = False) -> int:
    """The instructions of several ops together."""
    return sum(code_size(op, outlined) for op in ops)


__all__ = ["CALL", "code_size", "total_code_size"]
