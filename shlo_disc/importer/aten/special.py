# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gamma functions of CHLO, Bessel functions by Chebyshev series, and greatest common divisors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir

from .graph import Graph, working
from .loops import repeated_while
from .table import add, translates

# ---- functions of CHLO ----------------------------------------------------------------------------------------------


@translates("digamma", "prims.digamma")
def digamma(t: Graph, x: ir.Value) -> ir.Value:
    """The derivative of the logarithm of the gamma function."""
    own = t.convert(x, working(t.dtype))
    kind, dims = t.dtype_of(own), dims_of(own)
    found = t.pointwise("chlo.digamma", own)
    zero = t.constant(0, kind, dims)
    ends = t.pointwise("divide", t.constant(-1, kind, dims), own)  # an infinity of the other sign at both zeros
    return t.convert(t.select(t.compare("EQ", own, zero), ends, found), t.dtype)


@translates("special_zeta", "special_zeta.other_scalar", "special_zeta.self_scalar")
def zeta(t: Graph, x: Any, y: Any) -> ir.Value:
    """The Hurwitz zeta function."""
    kind = working(t.dtype)
    return t.convert(t.pointwise("chlo.zeta", t.operand(x, kind), t.operand(y, kind)), t.dtype)


@translates("polygamma")
def polygamma(t: Graph, order: int, x: ir.Value) -> ir.Value:
    """A derivative of the digamma function, by the zeta function."""
    if order == 0:
        return digamma(t, x)
    kind = working(t.dtype)
    own = t.convert(x, kind)
    dims = dims_of(own)
    factor = t.constant((1 if order % 2 else -1) * math.factorial(order), kind, dims)
    found = t.pointwise("chlo.zeta", t.constant(order + 1, kind, dims), own)
    return t.convert(build.multiply(factor, found), t.dtype)


