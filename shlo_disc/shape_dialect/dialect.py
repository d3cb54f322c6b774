# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `disc` dialect: symbols, derived sizes and constraints at module level, shapes in the body.

| op | where | meaning |
|--|--|--|
| `disc.symbol` | module | a size chosen by the caller, or read from data: name, min, max, divisor, hints, data |
| `disc.dim` | module | a derived size; its name *is* its canonical expression, e.g. `@"2*b + 1"` |
| `disc.constraint` | module | a relation that every admissible call satisfies, with the text of its error |
| `disc.shape` | body | an integer tensor (rank 0 or 1) whose elements are sizes; the only shape arithmetic left |
| `disc.bind` | body | gives symbols the values of an integer tensor's elements: sizes that are read from data |
| `disc.nonzero` | body | the positions of the true elements of a mask; the result's size is a symbol read from data |

Fusions are private functions with a `disc.kind` and calls to them: IRDL, which defines this dialect, gives all values
of a variadic operand group one type, so an op of ours could not take the inputs of a kernel.

Dynamic tensor types carry their sizes in the encoding: `tensor<?x?x768xf32, [@b, @s, 768]>`.
"""

import threading
from typing import Any

from shlo_disc.mlir import ext, ir, stablehlo


class Disc(ext.Dialect, name="disc"):
    """The dialect object; `make_context` loads it."""


class SymbolOp(Disc.Operation, name="symbol"):
    """A size. Discardable attributes: min, max, divisor (i64), hints (array), data (unit: bound by a `disc.bind`)."""

    sym_name: ir.StringAttr


class DimOp(Disc.Operation, name="dim"):
    """A derived size, named by its canonical expression over the symbols."""

    sym_name: ir.StringAttr


class ConstraintOp(Disc.Operation, name="constraint"):
    """`lhs relation rhs` over symbols, e.g. "s <= 512". Discardable attributes: message, operands, origin."""

    relation: ir.StringAttr


class ShapeOp(Disc.Operation, name="shape", traits=[ext.Pure]):
    """The sizes `dims` as an integer tensor of rank 1, or of rank 0 when there is a single one."""

    dims: ir.ArrayAttr
    result: ir.OpResult[Any]


class BindOp(Disc.Operation, name="bind"):
    """The elements of `value` are the values of `symbols`, in row-major order. Whoever uses a symbol comes later."""

    value: ext.Operand[Any]
    symbols: ir.ArrayAttr


class NonzeroOp(Disc.Operation, name="nonzero", traits=[ext.Pure]):
    """The positions of the true elements of a vector `mask`, in order."""

    mask: ext.Operand[Any]
    result: ir.OpResult[Any]


def make_context() -> ir.Context:
    """A fresh MLIR context with StableHLO and `disc` loaded. Thread-safe, which the loading of `disc` itself is not."""
    with _loading:
        context = ir.Context()
        stablehlo.register_dialect(context)
        with context, ir.Location.unknown():
            Disc.load()
    return context


_loading = threading.Lock()


def integer_attr(value: int) -> ir.IntegerAttr:
    """An i64 attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


__all__ = [
    "BindOp",
    "ConstraintOp",
    "DimOp",
    "Disc",
    "NonzeroOp",
    "ShapeOp",
    "SymbolOp",
    "integer_attr",
    "make_context",
]
