# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers: ops that make them and take them apart, and ops that are others of complex numbers than of reals.

Views such as `x.real` and `x.conj()` are values here. An op of complex numbers is translated only where it stands in
this file, by a function of its own or in the lists at the end.
"""

from __future__ import annotations

import math
from typing import Any

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from . import reductions, table
from .elementwise import signbit
from .graph import Graph, axes_of
from .random_numbers import normal, uniform
from .shapes import join, piece
from .table import take_complex, translates, translates_complex

_ZERO, _ONE, _TWO = (Expr.const(n) for n in (0, 1, 2))


def parts(t: Graph, z: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The real and the imaginary part of complex numbers."""
    element = t.element(t.dtype_of(z).to_real())
    return t.op("real", [z], dims_of(z), element), t.op("imag", [z], dims_of(z), element)


def joined(t: Graph, real: ir.Value, imaginary: ir.Value) -> ir.Value:
    """Complex numbers of two parts of one shape."""
    return t.op("complex", [real, imaginary], dims_of(real), t.element(t.dtype_of(real).to_complex()))


# ---- making them, and taking them apart -----------------------------------------------------------------------------


@translates("complex", takes_complex=True)
def complex_of(t: Graph, real: ir.Value, imaginary: ir.Value) -> ir.Value:
    """Complex numbers by their parts."""
    return joined(t, *(t.operand(v, t.dtype.to_real()) for v in (real, imaginary)))


@translates("polar", takes_complex=True)
def polar(t: Graph, size: ir.Value, angle: ir.Value) -> ir.Value:
    """Complex numbers by their magnitude and angle."""
    length, turn = (t.operand(v, t.dtype.to_real()) for v in (size, angle))
    cosine, sine = (t.pointwise(name, turn) for name in ("cosine", "sine"))
    return joined(t, build.multiply(length, cosine), build.multiply(length, sine))


@translates("real", takes_complex=True)
def real(t: Graph, x: ir.Value) -> ir.Value:
    """The real part; that of a real number is the number."""
    return parts(t, x)[0] if t.dtype_of(x).is_complex else x


@translates("imag", takes_complex=True)
def imaginary(t: Graph, z: ir.Value) -> ir.Value:
    """The imaginary part."""
    return parts(t, z)[1]


@translates("view_as_real", "view_as_real_copy", takes_complex=True)
def as_pairs(t: Graph, z: ir.Value) -> ir.Value:
    """The two parts along a new last axis."""
    dims = dims_of(z)
    columns = [t.reshape(part, (*dims, _ONE)) for part in parts(t, z)]
    return join(t, columns, len(dims), (*dims, _TWO))


@translates("view_as_complex", "view_as_complex_copy", takes_complex=True)
def of_pairs(t: Graph, x: ir.Value) -> ir.Value:
    """Complex numbers whose parts are along the last axis."""
    axis = len(t.dims)
    return joined(t, *(t.reshape(piece(t, x, axis, start, _ONE), t.dims) for start in (_ZERO, _ONE)))


_CONJUGATES = ("conj", "_conj", "_conj_copy", "conj_physical", "_conj_physical", "prims.conj_physical.default",
               "prims.conj.default")  # fmt: skip


@translates(*_CONJUGATES, takes_complex=True)
def conjugate(t: Graph, x: Any) -> ir.Value:
    """The imaginary part negated; a real number is its own conjugate."""
    value = t.operand(x, t.dtype)
    if not t.dtype.is_complex:
        return value
    first, second = parts(t, value)
    return joined(t, first, build.negate(second))


@translates("resolve_conj", "resolve_neg", takes_complex=True)
def resolved(t: Graph, x: ir.Value) -> ir.Value:
    """The tensor itself; no conjugation or negation is pending."""
    return x


@translates("_neg_view", "_neg_view_copy", takes_complex=True)
def negated(t: Graph, x: ir.Value) -> ir.Value:
    """-x."""
    return build.negate(x)


# ---- ops that are others of complex numbers than of reals -----------------------------------------------------------


@translates_complex("abs")
def absolute(t: Graph, z: ir.Value) -> ir.Value:
    """The distance from 0."""
    return t.op("abs", [z], dims_of(z), t.element(t.dtype))


@translates("angle", takes_complex=True)
def angle(t: Graph, x: ir.Value) -> ir.Value:
    """The angle of a complex number; of a real one 0 or pi, or NaN."""
    if t.dtype_of(x).is_complex:
        first, second = parts(t, x)
        return build.atan2(second, first)
    value = t.convert(x, t.dtype)
    zero, half_turn = (t.constant(n, t.dtype, t.dims) for n in (0, math.pi))
    found = t.select(t.compare("LT", value, zero), half_turn, zero)
    return t.select(t.compare("NE", value, value), value, found) if t.dtype_of(x).is_floating_point else found


