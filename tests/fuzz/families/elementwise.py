# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ops: for each, the range and error of its result from those of its operands."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.fuzz.builder import DTYPES, FLOATS, INTEGERS, Builder, array
from tests.fuzz.program import Printer, Value
from tests.fuzz.ranges import WILD, Range, full, integer, is_float, rounded

Unary = Callable[[str, Range], Range | None]
Binary = Callable[[str, Range, Range], Range | None]

# ---- one operand ----------------------------------------------------------------------------------------------------


def lipschitz(least: float, largest: float, slope: Callable[[float], float], value: Callable[[float], float]) -> Unary:
    """A monotone function on [least, largest] with errors multiplied by at most `slope(smallest magnitude)`."""

    def rule(dtype: str, x: Range) -> Range | None:
        if x.wild or x.lo < least or x.hi > largest:
            return None
        ends = sorted((value(x.lo), value(x.hi)))
        return rounded(dtype, ends[0], ends[1], None, slope(x.least) * x.error * 1.1, ulps=4)

    return rule


def bounded(dtype: str, x: Range) -> Range | None:
    """A function to [-1, 1] of slope at most 1."""
    return None if x.wild or x.most > 1000 else rounded(dtype, -1, 1, None, x.error, ulps=4)


def exponential(shift: float, dtype: str, x: Range) -> Range | None:
    if x.wild or x.hi > 4 or x.lo < -50:
        return None
    return rounded(dtype, math.exp(x.lo) - shift, math.exp(x.hi) - shift, None, 1.2 * math.exp(x.hi) * x.error, ulps=4)


def negate(dtype: str, x: Range) -> Range | None:
    if not is_float(dtype):
        return integer(dtype, -x.hi, -x.lo)
    return Range(-x.hi, -x.lo, x.step, x.error)


def magnitude(dtype: str, x: Range) -> Range | None:
    if not is_float(dtype):
        return integer(dtype, x.least, x.most)
    return x if x.wild else Range(x.least, x.most, x.step, x.error)


def sign(dtype: str, x: Range) -> Range | None:
    return Range(-1, 1) if x.exact and not x.wild else None


def to_integer(dtype: str, x: Range) -> Range | None:
    """floor, ceil and rounding; not continuous."""
    return Range(math.floor(x.lo), math.ceil(x.hi)) if x.exact and not x.wild else None


def reciprocal_root(dtype: str, x: Range) -> Range | None:
    if x.wild or x.lo < 2**-6:
        return None
    return rounded(dtype, x.hi**-0.5, x.lo**-0.5, None, 0.6 * x.lo**-1.5 * x.error, ulps=4)


def steep(least: float) -> Callable[[float], float]:
    """The slope 1/x, at magnitudes of at least x."""
    return lambda x: 1 / max(x, least)


UNARY_FLOAT: dict[str, Unary] = {
    "abs": magnitude, "ceil": to_integer, "cosine": bounded, "sine": bounded, "floor": to_integer, "negate": negate,
    "exponential": functools.partial(exponential, 0), "exponential_minus_one": functools.partial(exponential, 1),
    "log": lipschitz(2**-6, 1e4, steep(2**-6), lambda x: math.log(x)),
    "log_plus_one": lipschitz(-0.75, 1e4, lambda _: 4, math.log1p),
    "logistic": lipschitz(-1000, 1000, lambda _: 1, lambda x: 0.5 + 0.5 * math.tanh(x / 2)),
    "tanh": lipschitz(-1000, 1000, lambda _: 1, math.tanh),
    "tan": lipschitz(-1.2, 1.2, lambda _: 8, math.tan),
    "sqrt": lipschitz(2**-6, 1e5, steep(2**-6), math.sqrt),
    "cbrt": lipschitz(2**-6, 1e5, steep(2**-6), lambda x: x ** (1 / 3)),
    "rsqrt": reciprocal_root, "round_nearest_afz": to_integer, "round_nearest_even": to_integer, "sign": sign,
}  # fmt: skip

UNARY_INTEGER: dict[str, Unary] = {
    "abs": magnitude,
    "sign": sign,
    "negate": negate,
    "not": lambda dtype, x: full(dtype),
    "popcnt": lambda dtype, x: Range(0, int(dtype.lstrip("ui"))),
    "count_leading_zeros": lambda dtype, x: Range(0, int(dtype.lstrip("ui"))),
}

SIGNED_ONLY = {"abs", "sign"}

# ---- two operands ---------------------------------------------------------------------------------------------------


def corners(function: Callable[[float, float], float], x: Range, y: Range) -> tuple[float, float]:
    """The range of a function that is monotone in each operand."""
    values = [function(a, b) for a in (x.lo, x.hi) for b in (y.lo, y.hi)]
    return min(values), max(values)