@translates("nextafter")
def following(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """The number after x in the direction of y."""
    return t.pointwise("chlo.next_after", t.operand(x, t.dtype), t.operand(y, t.dtype))


# ---- Bessel functions -----------------------------------------------------------------------------------------------


def _series(t: Graph, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """A Chebyshev series, whose coefficients begin with that of the highest degree (Cephes' `chbevl`)."""
    kind, dims = t.dtype_of(x), dims_of(x)
    zero = t.constant(0, kind, dims)
    last, before, now = zero, zero, t.constant(coefficients[0], kind, dims)
    for number in coefficients[1:]:
        last, before = before, now
        now = build.add(build.subtract(build.multiply(x, before), last), t.constant(number, kind, dims))
    return build.multiply(t.constant(0.5, kind, dims), build.subtract(now, last))


def _bessel(small: Sequence[float], large: Sequence[float], is_odd: bool, is_scaled: bool) -> Callable[..., ir.Value]:
    """A modified Bessel function of the first kind, by one series up to 8 and one beyond, as in PyTorch."""

    def translate(t: Graph, x: ir.Value) -> ir.Value:
        kind = working(t.dtype)
        own = t.convert(x, kind)
        dims = dims_of(own)

        def number(value: float) -> ir.Value:
            return t.constant(value, kind, dims)

        size = build.abs(own)
        low = _series(t, build.subtract(build.divide(size, number(2)), number(2)), small)
        low = build.multiply(low, size) if is_odd else low
        high = _series(t, build.subtract(build.divide(number(32), size), number(2)), large)
        high = build.divide(high, build.sqrt(size))
        found = t.select(t.compare("LE", size, number(8)), low, high)
        if not is_scaled:
            found = build.multiply(build.exponential(size), found)
        if is_odd:
            found = t.select(t.compare("LT", own, number(0)), build.negate(found), found)
        return t.convert(found, t.dtype)

    return translate


_I0_SMALL = (
    -4.4153416464793395e-18, 3.3307945188222384e-17, -2.431279846547955e-16, 1.715391285555133e-15,
    -1.1685332877993451e-14, 7.676185498604936e-14, -4.856446783111929e-13, 2.95505266312964e-12,
    -1.726826291441556e-11, 9.675809035373237e-11, -5.189795601635263e-10, 2.6598237246823866e-09,
    -1.300025009986248e-08, 6.046995022541919e-08, -2.670793853940612e-07, 1.1173875391201037e-06,
    -4.4167383584587505e-06, 1.6448448070728896e-05, -5.754195010082104e-05, 0.00018850288509584165,
    -0.0005763755745385824, 0.0016394756169413357, -0.004324309995050576, 0.010546460394594998, -0.02373741480589947,
    0.04930528423967071, -0.09490109704804764, 0.17162090152220877, -0.3046826723431984, 0.6767952744094761,
)  # fmt: skip
_I0_LARGE = (
    -7.233180487874754e-18, -4.830504485944182e-18, 4.46562142029676e-17, 3.461222867697461e-17,
    -2.8276239805165836e-16, -3.425485619677219e-16, 1.7725601330565263e-15, 3.8116806693526224e-15,
    -9.554846698828307e-15, -4.150569347287222e-14, 1.54008621752141e-14, 3.8527783827421426e-13,
    7.180124451383666e-13, -1.7941785315068062e-12, -1.3215811840447713e-11, -3.1499165279632416e-11,
    1.1889147107846439e-11, 4.94060238822497e-10, 3.3962320257083865e-09, 2.266668990498178e-08,
    2.0489185894690638e-07, 2.8913705208347567e-06, 6.889758346916825e-05, 0.0033691164782556943, 0.8044904110141088,
)  # fmt: skip
_I1_SMALL = (
    2.7779141127610464e-18, -2.111421214358166e-17, 1.5536319577362005e-16, -1.1055969477353862e-15,
    7.600684294735408e-15, -5.042185504727912e-14, 3.223793365945575e-13, -1.9839743977649436e-12,
    1.1736186298890901e-11, -6.663489723502027e-11, 3.625590281552117e-10, -1.8872497517228294e-09,
    9.381537386495773e-09, -4.445059128796328e-08, 2.0032947535521353e-07, -8.568720264695455e-07,
    3.4702513081376785e-06, -1.3273163656039436e-05, 4.781565107550054e-05, -0.00016176081582589674,
    0.0005122859561685758, -0.0015135724506312532, 0.004156422944312888, -0.010564084894626197, 0.024726449030626516,
    -0.05294598120809499, 0.1026436586898471, -0.17641651835783406, 0.25258718644363365,
)  # fmt: skip
_I1_LARGE = (
    7.517296310842105e-18, 4.414348323071708e-18, -4.6503053684893586e-17, -3.209525921993424e-17,
    2.96262899764595e-16, 3.3082023109209285e-16, -1.8803547755107825e-15, -3.8144030724370075e-15,
    1.0420276984128802e-14, 4.272440016711951e-14, -2.1015418427726643e-14, -4.0835511110921974e-13,
    -7.198551776245908e-13, 2.0356285441470896e-12, 1.4125807436613782e-11, 3.2526035830154884e-11,
    -1.8974958123505413e-11, -5.589743462196584e-10, -3.835380385964237e-09, -2.6314688468895196e-08,
    -2.512236237870209e-07, -3.882564808877691e-06, -0.00011058893876262371, -0.009761097491361469, 0.7785762350182801,
)  # fmt: skip

_I0, _I1 = (_I0_SMALL, _I0_LARGE, False), (_I1_SMALL, _I1_LARGE, True)
for _name, _parts, _is_scaled in (
    ("i0", _I0, False), ("special_i0e", _I0, True), ("special_i1", _I1, False), ("special_i1e", _I1, True),
    ("special_modified_bessel_i0", _I0, False), ("special_modified_bessel_i1", _I1, False),
):  # fmt: skip
    add(_name, _bessel(_parts[0], _parts[1], _parts[2], _is_scaled))


# ---- integers -------------------------------------------------------------------------------------------------------


@translates("gcd")
def common_divisor(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """The greatest common divisor, by Euclid's algorithm for all elements at once."""
    values = [build.abs(v) if t.dtype.is_signed else v for v in (t.operand(n, t.dtype) for n in (x, y))]

    def is_left(small: ir.Value, _: ir.Value) -> ir.Value:
        rest = t.compare("NE", small, t.constant(0, t.dtype, t.dims))
        return t.reduce([rest], [t.constant(False, torch.bool)], range(len(t.dims)), "or")[0] if t.dims else rest

    def step(small: ir.Value, large: ir.Value) -> list[ir.Value]:
        zero, one = (t.constant(n, t.dtype, t.dims) for n in (0, 1))
        is_done = t.compare("EQ", small, zero)
        rest = build.remainder(large, t.select(is_done, one, small))
        return [t.select(is_done, zero, rest), t.select(is_done, large, small)]

    return repeated_while(values, is_left, step)[1]
