# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions over the axes behind batch and features, their transposes and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr

from .graph import Graph, for_each, pairs, working
from .grouped_convolutions import Slide, check_groups, convolved_in_groups
from .products import check_dtypes
from .reductions import summed
from .shapes import corner, pad
from .table import translates

_ONE = Expr.const(1)


@translates("convolution")
def convolution(
    t: Graph,
    x: ir.Value,
    kernel: ir.Value,
    bias: ir.Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int | Expr,
) -> ir.Value:
    """A convolution over the axes after batch and features, or a transposed one."""
    check_dtypes(t, x, kernel, bias)
    groups = as_expr(groups).constant or groups
    rank = len(dims_of(kernel)) - 2
    if len(dims_of(x)) == rank + 1:
        x = t.reshape(x, (_ONE, *dims_of(x)))
    stride, padding, dilation, more = (for_each(v, rank) for v in (stride, padding, dilation, output_padding))
    _check_numbers(t, stride, dilation, more, padding if transposed else ())
    x, padding = _padded(t, x, padding)
    pads = [(p, p) for p in padding]
    base = [1] * rank
    if transposed:
        groups = check_groups(t, groups, "a transposed convolution")
        kernel = _turned(t, kernel, groups)
        reach = [_width(t, kernel, a, dilation[a]) for a in range(rank)]
        pads = [(reach[a] - padding[a], reach[a] - padding[a] + more[a]) for a in range(rank)]
        base, stride = stride, [1] * rank
    dims = t.dims if len(t.dims) == rank + 2 else (_ONE, *t.dims)
    if isinstance(groups, int):
        found = _convolve(t, x, kernel, dims, stride, pads, base, dilation, groups)
    else:
        found = convolved_in_groups(t, x, kernel, dims, Slide(stride, padding, dilation, groups))
    if bias is not None:
        found = build.add(found, t.broadcast(bias, dims, [1]))
    return t.reshape(found, t.dims)


def _check_numbers(t: Graph, *values: Sequence[Any]) -> None:
    if any(isinstance(v, Expr) and v.constant is None for value in values for v in value):
        raise t.refuse("a convolution whose stride or dilation is a size has no lowering", "use numbers")


def _padded(t: Graph, x: ir.Value, padding: Sequence[Any]) -> tuple[ir.Value, list[int]]:
    """An operand with zeros around it where the padding is a size, and the padding that is left, in numbers."""
    if all(isinstance(p, int) for p in padding):
        return x, list(padding)
    around = [Expr.const(0), Expr.const(0), *map(as_expr, padding)]
    dims = tuple(d + 2 * p for d, p in zip(dims_of(x), around, strict=True))
    return pad(t, x, t.constant(0, t.dtype_of(x)), around, around, dims), [0] * len(padding)


def _width(t: Graph, kernel: ir.Value, axis: int, dilation: int) -> int:
    size = dims_of(kernel)[axis + 2].constant
    if size is None:
        raise t.refuse("a transposed convolution whose window is a symbol has no lowering")
    return (size - 1) * dilation


