# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The math library of GPUs: ops of the math dialect on f32 and f64, which become calls of NVIDIA's libdevice.

The errors are those that the CUDA programming guide gives for the functions without fast-math: at most 2 ulp for exp,
expm1, log, log1p, tanh, rsqrt, sin, cos and cbrt, 3 ulp for atan2, 4 ulp for tan and power on f32.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.element_types import constant_like
from shlo_disc.shape_dialect.mlir import arith, ir, math


def exp(x: ir.Value) -> ir.Value:
    """e^x."""
    return math.exp(x)


def fast_exp2(x: ir.Value) -> ir.Value:
    """2^x of an f32 in one instruction, `ex2.approx.ftz.f32`: off by at most 2^-22 of the result, and 0 below 2^-126.

    The context has the dialect `llvm`.
    """
    return _intrinsic("llvm.nvvm.ex2.approx.ftz.f", x.type, [x])


def rounded_pair(pair: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    """Two f32 as a vector of f16 or bf16, in one instruction, `cvt.rn`.

    The context has the dialect `llvm`.
    """
    name = "ff2f16x2" if isinstance(type_, ir.F16Type) else "ff2bf16x2"
    return _intrinsic(f"llvm.nvvm.{name}.rn", ir.VectorType.get([2], type_), pair[::-1])


def _intrinsic(name: str, result: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
    attributes: dict[str, ir.Attribute] = {
        "intrin": ir.StringAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }
    return ir.Operation.create(
        "llvm.call_intrinsic", results=[result], operands=list(operands), attributes=attributes
    ).result


def expm1(x: ir.Value) -> ir.Value:
    """e^x - 1, exact near zero."""
    return math.expm1(x)


def log(x: ir.Value) -> ir.Value:
    """The natural logarithm."""
    return math.log(x)


def log1p(x: ir.Value) -> ir.Value:
    """log(1 + x), exact near zero."""
    return math.log1p(x)


def tanh(x: ir.Value) -> ir.Value:
    """The hyperbolic tangent."""
    return math.tanh(x)


def logistic(x: ir.Value) -> ir.Value:
    """1 / (1 + e^-x). An e^-x that overflows gives 0, one that vanishes gives 1."""
    one = constant_like(x, 1.0)
    return arith.divf(one, arith.addf(one, math.exp(arith.negf(x))))


def sin(x: ir.Value) -> ir.Value:
    """The sine of an angle in radians."""
    return math.sin(x)


def cos(x: ir.Value) -> ir.Value:
    """The cosine of an angle in radians."""
    return math.cos(x)


def tan(x: ir.Value) -> ir.Value:
    """The tangent of an angle in radians."""
    return math.tan(x)


def cbrt(x: ir.Value) -> ir.Value:
    """The cube root, negative for negative x."""
    return math.cbrt(x)


def rsqrt(x: ir.Value) -> ir.Value:
    """1 / sqrt(x)."""
    return math.rsqrt(x)


def power(x: ir.Value, y: ir.Value) -> ir.Value:
    """x^y with the special cases of C's pow."""
    return math.powf(x, y)


def atan2(y: ir.Value, x: ir.Value) -> ir.Value:
    """The angle of the point (x, y), in radians."""
    return math.atan2(y, x)
