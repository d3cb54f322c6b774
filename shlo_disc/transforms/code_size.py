# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much code an op becomes: the instructions for one vector of its result, roughly.

The figures are those of `lowering_cpu/vector_math` on f32 (twice as many where it computes in f64), and of the reads
that `lowering/index_rules` emits. What a kernel's size decides are the time that LLVM takes and how many versions of
the kernel are worth it, for which a factor of two does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.utils.op_sets import ELEMENTWISE
from shlo_disc.shape_dialect.utils.regions import nested_blocks

CALL = 12
"""Instructions of a call that computes a function out of line, those that keep other values across it among them."""

_INLINE = {"atan2": 45, "cbrt": 40, "cosine": 160, "exponential": 20, "exponential_minus_one": 30, "log": 40,
           "log_plus_one": 45, "logistic": 40, "power": 90, "remainder": 60, "rsqrt": 5, "sine": 160, "tan": 160,
           "tanh": 28}  # fmt: skip
_READ = {"concatenate": 8, "dynamic_gather": 12, "dynamic_pad": 12, "dynamic_slice": 6, "dynamic_update_slice": 12,
         "gather": 12, "pad": 12, "reverse": 4}  # fmt: skip
_NOTHING = frozenset({"broadcast_in_dim", "constant", "dynamic_broadcast_in_dim", "dynamic_reshape", "reshape"})
_CALLED = frozenset(_INLINE) - {"remainder", "rsqrt"}

_ROUNDED = frozenset({"bf16", "f16", "i4", "ui4", "i2", "ui2"})
_ROUNDING = 6


def code_size(op: ir.Operation | ir.OpView, outlined: bool = False) -> int:
    """Instructions for one vector of the op's result; `outlined`: with the functions of `vector_math` as calls."""
    name = op.operation.name.removeprefix("stablehlo.")
    if name in _NOTHING or not op.operation.name.startswith("stablehlo."):
        return 0
    inner = sum(total_code_size(block.operations, outlined) for block in nested_blocks(op))
    size = CALL if outlined and name in _CALLED else _INLINE.get(name, 1)
    if name in _READ:
        size = _READ[name] * (len(op.operands) - 1 if name == "concatenate" else 1)
    elif op.operation.name in ELEMENTWISE and str(element_type_of(op.operation.results[0])) in _ROUNDED:
        size += _ROUNDING
    return size + inner


def total_code_size(ops: Iterable[ir.Operation | ir.OpView], outlined: bool = False) -> int:
    """The instructions of several ops together."""
    return sum(code_size(op, outlined) for op in ops)


__all__ = ["CALL", "code_size", "total_code_size"]