@translates_complex("sgn")
def direction(t: Graph, z: ir.Value) -> ir.Value:
    """z / |z|; 0 of 0."""
    return build.sign(z)


@translates_complex("isinf")
def isinf(t: Graph, z: ir.Value) -> ir.Value:
    """Tells whether one of the parts is infinite."""
    kind = t.dtype_of(z).to_real()
    infinity = t.constant(math.inf, kind, t.dims)
    return build.or_(*(t.compare("EQ", build.abs(part), infinity) for part in parts(t, z)))


@translates_complex("log2")
def log2(t: Graph, z: ir.Value) -> ir.Value:
    """The logarithm of base 2."""
    return _logarithm(t, z, 2)


@translates_complex("log10")
def log10(t: Graph, z: ir.Value) -> ir.Value:
    """The logarithm of base 10."""
    return _logarithm(t, z, 10)


def _logarithm(t: Graph, z: ir.Value, base: int) -> ir.Value:
    found = parts(t, build.log(z))
    divisor = t.constant(math.log(base), t.dtype.to_real(), t.dims)
    return joined(t, *(build.divide(part, divisor) for part in found))


# ---- trigonometric and hyperbolic functions: zeros stay zeros, and their signs say the side of a branch cut ----------


@translates_complex("sin")
def sin(t: Graph, z: ir.Value) -> ir.Value:
    """The sine, exactly imaginary on the imaginary axis."""
    across = parts(t, z)[0]
    first, second = parts(t, build.sine(z))
    return joined(t, _zero_where_zero(t, across, first), second)


@translates_complex("cos")
def cos(t: Graph, z: ir.Value) -> ir.Value:
    """The cosine, exactly real on the imaginary axis."""
    across = parts(t, z)[0]
    first, second = parts(t, build.cosine(z))
    return joined(t, first, _zero_where_zero(t, across, second))


