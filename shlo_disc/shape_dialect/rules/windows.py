# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over sliding windows."""

from __future__ import annotations

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.propagation import Propagation, Rule
from shlo_disc.shape_dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.windows import Window, window_of, window_of_operands


def _same_shapes(p: Propagation, op: ir.OpView, inputs: list[ir.Value]) -> Dims:
    first, *others = (dims_of(v) for v in inputs)
    for other in others:
        for a, b in zip(first, other, strict=True):
            p.equal(a, b, op)
    return first


def _reduced(p: Propagation, op: ir.OpView, window: Window) -> list[Dims]:
    dims = _same_shapes(p, op, list(op.operands)[: len(op.results)])
    return [window.result(dims, p.facts)] * len(op.results)


def _reduce_window(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _reduced(p, op, window_of(op))


def _dynamic_reduce_window(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _reduced(p, op, window_of_operands([p.sizes(v) for v in list(op.operands)[-5:]]))


RULES: dict[str, Rule] = {
    "@stablehlo.dynamic_reduce_window": _dynamic_reduce_window,
    "stablehlo.reduce_window": _reduce_window,
}
