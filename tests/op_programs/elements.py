# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one op that computes each element by itself, from operands of several types."""

from __future__ import annotations

from shlo_disc.shape_dialect.dtypes import BY_MLIR
from tests.op_programs.program import ALIKE, Form, Program, binary, real_of, region, tensor, unary, without_xla


def clamp(t: str) -> Program:
    x = tensor(ALIKE, t)
    return Program(((ALIKE, t),) * 3, ((ALIKE, t),), f"%r0 = stablehlo.clamp %a0, %a1, %a2 : {x}")


def compare(t: str) -> Program:
    x = tensor(ALIKE, t)
    direction = "NE" if "complex" in t else "LT"
    body = f"%r0 = stablehlo.compare {direction}, %a0, %a1 : ({x}, {x}) -> {tensor(ALIKE, 'i1')}"
    return Program(((ALIKE, t),) * 2, ((ALIKE, "i1"),), body)


def is_finite(t: str) -> Program:
    """Booleans are its results."""
    operand = "f32" if t == "i1" else t
    body = f"%r0 = stablehlo.is_finite %a0 : ({tensor(ALIKE, operand)}) -> {tensor(ALIKE, 'i1')}"
    return Program(((ALIKE, operand),), ((ALIKE, "i1"),), body)


def convert(t: str) -> Program:
    """To it, and from it."""
    other = "complex<f64>" if "complex" in t else "f32"
    x, y = tensor(ALIKE, t), tensor(ALIKE, other)
    body = f"%r0 = stablehlo.convert %a0 : ({x}) -> {y}\n  %r1 = stablehlo.convert %a1 : ({y}) -> {x}"
    return Program(((ALIKE, t), (ALIKE, other)), ((ALIKE, other), (ALIKE, t)), body)


def select(t: str) -> Program:
    x, p = tensor(ALIKE, t), tensor(ALIKE, "i1")
    body = f"%r0 = stablehlo.select %a0, %a1, %a2 : {p}, {x}"
    return Program(((ALIKE, "i1"), (ALIKE, t), (ALIKE, t)), ((ALIKE, t),), body)


def bitcast(t: str) -> Program:
    bits = BY_MLIR[t].bits
    target = t if "complex" in t or bits == 6 else "i1" if bits == 1 else f"ui{bits}"
    body = f"%r0 = stablehlo.bitcast_convert %a0 : ({tensor(ALIKE, t)}) -> {tensor(ALIKE, target)}"
    return Program(((ALIKE, t),), ((ALIKE, target),), body)


def complex_of(t: str) -> Program:
    part = real_of(t)
    x, y = tensor(ALIKE, part), tensor(ALIKE, f"complex<{part}>")
    body = f"%r0 = stablehlo.complex %a0, %a1 : ({x}, {x}) -> {y}"
    return Program(((ALIKE, part),) * 2, ((ALIKE, f"complex<{part}>"),), body)


def part(op: str) -> Form:
    def made(t: str) -> Program:
        r = real_of(t)
        body = f"%r0 = stablehlo.{op} %a0 : ({tensor(ALIKE, t)}) -> {tensor(ALIKE, r)}"
        return Program(((ALIKE, t),), ((ALIKE, r),), body)

    return made


def mapped(t: str) -> Program:
    x = tensor(ALIKE, t)
    body = f'%r0 = "stablehlo.map"(%a0, %a1) <{{dimensions = array<i64: 0>}}> {region("add", t)} : ({x}, {x}) -> {x}'
    return Program(((ALIKE, t),) * 2, ((ALIKE, t),), body)


ROUGH = ("cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sine", "sqrt",
         "tan", "tanh")  # fmt: skip
EXACT = ("ceil", "floor", "round_nearest_afz", "round_nearest_even", "negate", "sign", "not", "count_leading_zeros",
         "popcnt")  # fmt: skip
ARITHMETIC = ("add", "maximum", "minimum", "subtract", "remainder", "and", "or", "xor", "shift_left",
              "shift_right_arithmetic", "shift_right_logical")  # fmt: skip

FORMS: dict[str, Form] = {
    **{op: unary(op, 64) for op in ROUGH},
    **{op: unary(op, 8 if op == "sign" else 0) for op in EXACT},
    "abs": unary("abs", 8, real_of),
    "is_finite": is_finite,
    "reduce_precision": unary("reduce_precision", 0, attributes=", format = e3m2"),
    **{op: binary(op) for op in ARITHMETIC},
    "multiply": binary("multiply", 8), "divide": binary("divide", 16), "atan2": binary("atan2", 64),
    "power": without_xla(binary("power", 2048), lambda t: t[0] in "iu"),
    "cbrt": without_xla(unary("cbrt", 64), lambda t: t.startswith("complex")),
    "clamp": clamp, "compare": compare, "convert": convert, "select": select, "bitcast_convert": bitcast,
    "complex": complex_of, "imag": part("imag"), "real": part("real"), "map": mapped,
}  # fmt: skip