def arithmetic(function: Callable[[float, float], float], dtype: str, x: Range, y: Range) -> Range | None:
    """add and subtract."""
    if x.wild or y.wild:
        return None
    lo, hi = corners(function, x, y)
    if not is_float(dtype):
        return integer(dtype, lo, hi)
    step = None if x.step is None or y.step is None else max(x.step, y.step)
    return rounded(dtype, lo, hi, step, x.error + y.error)


def multiply(dtype: str, x: Range, y: Range) -> Range | None:
    if x.wild or y.wild:
        return None
    lo, hi = corners(lambda a, b: a * b, x, y)
    if not is_float(dtype):
        return integer(dtype, lo, hi)
    step = None if x.step is None or y.step is None else x.step + y.step
    return rounded(dtype, lo, hi, step, x.error * y.most + y.error * x.most + x.error * y.error)


def divide(dtype: str, x: Range, y: Range) -> Range | None:
    if x.wild or y.wild or y.least == 0:
        return None
    if not is_float(dtype):
        return integer(dtype, -x.most, x.most) if y.lo > 0 else None
    if y.least - y.error < 2**-6:
        return None
    lo, hi = corners(lambda a, b: a / b, x, y)
    error = x.error / y.least + 1.1 * x.most * y.error / (y.least * (y.least - y.error))
    return rounded(dtype, lo, hi, None, error, ulps=3)


def remainder(dtype: str, x: Range, y: Range) -> Range | None:
    if x.wild or y.wild or y.lo <= 0 or not (x.exact and y.exact):
        return None
    lo, hi = max(x.lo, -y.hi) if x.lo < 0 else 0, min(x.hi, y.hi) if x.hi > 0 else 0
    if not is_float(dtype):
        return integer(dtype, lo, hi)
    return None if x.step is None or y.step is None else Range(lo, hi, max(x.step, y.step))


def choose(function: Callable[[float, float], float], dtype: str, x: Range, y: Range) -> Range | None:
    """maximum and minimum."""
    if x.wild or y.wild:
        return WILD if x.exact and y.exact else None
    step = None if x.step is None or y.step is None else max(x.step, y.step)
    return Range(function(x.lo, y.lo), function(x.hi, y.hi), step, max(x.error, y.error))


def power(dtype: str, x: Range, y: Range) -> Range | None:
    if x.wild or y.wild:
        return None
    if not is_float(dtype):
        return full(dtype) if y.lo >= 0 and y.hi <= 9 else None
    if x.lo < 0.25 or x.hi > 4 or y.most > 3:
        return None
    most = max(1.0, x.hi**y.most, x.lo**-y.most)
    return rounded(dtype, 0, most, None, 800 * x.error + 90 * y.error, ulps=8)


def angle(dtype: str, y: Range, x: Range) -> Range | None:
    if x.wild or y.wild or x.lo < 2**-4:
        return None
    return rounded(dtype, -1.6, 1.6, None, (y.error + x.error) / x.lo, ulps=4)


BINARY: dict[str, Binary] = {
    "add": functools.partial(arithmetic, lambda a, b: a + b),
    "subtract": functools.partial(arithmetic, lambda a, b: a - b),
    "multiply": multiply, "divide": divide, "remainder": remainder, "power": power,
    "maximum": functools.partial(choose, max), "minimum": functools.partial(choose, min),
}  # fmt: skip
BITWISE = ("and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical")

# ---- generators -----------------------------------------------------------------------------------------------------


def _dtypes(op: str) -> tuple[str, ...]:
    signed = [d for d in INTEGERS if not d.startswith("u")]
    integers = [] if op not in UNARY_INTEGER else signed if op in SIGNED_ONLY else list(INTEGERS)
    floats = list(FLOATS) if op in UNARY_FLOAT else []
    return (*floats, *integers, *(["i1"] if op == "not" else []))


_KEEP_SIGN = {"broadcast_in_dim", "convert", "dynamic_broadcast_in_dim", "dynamic_reshape", "reshape", "transpose"}


def is_wrapping_square(b: Builder, value: Value) -> bool:
    """Tells whether an integer x*x may wrap around. XLA takes it for non-negative all the same and drops its abs."""
    step = next((s for s in b.steps if value in s.results), None)
    if step is None:
        return False
    if step.op == "multiply":
        return step.operands[0] is step.operands[1] and not is_float(value.dtype) and value.range == full(value.dtype)
    return step.op in _KEEP_SIGN and is_wrapping_square(b, step.operands[0])