def _turned(t: Graph, kernel: ir.Value, groups: int) -> ir.Value:
    """The kernel of a transposed convolution as that of an ordinary one: features exchanged, windows turned round."""
    dims = dims_of(kernel)
    grouped = t.reshape(kernel, (Expr.const(groups), dims[0] // groups, *dims[1:]))
    order = [0, 2, 1, *range(3, len(dims) + 1)]
    exchanged = t.reshape(t.transpose(grouped, order), (dims[1] * groups, dims[0] // groups, *dims[2:]))
    numbers = ir.DenseI64ArrayAttr.get(list(range(2, len(dims))))
    return t.op("reverse", [exchanged], dims_of(exchanged), element_type_of(kernel), dimensions=numbers)


def _convolve(
    t: Graph,
    x: ir.Value,
    kernel: ir.Value,
    dims: Dims,
    stride: Sequence[int],
    pads: Sequence[tuple[int, int]],
    base: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    order: tuple[str, str, str] = ("b, f", "o, i", "b, f"),
    batch_groups: int = 1,
) -> ir.Value:
    """StableHLO's convolution. order: what the first two axes of the operands and of the result are."""
    places = ", ".join(str(a) for a in range(len(stride)))
    left, right, result = (f"[{first}, {places}]" for first in order)
    i64 = ir.IntegerType.get_signless(64)
    return t.op(
        "convolution",
        [x, kernel],
        dims,
        element_type_of(x),
        window_strides=ir.DenseI64ArrayAttr.get(list(stride)),
        padding=pairs([n for pair in pads for n in pair]),
        lhs_dilation=ir.DenseI64ArrayAttr.get(list(base)),
        rhs_dilation=ir.DenseI64ArrayAttr.get(list(dilation)),
        dimension_numbers=ir.Attribute.parse(f"#stablehlo.conv<{left}x{right}->{result}>"),
        feature_group_count=ir.IntegerAttr.get(i64, groups),
        batch_group_count=ir.IntegerAttr.get(i64, batch_groups),
    )


# ---- gradients ------------------------------------------------------------------------------------------------------


@translates("convolution_backward")
def convolution_backward(
    t: Graph,
    gradient: ir.Value,
    x: ir.Value,
    kernel: ir.Value,
    _: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int | Expr,
    wanted: Sequence[bool],
) -> tuple[ir.Value | None, ...]:
    """The requested gradients, of operand, kernel and bias."""
    rank = len(dims_of(kernel)) - 2
    if len(dims_of(x)) != rank + 2:
        raise t.refuse("the gradient of a convolution without a batch axis has no translation", "add a batch axis")
    _check_numbers(t, stride, padding, dilation)
    groups = check_groups(t, groups, "the gradient of a convolution")
    slide = Slide(for_each(stride, rank), for_each(padding, rank), for_each(dilation, rank), groups)
    found: list[ir.Value | None] = [None, None, None]
    if wanted[0]:
        build = _convolved_back if transposed else _spread_back
        found[0] = build(t, gradient, x, kernel, slide)
    if wanted[1]:
        wide, narrow = (gradient, x) if transposed else (x, gradient)
        found[1] = _of_kernel(t, wide, narrow, kernel, slide)
    if wanted[2]:
        kind = t.dtype_of(gradient)
        axes = [a for a in range(rank + 2) if a != 1]
        found[2] = t.convert(summed(t, t.convert(gradient, working(kind)), axes), kind)
    return tuple(found)


def _convolved_back(t: Graph, gradient: ir.Value, x: ir.Value, kernel: ir.Value, slide: Slide) -> ir.Value:
    """The gradient of the operand of a transposed convolution: the gradient convolved."""
    stride, padding, dilation, groups = slide
    pads = [(p, p) for p in padding]
    walks = zip(dims_of(gradient)[2:], dims_of(kernel)[2:], stride, padding, dilation, strict=True)
    dims = (*dims_of(x)[:2], *(_windows(d, k, s, 2 * p, w) for d, k, s, p, w in walks))
    found = _convolve(t, gradient, kernel, dims, stride, pads, [1] * len(stride), dilation, groups)
    return corner(t, found, dims_of(x))


def _windows(size: Expr, window: Expr, stride: int, padding: int, dilation: int) -> Expr:
    """The number of windows along an axis."""
    return (size + padding - (window - 1) * dilation - 1) // stride + 1


def _spread_back(t: Graph, gradient: ir.Value, x: ir.Value, kernel: ir.Value, slide: Slide) -> ir.Value:
    """The gradient of the operand of a convolution: the gradient with holes, convolved with the kernel turned round.

    Elements of the operand behind the last window get more zeros than they need, and the result is cut.
    """
    stride, padding, dilation, groups = slide
    rank = len(stride)
    turned = _turned(t, kernel, groups)
    reach = [_width(t, kernel, a, dilation[a]) for a in range(rank)]
    pads = [(reach[a] - padding[a], reach[a] - padding[a] + stride[a] - 1) for a in range(rank)]
    sizes = [
        (d - 1) * s + 1 + low + high - r
        for d, s, (low, high), r in zip(dims_of(gradient)[2:], stride, pads, reach, strict=True)
    ]
    dims = (*dims_of(x)[:2], *sizes)
    found = _convolve(t, gradient, turned, dims, [1] * rank, pads, stride, dilation, groups)
    return corner(t, found, dims_of(x))


def _of_kernel(t: Graph, wide: ir.Value, narrow: ir.Value, kernel: ir.Value, slide: Slide) -> ir.Value:
    """The gradient of the kernel: the side it slides over convolved with the other, batch and features exchanged."""
    stride, padding, dilation, groups = slide
    pads = [(p, p) for p in padding]
    sizes = [
        _windows(d, w, step, 2 * p, s)
        for d, w, step, p, s in zip(dims_of(wide)[2:], dims_of(narrow)[2:], dilation, padding, stride, strict=True)
    ]
    dims = (dims_of(kernel)[1], dims_of(kernel)[0], *sizes)
    found = _convolve(
        t, wide, narrow, dims, dilation, pads, [1] * len(stride), stride, 1, ("f, b", "i, o", "b, f"), groups
    )
    found = corner(t, found, (*dims[:2], *dims_of(kernel)[2:]))
    return t.transpose(found, [1, 0, *range(2, len(dims))])