def _zero_where_zero(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """y, but x where x is 0."""
    return t.select(t.compare("EQ", x, t.constant(0, t.dtype_of(x), dims_of(x))), x, y)


@translates_complex("sinh")
def sinh(t: Graph, z: ir.Value) -> ir.Value:
    """The hyperbolic sine: of x + i y it is the sine of y + i x with its parts exchanged."""
    first, second = parts(t, z)
    found = parts(t, sin(t, joined(t, second, first)))
    return joined(t, found[1], found[0])


@translates_complex("cosh")
def cosh(t: Graph, z: ir.Value) -> ir.Value:
    """The hyperbolic cosine, cos(i z)."""
    first, second = parts(t, z)
    return cos(t, joined(t, build.negate(second), first))


@translates_complex("asin", "asinh")
def arcsine(t: Graph, z: ir.Value) -> ir.Value:
    """The inverse of the sine, or of the hyperbolic one."""
    found = parts(t, _inverse(t, z))
    return joined(t, *(_with_sign(t, part, given) for part, given in zip(found, parts(t, z), strict=True)))


@translates_complex("acos", "acosh")
def arccosine(t: Graph, z: ir.Value) -> ir.Value:
    """The inverse of the cosine, or of the hyperbolic one."""
    first, second = parts(t, _inverse(t, z))
    given = parts(t, z)[1]
    is_plain = str(t.node.target) == "aten.acos.default"
    return joined(t, first, _with_sign(t, second, build.negate(given) if is_plain else given))


def _inverse(t: Graph, z: ir.Value) -> ir.Value:
    return t.pointwise(f"chlo.{table.name_of(t.node.target).partition('.')[0]}", z)


def _with_sign(t: Graph, x: ir.Value, sign: ir.Value) -> ir.Value:
    """|x| with the sign of another number."""
    size = build.abs(x)
    return t.select(signbit(t, sign), build.negate(size), size)


# ---- powers and statistics ------------------------------------------------------------------------------------------


@translates_complex("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(t: Graph, x: Any, y: Any) -> ir.Value:
    """x to the power of y; small whole powers are products."""
    if not isinstance(y, int | float) or y not in _POWERS:
        return build.power(t.operand(x, t.dtype), t.operand(y, t.dtype))
    one = t.constant(1, t.dtype, t.dims)
    if y == 0:
        return one
    base = found = t.operand(x, t.dtype)
    for _ in range(int(abs(y)) - 1):
        found = build.multiply(found, base)
    return found if y > 0 else build.divide(one, found)


_POWERS = (0, 1, 2, 3, -1, -2)


def _moments(t: Graph, z: ir.Value, axes: Any, correction: Any) -> tuple[ir.Value, ir.Value]:
    """The variances of both parts, added, and the mean, in the sizes of the result."""
    numbers = axes_of(axes, len(dims_of(z)))
    (first, real_mean), (second, imaginary_mean) = (
        reductions.moments(t, part, numbers, 1 if correction is None else correction) for part in parts(t, z)
    )
    both = (build.add(first, second), joined(t, real_mean, imaginary_mean))
    return t.reshape(both[0], t.dims), t.reshape(both[1], t.dims)


@translates_complex("var.correction")
def variance(t: Graph, z: ir.Value, axes: Any = None, correction: Any = None, *_: Any) -> ir.Value:
    """The variances of the parts, added."""
    return _moments(t, z, axes, correction)[0]


@translates_complex("std.correction")
def deviation(t: Graph, z: ir.Value, axes: Any = None, correction: Any = None, *_: Any) -> ir.Value:
    """The square root of the variance."""
    return build.sqrt(variance(t, z, axes, correction))


@translates_complex("var_mean.correction")
def variance_and_mean(t: Graph, z: ir.Value, axes: Any = None, correction: Any = None, *_: Any) -> tuple[ir.Value, ...]:
    """Variance and mean."""
    return _moments(t, z, axes, correction)


@translates_complex("rand", "rand_like")
def rand(t: Graph, *_: Any) -> ir.Value:
    """Both parts uniform from 0 to 1."""
    return joined(t, *(uniform(t, t.dtype.to_real()) for _ in range(2)))


@translates_complex("randn", "randn_like")
def randn(t: Graph, *_: Any) -> ir.Value:
    """Both parts normal of mean 0 and variance 1/2."""
    kind = t.dtype.to_real()
    deviation = t.constant(math.sqrt(0.5), kind, t.dims)
    return joined(t, *(build.multiply(normal(t, kind), deviation) for _ in range(2)))


# ---- ops whose translation holds for complex numbers ----------------------------------------------------------------

take_complex(
    "exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "tan", "tanh", "atan", "atanh", "sigmoid", "neg",
    "reciprocal", "isnan", "logical_not", "logical_and", "logical_or", "logical_xor", "add.Tensor", "add.Scalar",
    "sub.Tensor", "sub.Scalar", "rsub.Tensor", "rsub.Scalar", "mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar",
    "true_divide.Tensor", "true_divide.Scalar", "eq.Tensor", "eq.Scalar", "ne.Tensor", "ne.Scalar", "where.self",
    "where.ScalarOther", "where.ScalarSelf",
    "where.Scalar", "clone", "alias", "alias_copy", "detach", "detach_copy", "lift_fresh", "lift_fresh_copy",
    "contiguous", "prims.copy_strided.default", "_to_copy", "to.dtype", "prims.convert_element_type.default",
)  # fmt: skip
take_complex(
    "full", "full_like", "new_full", "scalar_tensor", "zeros", "zeros_like", "new_zeros", "empty.memory_format",
    "empty_like", "new_empty", "empty_permuted", "new_empty_strided", "empty_strided", "ones", "ones_like", "new_ones",
    "fill.Scalar", "fill.Tensor", "eye", "eye.m", "tril", "triu", "nonzero",
)  # fmt: skip
take_complex(
    "view", "_unsafe_view", "reshape", "squeeze", "squeeze.dim", "squeeze.dims", "unsqueeze", "view_copy",
    "squeeze_copy", "unsqueeze_copy", "flatten.using_ints", "unflatten.int", "permute", "permute_copy", "t", "numpy_T",
    "transpose.int", "expand", "expand_copy", "broadcast_to", "copy", "slice.Tensor", "slice_copy.Tensor", "narrow",
    "select.int", "select_copy.int", "split_with_sizes", "split_with_sizes_copy", "split.Tensor", "split_copy.Tensor",
    "chunk", "unbind.int", "unbind_copy.int", "cat", "stack", "constant_pad_nd", "repeat", "flip", "slice_scatter",
    "select_scatter", "diagonal", "diagonal_copy", "diagonal_scatter", "as_strided", "as_strided_scatter",
    "prims.as_strided_scatter.default",
)  # fmt: skip
take_complex(
    "index_select", "embedding", "gather", "index.Tensor", "_unsafe_index.Tensor", "masked_select", "masked_scatter",
    "masked_fill.Scalar", "masked_fill.Tensor", "index_put", "_unsafe_index_put", "scatter.src", "scatter.value",
    "scatter_add",
)  # fmt: skip
take_complex(
    "sum", "sum.dim_IntList", "mean", "mean.dim", "prod", "prod.dim_int", "any", "any.dim", "any.dims", "all",
    "all.dim", "all.dims", "cumsum", "cumprod", "mm", "dot", "mv", "bmm", "addmm", "addmv", "baddbmm", "addbmm",
    "linear", "matmul", "convolution",
)  # fmt: skip