def unary(op: str, b: Builder) -> bool:
    """Any op of one operand and one dtype."""

    def rule(value: Value) -> Range | None:
        if op == "abs" and is_wrapping_square(b, value):
            return None
        rules = UNARY_FLOAT if is_float(value.dtype) else UNARY_INTEGER
        return rules[op](value.dtype, value.range)

    x = b.pick(lambda v: rule(v) is not None, _dtypes(op))
    if x.dtype == "i1":
        return b.add(op, [x], "i1", x.dims, Range(0, 1))
    found = rule(x)
    if found is None:
        x = b.argument(x.dtype, x.dims, Range(0.5, 1, 3))
        found = rule(x)
    return found is not None and b.add(op, [x], x.dtype, x.dims, found)


_MILD = {"divide": Range(1, 4), "remainder": Range(1, 9), "power": Range(0.5, 2, 1), "atan2": Range(0.5, 4, 1)}


def binary(op: str, b: Builder) -> bool:
    """Any op of two operands of one dtype."""
    rule = angle if op == "atan2" else BINARY[op]
    bools = ["i1"] if op in ("add", "multiply", "maximum", "minimum") else []
    dtypes = FLOATS if op == "atan2" else (*FLOATS, *FLOATS, *INTEGERS, *bools)
    x = b.pick(lambda v: not v.range.wild or op in ("maximum", "minimum"), dtypes)
    mild = _MILD.get(op) if is_float(x.dtype) else {"divide": Range(1, 5), "remainder": Range(1, 9),
                                                    "power": Range(0, 5)}.get(op)  # fmt: skip
    if op == "add" and x.dtype == "i1":
        y = b.argument("i1", x.dims)  # XLA folds a sum of two constants that are true to false
    else:
        y = b.like(x, lambda v: rule(x.dtype, x.range, v.range) is not None, mild)
    found = rule(x.dtype, x.range, y.range)
    return found is not None and b.add(op, [x, y], x.dtype, x.dims, found)


def bitwise(op: str, b: Builder) -> bool:
    """and, or, xor on integers and booleans; shifts, by amounts of any size."""
    shift = op.startswith("shift")
    x = b.pick(lambda v: True, INTEGERS if shift else (*INTEGERS, "i1", "i1"))
    y = b.like(x, range_=Range(0, 7) if shift and b.rng.random() < 0.7 else None)
    return b.add(op, [x, y], x.dtype, x.dims, full(x.dtype))


def compare(b: Builder) -> bool:
    """All directions; NaN included."""
    x = b.pick(lambda v: v.range.exact)
    if not x.range.exact:
        return False
    y = b.like(x, lambda v: v.range.exact)
    kind = "FLOAT" if is_float(x.dtype) else "UNSIGNED" if x.dtype[0] == "u" or x.dtype == "i1" else "SIGNED"
    direction = b.rng.choice(("LT", "LE", "GT", "GE", "EQ", "NE"))
    attributes = (f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
                  f"compare_type = #stablehlo<comparison_type {kind}>")  # fmt: skip
    return b.add("compare", [x, y], "i1", x.dims, Range(0, 1), attributes)


def select(b: Builder) -> bool:
    """With a predicate of the same shape, or a scalar one."""
    x = b.pick()
    y = b.like(x)
    dims = () if b.rng.random() < 0.3 else x.dims
    found = [v for v in b.pool if v.dtype == "i1" and v.dims == dims]
    p = b.rng.choice(found) if found else b.argument("i1", dims)
    return b.add("select", [p, x, y], x.dtype, x.dims, union(x.range, y.range))


def union(x: Range, y: Range) -> Range:
    """The range of elements of either."""
    step = None if x.step is None or y.step is None else max(x.step, y.step)
    return Range(min(x.lo, y.lo), max(x.hi, y.hi), step, max(x.error, y.error))


def clamp(b: Builder) -> bool:
    """With bounds of the same shape, or scalars."""
    x = b.pick(lambda v: not v.range.wild, (*FLOATS, *INTEGERS))
    if x.range.wild:
        return False
    dims = x.dims if b.rng.random() < 0.5 else ()
    low = b.argument(x.dtype, dims, Range(0, 1))
    high = b.argument(x.dtype, dims, Range(1, 3))
    step = None if x.range.step is None else max(x.range.step, 0)
    return b.add("clamp", [low, x, high], x.dtype, x.dims, Range(0, 3, step, x.range.error))


def is_finite(b: Builder) -> bool:
    """On NaN and infinities too."""
    x = b.pick(lambda v: v.range.exact, FLOATS)
    return x.range.exact and b.add("is_finite", [x], "i1", x.dims, Range(0, 1))


def convert(b: Builder) -> bool:
    """Between any two dtypes; to integers only what is exact and fits."""
    x = b.pick(lambda v: not v.range.wild)
    to = b.rng.choice(DTYPES)
    found = converted(x, to)
    return found is not None and b.add("convert", [x], to, x.dims, found)


