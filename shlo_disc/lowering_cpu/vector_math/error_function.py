# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""erf and erfc.

erf: x + x p(x**2) up to |x| = 1 (Remez: f32 degree 6, 2**-29.4; f64 degree 12, 2**-56). Above, for f32,
1 - e**(a q(a)) with q fitted to log(erfc(a)) / a (degree 6, 2**-30.7 of erf); for f64, 1 - erfc(a).
erfc: e**(-a**2) r(t) / (1 + 2 a), t = (a - 4) / (a + 4), after Shepherd and Laframboise, "Chebyshev approximation of
(1 + 2x) exp(x**2) erfc x"; r by Remez, degree 22, 2**-54. f32 erfc is
computed in f64 with r of degree 13, 2**-36.
"""

from __future__ import annotations

from collections.abc import Sequence

from .exponential import exp_lanes
from .lanes import Lanes, horner, where

_P_F32 = (0.12837916612625122, -0.3761262595653534, 0.11283578723669052, -0.026853347197175026, 0.005187162663787603,
          -0.0007997864740900695, 7.806973735569045e-05)  # fmt: skip
_P_F64 = (0.1283791670955126, -0.3761263890318375, 0.11283791670954858, -0.02686617064507293, 0.005223977624781199,
          -0.0008548326978760876, 0.00012055331037561224, -1.4925593522267307e-05, 1.6460973054757495e-06,
          -1.635002764487715e-07, 1.4657895466586955e-08, -1.13657237829784e-09, 5.945355272272795e-11)  # fmt: skip
_Q_F32 = (-1.128665566444397, -0.635082483291626, -0.10634992271661758, 0.023858798667788506, -0.003687916323542595,
          0.0003339188697282225, -1.2335597602941561e-05)  # fmt: skip
_R_F64 = (1.2329951186255526, -0.1396211168405625, 0.015379652102619023, 0.06809705425468887, -0.10103906603625576,
          0.09373283499850862, -0.06633036581348599, 0.03716751553438557, -0.016197734040911342, 0.0050319700117355615,
          -0.0007577734192968943, -0.00019925692056316246, 0.0001506223064562997, -2.4398236485223926e-05,
          -1.122399040092411e-05, 5.7069339102477986e-06, 2.977446322712442e-07, -8.201560300790207e-07,
          6.971168286629672e-08, 1.0378302093008709e-07, -1.4434254652046759e-08, -9.833394161347666e-09,
          7.741321062627309e-10)  # fmt: skip
_R_NARROW = (1.232995118641124, -0.13962111677283956, 0.015379648889148993, 0.06809704888378448, -0.10103895944172403,
             0.09373298122658684, -0.06633165369599348, 0.03716569298583338, -0.016190795867526482,
             0.005043094602820962, -0.0007740210618433282, -0.0002317626532142079, 0.00016019003951682443,
             1.3526535125787971e-05)  # fmt: skip
# Beyond these arguments erf rounds to 1 and erfc to 0.
_ERF_ONE = {False: 4.0, True: 6.0}
_ERFC_ZERO_F32, _ERFC_ZERO_F64 = 10.5, 28.0


def erf_lanes(x: Lanes) -> Lanes:
    """The error function."""
    near = x.fma(horner(x * x, _P_F64 if x.is_double else _P_F32), x)
    size = x.abs().at_most(_ERF_ONE[x.is_double])
    tail = _erfc_above_half(size, _R_F64) if x.is_double else exp_lanes(size * horner(size, _Q_F32))
    return where(x.abs().lt(1.0), near, (1.0 - tail).copysign(x))


def erfc_lanes(x: Lanes) -> Lanes:
    """1 - erf(x), accurate where it is small."""
    if x.is_double:
        return _erfc(x, _R_F64)
    return _erfc(x.to_f64().at_most(_ERFC_ZERO_F32).at_least(-_ERFC_ZERO_F32), _R_NARROW).to_f32()


def _erfc(x: Lanes, scaled: Sequence[float]) -> Lanes:
    near = 1.0 - x.fma(horner(x * x, _P_F64), x)
    tail = _erfc_above_half(x.abs().at_most(_ERFC_ZERO_F64), scaled)
    return where(x.abs().lt(0.5), near, where(x.lt(0.0), 2.0 - tail, tail))


def _erfc_above_half(a: Lanes, scaled: Sequence[float]) -> Lanes:
    """erfc(a) for f64 a in [0.4, 28]. The square is carried in two parts, as e**-square magnifies its error."""
    t = (a - 4.0) / (a + 4.0)
    square = a * a
    excess = a.fma(a, -square)
    return exp_lanes(-square, low=-excess) * (horner(t, scaled) / a.fma(2.0, 1.0))
