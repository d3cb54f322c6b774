# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over sliding windows."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.dialect.window import Window
from shlo_disc.shape_dialect.inference.propagation import Propagation, Rule
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.convolution import convolution_of, static_padding
from shlo_disc.shape_dialect.utils.windows import window_of, window_of_operands


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
    window = window_of_operands([p.sizes(v) for v in list(op.operands)[-5:]])
    for size in window.size:  # a window as large as what it slides over may have no elements
        p.require(Relation.ge(size, 0), op)
    for step in (*window.stride, *window.base_dilation, *window.dilation):
        p.require(Relation.ge(step, 1), op)
    return _reduced(p, op, window)


def _convolution(p: Propagation, op: ir.OpView) -> list[Dims]:
    conv = convolution_of(op)
    is_dynamic = op.operation.name == "stablehlo.dynamic_conv"
    window = conv.window(op, p.sizes(op.operands[2]) if is_dynamic else static_padding(op))
    lhs, rhs = dims_of(op.operands[0]), dims_of(op.operands[1])
    batch, *space, feature = (lhs[a] for a in conv.input)
    p.equal(feature, rhs[conv.kernel[-2]] * conv.feature_groups, op)
    if conv.batch_groups != 1:
        p.require(Relation.eq(batch % conv.batch_groups, 0), op)
        batch = batch // conv.batch_groups
    for padded in window.padded(tuple(space), p.facts):
        p.require(Relation.ge(padded, 0), op)
    sizes = (batch, *window.result(tuple(space), p.facts), rhs[conv.kernel[-1]])
    return [tuple(sizes[conv.output.index(a)] for a in range(len(sizes)))]


def _select_and_scatter(p: Propagation, op: ir.OpView) -> list[Dims]:
    """There is one source element for each window."""
    dims = dims_of(op.operands[0])
    for count, size in zip(window_of(op).result(dims, p.facts), dims_of(op.operands[1]), strict=True):
        p.equal(count, size, op)
    return [dims]


def _batch_norm(p: Propagation, op: ir.OpView) -> list[Dims]:
    """All that goes by feature has one size; a gradient's last operand has the first one's shape."""
    whole = dims_of(op.operands[0])
    features = whole[ir.IntegerAttr(op.attributes["feature_index"]).value]
    for value in list(op.operands)[1:]:
        dims = dims_of(value)
        for a, b in zip(dims, whole if len(dims) == len(whole) != 1 else (features,), strict=True):
            p.equal(a, b, op)
    return [whole, (features,), (features,)][: len(op.results)]


RULES: dict[str, Rule] = {
    "@stablehlo.dynamic_reduce_window": _dynamic_reduce_window,
    "stablehlo.batch_norm_grad": _batch_norm,
    "stablehlo.batch_norm_inference": _batch_norm,
    "stablehlo.batch_norm_training": _batch_norm,
    "stablehlo.convolution": _convolution,
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
