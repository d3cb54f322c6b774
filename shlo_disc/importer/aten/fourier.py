# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms along axes of any size, and the windows of short-time transforms.

A transform of a size that is a symbol is our custom call, which the native runtime computes as it does StableHLO's op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.fft import KINDS, TARGET
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr

from .complex_numbers import joined, parts
from .graph import Graph, axis_of, numbers_of
from .index_ranges import check_not_negative
from .indexing import gather_at
from .relations import state
from .table import translates

_ONE = Expr.const(1)


# ---- transforms -----------------------------------------------------------------------------------------------------


@translates("_fft_r2c", takes_complex=True)
def of_reals(t: Graph, x: ir.Value, axes: Sequence[int], normalization: int, onesided: bool) -> ir.Value:
    """The transform of real numbers; with `onesided`, without the half along the last axis that follows by symmetry."""
    numbers = [axis_of(a, len(t.dims)) for a in axes]
    count = product(dims_of(x)[a] for a in numbers)
    if onesided:
        found = transform(t, x, "RFFT", numbers, dims_of(x)[numbers[-1]])
    else:
        found = transform(t, t.convert(x, t.dtype), "FFT", numbers, dims_of(x)[numbers[-1]])
    return _times_power(t, found, count, -normalization)


@translates("_fft_c2r", takes_complex=True)
def to_reals(t: Graph, x: ir.Value, axes: Sequence[int], normalization: int, size: Any) -> ir.Value:
    """The inverse transform of one half of a spectrum, to `size` real numbers along the last axis."""
    numbers = [axis_of(a, len(t.dims)) for a in axes]
    found = transform(t, x, "IRFFT", numbers, as_expr(size))
    return _times_power(t, found, product(t.dims[a] for a in numbers), 2 - normalization)


@translates("_fft_c2c", takes_complex=True)
def of_complex(t: Graph, x: ir.Value, axes: Sequence[int], normalization: int, forward: bool) -> ir.Value:
    """The transform of complex numbers, or the inverse one."""
    numbers = [axis_of(a, len(t.dims)) for a in axes]
    if not numbers:
        return x
    found = transform(t, x, "FFT" if forward else "IFFT", numbers, t.dims[numbers[-1]])
    return _times_power(t, found, product(t.dims[a] for a in numbers), (0 if forward else 2) - normalization)


def transform(t: Graph, x: ir.Value, kind: str, axes: Sequence[int], size: Expr) -> ir.Value:
    """A transform of one of StableHLO's kinds along any axes. IFFT and IRFFT are divided by the number of elements.

    size: of the last of the axes, of how many real numbers where there are any.
    """
    outer, inner = axes[:-_TOGETHER], axes[-_TOGETHER:]
    plain = {"RFFT": "FFT", "IRFFT": "IFFT"}.get(kind, kind)
    if outer and kind == "IRFFT":
        x = transform(t, x, plain, outer, dims_of(x)[outer[-1]])
    found = _along(t, x, kind, inner, size)
    if outer and kind != "IRFFT":
        found = transform(t, found, plain, outer, dims_of(x)[outer[-1]])
    return found


_TOGETHER = 3
"""StableHLO's transforms are along so many axes at most."""


def _along(t: Graph, x: ir.Value, kind: str, axes: Sequence[int], size: Expr) -> ir.Value:
    """A transform along a few axes, which are the last ones for it."""
    order = [*(a for a in range(len(dims_of(x))) if a not in axes), *axes]
    turned = t.transpose(x, order)
    lengths = (*dims_of(turned)[len(order) - len(axes) : -1], size)
    for length in lengths:
        if length.constant is None:
            some = t.compare("GE", t.size(length), t.constant(1, torch.int64))
            state(t, some, "a Fourier transform is along an axis without elements")
    dims = (*dims_of(turned)[:-1], size // 2 + 1 if kind == "RFFT" else size)
    found = _op(t, turned, kind, lengths, dims)
    return t.transpose(found, [order.index(a) for a in range(len(order))])


def _op(t: Graph, x: ir.Value, kind: str, lengths: Sequence[Expr], dims: Dims) -> ir.Value:
    """StableHLO's op, or our custom call where a length is a symbol."""
    real = t.dtype_of(x) if kind == "RFFT" else t.dtype_of(x).to_real()
    element = t.element(real if kind == "IRFFT" else real.to_complex())
    if all(n.constant is not None for n in lengths):
        type_ = ir.Attribute.parse(f"#stablehlo<fft_type {kind}>")
        return t.op("fft", [x], dims, element, fft_type=type_, fft_length=numbers_of(lengths))
    i64 = ir.IntegerType.get_signless(64)
    numbers: dict[str, ir.Attribute] = {
        "kind": ir.IntegerAttr.get(i64, KINDS.index(kind)), "rank": ir.IntegerAttr.get(i64, len(lengths))
    }  # fmt: skip
    attributes: dict[str, ir.Attribute] = {
        "call_target_name": ir.StringAttr.get(TARGET), "mhlo.backend_config": ir.DictAttr.get(numbers)
    }  # fmt: skip
    return t.op("custom_call", [x], dims, element, **attributes)


def _times_power(t: Graph, x: ir.Value, count: Expr, halves: int) -> ir.Value:
    """Elements times the power of `count` to half of an integer."""
    if halves == 0:
        return x
    factor = t.size(count, torch.float64)
    if halves % 2:
        factor = build.sqrt(factor)
    if halves < 0:
        factor = build.divide(t.constant(1, torch.float64), factor)
    kind = t.dtype.to_real()
    factor = t.operand(factor, kind)
    if not t.dtype.is_complex:
        return build.multiply(x, factor)
    return joined(t, *(build.multiply(part, factor) for part in parts(t, x)))


# ---- windows --------------------------------------------------------------------------------------------------------


@translates("unfold", "unfold_copy", takes_complex=True)
def windows(t: Graph, x: ir.Value, axis: int, size: Any, step: Any) -> ir.Value:
    """Windows along an axis, which may overlap, with their elements along a new last axis."""
    rank = len(dims_of(x))
    if not rank:
        return t.reshape(x, t.dims)
    number = axis_of(axis, rank)
    whole = dims_of(x)[number]
    check_not_negative(t, whole - t.dims[-1], f"windows of {t.dims[-1]} do not fit in {whole}, which {t.line} reads")
    dims = (t.dims[number], t.dims[-1])
    first = build.multiply(t.iota(dims, 0, torch.int64), t.operand(step, torch.int64, dims))
    places = t.reshape(build.add(first, t.iota(dims, 1, torch.int64)), (*dims, _ONE))
    found = gather_at(t, x, [number], places)
    return t.transpose(found, [*range(2, number + 2), 0, *range(number + 2, rank + 1), 1])
