# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementary functions as inline vector code.

Every function takes an `ir.Value` of type f32, f64, or a 1-D vector of these with any number of lanes, builds ops of
arith, math (fma, absf, copysign, sqrt, floor, roundeven) and, for f64 sin, cos and tan, one scf.if and a
vector.reduction at the current insertion point, and returns a value of the same type. There are no calls and no tables
in memory. Subnormal arguments and results, signed zeros, infinities and NaN follow IEEE 754. `ULP` says how far a
result may be from the exact one. Narrower floats are to be extended to f32 by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.mlir import ir

from .accuracy import ULP
from .error_function import erf_lanes, erfc_lanes
from .exponential import exp_lanes, expm1_lanes, logistic_lanes
from .hyperbolic import acosh_lanes, asinh_lanes, atanh_lanes, cosh_lanes, sinh_lanes, tanh_lanes
from .inverse_trigonometric import acos_lanes, asin_lanes, atan2_lanes, atan_lanes
from .lanes import Lanes
from .logarithm import log1p_lanes, log2_lanes, log_lanes
from .powers import cbrt_lanes, power_lanes, rsqrt_lanes, sqrt_lanes
from .trigonometric import cos_lanes, sin_lanes, tan_lanes

__all__ = [
    "FUNCTIONS", "ULP", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf",
    "erfc", "exp", "expm1", "log", "log1p", "log2", "logistic", "power", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip


_F = TypeVar("_F", bound=Callable[..., ir.Value])


def _lanes(name: str, value: ir.Value) -> Lanes:
    kind = value.type
    if isinstance(kind, ir.VectorType) and (kind.rank != 1 or kind.scalable):
        raise CompilerError(f"vector_math.{name}: {kind} is not a 1-D vector of fixed length")
    lanes = Lanes(value)
    if not lanes.is_float:
        raise CompilerError(f"vector_math.{name}: {kind} is neither f32 nor f64 nor a vector of these")
    return lanes


def _unary(name: str, build: Callable[[Lanes], Lanes]) -> Callable[[ir.Value], ir.Value]:
    def function(x: ir.Value) -> ir.Value:
        return build(_lanes(name, x)).value

    return _named(function, name, build)


def _binary(name: str, build: Callable[[Lanes, Lanes], Lanes]) -> Callable[[ir.Value, ir.Value], ir.Value]:
    def function(x: ir.Value, y: ir.Value) -> ir.Value:
        if x.type != y.type:
            raise CompilerError(f"vector_math.{name}: operand types {x.type} and {y.type} differ")
        return build(_lanes(name, x), _lanes(name, y)).value

    return _named(function, name, build)


def _named(function: _F, name: str, build: Callable[..., Lanes]) -> _F:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = build.__doc__
    return function


exp = _unary("exp", exp_lanes)
expm1 = _unary("expm1", expm1_lanes)
logistic = _unary("logistic", logistic_lanes)
log = _unary("log", log_lanes)
log1p = _unary("log1p", log1p_lanes)
log2 = _unary("log2", log2_lanes)
tanh = _unary("tanh", tanh_lanes)
sinh = _unary("sinh", sinh_lanes)
cosh = _unary("cosh", cosh_lanes)
asinh = _unary("asinh", asinh_lanes)
acosh = _unary("acosh", acosh_lanes)
atanh = _unary("atanh", atanh_lanes)
erf = _unary("erf", erf_lanes)
erfc = _unary("erfc", erfc_lanes)
sin = _unary("sin", sin_lanes)
cos = _unary("cos", cos_lanes)
tan = _unary("tan", tan_lanes)
asin = _unary("asin", asin_lanes)
acos = _unary("acos", acos_lanes)
atan = _unary("atan", atan_lanes)
atan2 = _binary("atan2", atan2_lanes)
power = _binary("power", power_lanes)
cbrt = _unary("cbrt", cbrt_lanes)
sqrt = _unary("sqrt", sqrt_lanes)
rsqrt = _unary("rsqrt", rsqrt_lanes)

# Every function by name; `power` and `atan2` (of y and x, in this order) take two values.
FUNCTIONS: dict[str, Callable[..., ir.Value]] = {
    f.__name__: f
    for f in (exp, expm1, logistic, log, log1p, log2, tanh, sinh, cosh, asinh, acosh, atanh, erf, erfc, sin, cos, tan,
              asin, acos, atan, atan2, power, cbrt, sqrt, rsqrt)
}  # fmt: skip
