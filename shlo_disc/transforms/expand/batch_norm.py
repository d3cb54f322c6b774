# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalisation of batches as sums and elementwise ops, after the specification's own definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import broadcast, constant, convert
from shlo_disc.shape_dialect.dialect.ops import ShapeOp
from shlo_disc.shape_dialect.dialect.types import Dims, dims_attr, dims_of, element_type_of, product, tensor_type
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.transforms.simplify.data_movement import Pattern


@dataclass(frozen=True)
class _Batch:
    """The sizes of an operand, the axis of its features, and the small number added to variances."""

    dims: Dims
    axis: int
    element: ir.Type
    epsilon: float

    @staticmethod
    def of(op: ir.OpView) -> _Batch:
        """Read the attributes."""
        axis = ir.IntegerAttr(op.attributes["feature_index"]).value
        epsilon = ir.FloatAttr(op.attributes["epsilon"]).value
        return _Batch(dims_of(op.operands[0]), axis, element_type_of(op.operands[0]), epsilon)

    def spread(self, value: ir.Value) -> ir.Value:
        """One number a feature, or one for all, over the whole operand."""
        return broadcast(value, self.dims, [self.axis] if dims_of(value) else [])

    def sum(self, value: ir.Value) -> ir.Value:
        """The sum of each feature's elements."""
        reduced = [axis for axis in range(len(self.dims)) if axis != self.axis]
        op = ir.Operation.create(
            "stablehlo.reduce",
            results=[tensor_type([self.dims[self.axis]], self.element)],
            operands=[value, constant(0, self.element)],
            attributes={"dimensions": ir.DenseI64ArrayAttr.get(reduced)},
            regions=1,
        )
        scalar = ir.RankedTensorType.get([], self.element)
        body = ir.Block.create_at_start(op.regions[0], [scalar, scalar])
        with ir.InsertionPoint(body):
            ir.Operation.create("stablehlo.return", operands=[build.add(*body.arguments)])
        return op.results[0]

    def count(self) -> ir.Value:
        """The count of a feature's elements, as a number."""
        elements = product(d for axis, d in enumerate(self.dims) if axis != self.axis)
        integer = ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
        shape = ShapeOp(dims_attr([elements]), result=integer).results[0]
        return convert(shape, self.element)

    def mean(self, value: ir.Value) -> ir.Value:
        """The mean of each feature's elements."""
        count = broadcast(self.count(), [self.dims[self.axis]], [])
        return build.divide(self.sum(value), count)

    def shifted_variance(self, variance: ir.Value) -> ir.Value:
        """variance + epsilon, one number a feature."""
        epsilon = broadcast(constant(self.epsilon, self.element), dims_of(variance), [])
        return build.add(variance, epsilon)

    def normalise(self, values: ir.Value, mean: ir.Value, variance: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """values - mean, the standard deviation of each feature, and the quotient of the two."""
        centred = build.subtract(values, self.spread(mean))
        deviation = build.sqrt(self.shifted_variance(variance))
        return centred, deviation, build.divide(centred, self.spread(deviation))


def _inference(b: _Batch, x: ir.Value, scale: ir.Value, offset: ir.Value, *moments: ir.Value) -> list[ir.Value]:
    normalised = b.normalise(x, *moments)[2]
    return [build.add(build.multiply(normalised, b.spread(scale)), b.spread(offset))]


def _training(b: _Batch, x: ir.Value, scale: ir.Value, offset: ir.Value) -> list[ir.Value]:
    mean = b.mean(x)
    centred = build.subtract(x, b.spread(mean))
    variance = b.mean(build.multiply(centred, centred))
    return [*_inference(b, x, scale, offset, mean, variance), mean, variance]


def _gradient(
    b: _Batch, x: ir.Value, scale: ir.Value, mean: ir.Value, variance: ir.Value, above: ir.Value
) -> list[ir.Value]:
    centred, deviation, normalised = b.normalise(x, mean, variance)
    count = b.spread(b.count())
    total = b.sum(above)
    along = b.spread(build.divide(b.sum(build.multiply(above, centred)), b.shifted_variance(variance)))
    inner = build.subtract(build.multiply(above, count), b.spread(total))
    inner = build.subtract(inner, build.multiply(along, centred))
    factor = build.divide(b.spread(build.divide(scale, deviation)), count)
    return [build.multiply(factor, inner), b.sum(build.multiply(above, normalised)), total]


def _pattern(expand: Callable[..., list[ir.Value]]) -> Pattern:
    def rewrite_op(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
        with rewriter.ip, op.location:
            rewriter.replace_op(op, expand(_Batch.of(op), *op.operands))
        return None

    return rewrite_op


PATTERNS: list[tuple[str, Pattern]] = [
    ("stablehlo.batch_norm_grad", _pattern(_gradient)),
    ("stablehlo.batch_norm_inference", _pattern(_inference)),
    ("stablehlo.batch_norm_training", _pattern(_training)),
]
