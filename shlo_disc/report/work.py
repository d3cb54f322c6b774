# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work of a fusion: its ops, the bytes it reads and writes, its arithmetic, over the symbols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.types import bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import RESHAPES, TABLE
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import terminator_of
from shlo_disc.transforms.flops import Functions, flops_of, repeated_ops

_PRODUCTS = frozenset({"convolution", "dot_general", "dynamic_conv"})

_PARTIAL = frozenset({"dynamic_gather", "dynamic_slice", "gather", "real_dynamic_slice", "slice"})
"""Ops that read no more of their first operand than they give."""


@dataclass(frozen=True)
class Work:
    """`flops` counts a multiply-add as two and any other op on an element, a transcendental one too, as one.

    `element`: the type that a product in it multiplies, or "f32".
    """

    ops: str
    bytes_read: Expr
    bytes_written: Expr
    flops: Expr
    element: str


def work_of(fusion: func.FuncOp, functions: Functions) -> Work:
    """The work of one run of a fusion, each argument read and each result written once."""
    block = fusion.entry_block
    ops = list(repeated_ops(block, functions))
    results = {root(v) for v in terminator_of(block).operands}
    names = Counter(_name(op) for op, _ in ops if _is_named(op))
    said = [f"{name} x{n}" if n > 1 else name for name, n in names.items()]
    return Work(
        " + ".join(said),
        _sum(_bytes_read(argument) for argument in block.arguments),
        _sum(_bytes(value) for value in results),
        _sum(times * flops_of(op, functions) for op, times in ops),
        next((str(element_type_of(op.operands[0])) for op, _ in ops if _name(op) in _PRODUCTS), "f32"),
    )


def _is_named(op: ir.OpView) -> bool:
    """Tells whether a report names an op: one of StableHLO's that generates code."""
    name = op.operation.name
    return name.startswith("stablehlo.") and name != "stablehlo.return" and TABLE[name].generates_code


def _bytes_read(argument: ir.Value) -> Expr:
    """All of an argument, or where it is only looked up, as much as is taken out."""
    readers = list(_readers(argument))
    if readers and all(_name(op) in _PARTIAL and op.operands[0] == value for op, value in readers):
        return _sum(_bytes(op.results[0]) for op, _ in readers)
    return _bytes(argument)


def _readers(value: ir.Value) -> Iterator[tuple[ir.OpView, ir.Value]]:
    for use in value.uses:
        user = use.owner.operation.opview
        if user.operation.name in RESHAPES:
            yield from _readers(user.results[0])
        else:
            yield user, value


def _bytes(value: ir.Value) -> Expr:
    return _elements(value) * bytes_of(element_type_of(value))


def _elements(value: ir.Value) -> Expr:
    return product(dims_of(value))


def _sum(parts: Iterable[Expr]) -> Expr:
    return sum(parts, Expr.const(0))


def _name(op: ir.OpView) -> str:
    return op.operation.name.removeprefix("stablehlo.")
