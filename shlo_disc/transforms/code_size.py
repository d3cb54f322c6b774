# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The amount of code that an op becomes: the instructions for one vector of its result, roughly.

The figures are those of `lowering_cpu/vector_math` on f32 (twice as many where it computes in f64), and of the reads
that `lowering/index_rules` emits. What a kernel's size decides are the time that LLVM takes and how many versions of
the kernel are worth it, for which a factor of two does not matter.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.mlir import ir
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
    op = op.operation
    name = op.name
    if name in ELEMENTWISE:
        return _own_size(name, outlined) + (_ROUNDING if _is_rounded(element_type_of(op.results[0])) else 0)
    if name.removeprefix("stablehlo.") in _READ:
        return _own_size(name, outlined) * (len(op.operands) - 1 if name == "stablehlo.concatenate" else 1)
    inner = sum(total_code_size(block.operations, outlined) for block in nested_blocks(op))
    return _own_size(name, outlined) + inner


@functools.cache
def _own_size(name: str, outlined: bool) -> int:
    """The size of ops of a name, without what their types, operands and regions add."""
    short = name.removeprefix("stablehlo.")
    if short in _NOTHING or short == name:
        return 0
    return CALL if outlined and short in _CALLED else _READ.get(short) or _INLINE.get(short, 1)


@remembered
def _is_rounded(element_type: ir.Type) -> bool:
    """Tells whether values of a type are computed as wider ones."""
    return str(element_type) in _ROUNDED


def total_code_size(ops: Iterable[ir.Operation | ir.OpView], outlined: bool = False) -> int:
    """The instructions of several ops together."""
    return sum(code_size(op, outlined) for op in ops)


__all__ = ["CALL", "code_size", "total_code_size"]
