# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops whose results have the shape of their operands, and ops whose shapes are stated."""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.dialect.types import Dims, bits_of, dims_of
from shlo_disc.shape_dialect.inference.propagation import Propagation, Rule
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.op_sets import ELEMENTWISE


def _same(positions: Sequence[int]) -> Rule:
    """All the operands at `positions` and every result have one shape; rank-0 operands elsewhere broadcast."""

    def rule(p: Propagation, op: ir.OpView) -> list[Dims]:
        chosen = [dims_of(op.operands[i]) for i in (positions or range(len(op.operands)))]
        for other in chosen[1:]:
            for a, b in zip(chosen[0], other, strict=True):
                p.equal(a, b, op)
        dims = tuple(min(column, key=lambda e: e.constant is None) for column in zip(*chosen, strict=True))
        return [dims for _ in op.results]

    return rule


def _select(p: Propagation, op: ir.OpView) -> list[Dims]:
    scalar_predicate = not dims_of(op.operands[0])
    return _same((1, 2) if scalar_predicate else (0, 1, 2))(p, op)


def _clamp(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _same([i for i in range(3) if i == 1 or dims_of(op.operands[i])])(p, op)


def _static(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(r) for r in op.results]


def _sizes_of_operand(position: int) -> Rule:
    return lambda p, op: [p.sizes(op.operands[position])]


def _bitcast_convert(p: Propagation, op: ir.OpView) -> list[Dims]:
    """A last axis holds the parts of the wider type."""
    dims = dims_of(op.operands[0])
    source, result = (ir.RankedTensorType(v.type) for v in (op.operands[0], op.results[0]))
    ratio = bits_of(source.element_type) / bits_of(result.element_type)
    if ratio == 1:
        return [dims]
    if ratio > 1:
        return [(*dims, Expr.const(int(ratio)))]
    p.equal(dims[-1], Expr.const(int(1 / ratio)), op)
    return [dims[:-1]]


RULES: dict[str, Rule] = {
    **{name: _same(()) for name in ELEMENTWISE},
    "disc.shape": _static,
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.clamp": _clamp,
    "stablehlo.constant": _static,
    "stablehlo.dynamic_iota": _sizes_of_operand(0),
    "stablehlo.get_dimension_size": _static,
    "stablehlo.iota": _static,
    "stablehlo.map": _same(()),
    "stablehlo.reverse": _same(()),
    "stablehlo.select": _select,
    "stablehlo.sort": _same(()),
    "stablehlo.uniform_dequantize": _same(()),
    "stablehlo.uniform_quantize": _same(()),
}
