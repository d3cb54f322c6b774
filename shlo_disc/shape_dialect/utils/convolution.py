# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of a convolution's attributes."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import Dims, dims_attr, dims_of, dims_of_attr
from shlo_disc.shape_dialect.dialect.window import GROUPS, Window
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts_simplify import divide
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.windows import padding_pairs

GROUP_COUNTS = ("feature_group_count", "batch_group_count")


@dataclass(frozen=True)
class Convolution:
    """The attributes of a `convolution` or `dynamic_conv`.

    input, kernel, output: the dimensions in canonical order: [batch, space..., feature], [space..., input feature,
    output feature] and [batch, space..., feature].
    """

    input: tuple[int, ...]
    kernel: tuple[int, ...]
    output: tuple[int, ...]
    strides: tuple[int, ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    reversal: tuple[bool, ...]
    feature_groups: Expr
    batch_groups: Expr

    @property
    def rank(self) -> int:
        """The number of spatial dimensions."""
        return len(self.strides)

    def outputs_of_group(self, outputs: Expr) -> Expr:
        """The output features of a feature group, of which there is at least one."""
        quotient, rest = divide(outputs, self.feature_groups)
        return quotient if rest == 0 else outputs // self.feature_groups

    def window(self, op: ir.OpView, padding: Dims) -> Window:
        """The window over the spatial dimensions; `padding` is (low, high) of each, row-major."""
        kernel = dims_of(op.operands[1])
        return Window(
            tuple(kernel[a] for a in self.kernel[: self.rank]),
            tuple(Expr.const(s) for s in self.strides),
            tuple(Expr.const(d) for d in self.lhs_dilation),
            tuple(Expr.const(d) for d in self.rhs_dilation),
            padding[::2],
            padding[1::2],
        )


def convolution_of(op: ir.OpView) -> Convolution:
    """Read the attributes of a `convolution` or `dynamic_conv`."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    rank = len(numbers.input_spatial_dimensions)

    def values(name: str) -> tuple[int, ...]:
        return tuple(integers(op.attributes[name])) if name in op.attributes else (1,) * rank

    reversal = ir.DenseBoolArrayAttr(op.attributes["window_reversal"]) if "window_reversal" in op.attributes else ()
    return Convolution(
        (
            numbers.input_batch_dimension,
            *numbers.input_spatial_dimensions,
            numbers.input_feature_dimension,
        ),
        (
            *numbers.kernel_spatial_dimensions,
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
        ),
        (
            numbers.output_batch_dimension,
            *numbers.output_spatial_dimensions,
            numbers.output_feature_dimension,
        ),
        values("window_strides"),
        values("lhs_dilation"),
        values("rhs_dilation"),
        tuple(bool(b) for b in reversal) or (False,) * rank,
        *group_counts(op),
    )


def group_counts(op: ir.OpView) -> Dims:
    """The numbers of feature groups and of batch groups."""
    if GROUPS in op.attributes:
        return dims_of_attr(op.attributes[GROUPS])
    return tuple(Expr.const(ir.IntegerAttr(op.attributes[name]).value) for name in GROUP_COUNTS)


def group_count_attributes(groups: Dims) -> dict[str, ir.Attribute]:
    """The attributes with numbers of groups as `group_counts` has them; StableHLO's own say 1 where one is a size."""
    counts = [n.constant for n in groups]
    if None not in counts:
        return {name: integer_attr(n) for name, n in zip(GROUP_COUNTS, counts, strict=True) if n is not None}
    return {**dict.fromkeys(GROUP_COUNTS, integer_attr(1)), GROUPS: dims_attr(groups)}


def is_depthwise(op: ir.OpView) -> bool:
    """Each feature of the input has one window, of which one feature of the result comes."""
    conv = convolution_of(op)
    kernel = dims_of(op.operands[1])
    return conv.feature_groups == kernel[conv.kernel[-1]] and kernel[conv.kernel[-2]].constant == 1


def static_padding(op: ir.OpView) -> Dims:
    """The padding attribute of a `convolution`, row-major."""
    rank = len(dims_of(op.operands[0])) - 2
    return tuple(Expr.const(n) for pair in padding_pairs(op, rank) for n in pair)


def is_canonical(op: ir.OpView) -> bool:
    """A `convolution` in canonical order whose windows lie inside the input."""
    return has_canonical_order(op) and all(e.constant == 0 for e in static_padding(op))


def has_canonical_order(op: ir.OpView) -> bool:
    """A `convolution` of [batch, space..., feature] by [space..., input feature, output feature], without holes."""
    if op.operation.name != "stablehlo.convolution":
        return False
    conv = convolution_of(op)
    whole = tuple(range(conv.rank + 2))
    ones = (1,) * conv.rank
    return (
        (conv.input, conv.kernel, conv.output) == (whole, whole, whole)
        and conv.lhs_dilation == ones
        and not any(conv.reversal)
        and conv.batch_groups == 1
    )