def converted(x: Value, to: str) -> Range | None:
    """The range of `x` as another dtype; None when that is not defined, or not for certain."""
    r = x.range
    if r.wild:
        return None
    if is_float(to):
        return rounded(to, r.lo, r.hi, r.step if is_float(x.dtype) else 0, r.error)
    if not is_float(x.dtype):
        return Range(0, 1) if to == "i1" else integer(to, r.lo, r.hi)
    if not r.exact:
        return None
    if to == "i1":
        return Range(0, 1)
    whole = Range(math.trunc(r.lo), math.trunc(r.hi))
    limits = full(to)
    return whole if limits.lo <= whole.lo and whole.hi <= limits.hi else None


_BITS = {"f32": ("i32", "ui32"), "f64": ("i64", "ui64"), "f16": ("i16", "ui16"), "bf16": ("i16", "ui16"),
         "i32": ("ui32",), "ui32": ("i32",), "i64": ("ui64",), "i16": ("ui16",), "ui8": ("i8",),
         "i8": ("ui8",)}  # fmt: skip


def bitcast_convert(b: Builder) -> bool:
    """To integers of the same width; of floats only those that are never zero, for the sign of zero is free."""
    x = b.pick(lambda v: not is_float(v.dtype) or (v.range.exact and v.range.least > 0), tuple(_BITS))
    if not is_float(x.dtype) and b.rng.random() < 0.4:
        return regrouped_bits(x, b)
    if is_float(x.dtype) and not (x.range.exact and x.range.least > 0):
        return False
    to = b.rng.choice(_BITS[x.dtype])
    return b.add("bitcast_convert", [x], to, x.dims, full(to))


def regrouped_bits(x: Value, b: Builder) -> bool:
    """To integers of another width: one dimension more, or one less."""
    bits = int(x.dtype.lstrip("ui"))
    to = b.rng.choice([d for d in INTEGERS if int(d.lstrip("ui")) != bits])
    width = int(to.lstrip("ui"))
    if width < bits:
        return b.add("bitcast_convert", [x], to, (*x.dims, Expr.const(bits // width)), full(to))
    if not x.rank or x.dims[-1] != width // bits:
        return False
    return b.add("bitcast_convert", [x], to, x.dims[:-1], full(to))


def reduce_precision(b: Builder) -> bool:
    """Exponents of at least five bits, which hold every number here, but for those near zero."""
    x = b.pick(lambda v: not v.range.wild and v.range.most < 2**14, FLOATS)
    if x.range.wild or x.range.most >= 2**14:
        return False
    exponent = b.rng.choice((5, 8))
    mantissa = b.rng.randint(1, 12)
    range_, coarse = x.range, 2.0**-mantissa
    if range_.exact and range_.step is not None and range_.step <= 10:
        found = Range(range_.lo * 2, range_.hi * 2, range_.step) if range_.most else range_
        found = Range(min(found.lo, -found.most), found.most, range_.step)
    else:
        error = range_.error + coarse * range_.most + 2**-14
        found = Range(range_.lo - error, range_.hi + error, None, error)
    attributes = f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32"
    return b.add("reduce_precision", [x], x.dtype, x.dims, found, attributes)


def map_(b: Builder) -> bool:
    """A computation on one or two operands."""
    x = b.pick(lambda v: not v.range.wild, (*FLOATS, *INTEGERS))
    y = b.like(x, lambda v: not v.range.wild)
    op = b.rng.choice(("add", "subtract", "maximum"))
    found = BINARY[op](x.dtype, x.range, y.range)
    if found is None or y.range.wild:
        return False
    scalar = f"tensor<{x.dtype}>"
    result = Value(x.dtype, x.dims, found)

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        arguments = [p.fresh(), p.fresh()]

        def body() -> None:
            p.returns([p.made(op, arguments, [scalar] * 2, scalar)], [scalar])

        p.op("map", names, [p.type(x), p.type(y)], made, [p.type(result)], f"dimensions = {array(range(x.rank))}",
             p.region(arguments, [scalar] * 2, body))  # fmt: skip

    return b.add_results("map", [x, y], [result], render)


OPS: dict[str, Callable[[Builder], bool]] = {
    **{op: functools.partial(unary, op) for op in {**UNARY_FLOAT, **UNARY_INTEGER}},
    **{op: functools.partial(binary, op) for op in (*BINARY, "atan2")},
    **{op: functools.partial(bitwise, op) for op in BITWISE},
    "bitcast_convert": bitcast_convert, "clamp": clamp, "compare": compare, "convert": convert, "is_finite": is_finite,
    "map": map_,
    "reduce_precision": reduce_precision, "select": select,
}  # fmt: skip
