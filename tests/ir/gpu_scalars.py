# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar ops of the emulator on NumPy arrays, by name, and the dtypes of MLIR's element types."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from shlo_disc.shape_dialect.dtypes import BY_MLIR, numpy_dtype
from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_vectors import fused

Lanes = np.ndarray

NARROW = {"i2": ml_dtypes.int2, "i4": ml_dtypes.int4, "i6": np.uint8}
"""Integers of fewer bits than a byte. Those of six bits are codes of floats."""

DTYPES = {
    **NARROW, **{kind.mlir: numpy_dtype(kind) for kind in BY_MLIR.values() if kind.mlir[0] == "f" and kind.bits <= 8},
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i1": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
}  # fmt: skip


def dtype_of(type_: ir.Type) -> np.dtype:
    """The NumPy dtype of a scalar, or of the elements of a memref or a vector."""
    element = type_.element_type if isinstance(type_, ir.MemRefType | ir.VectorType) else type_
    return np.dtype(DTYPES[str(element)])


def shape_of(type_: ir.Type) -> list[int]:
    """The sizes of a vector; a scalar has none."""
    return list(type_.shape) if isinstance(type_, ir.VectorType) else []


def unsigned(value: Lanes) -> Lanes:
    """The same bits as unsigned integers; booleans as bytes."""
    if value.dtype in NARROW_DTYPES:
        return value.view(np.uint8) & ((1 << len(bits_of(value))) - 1)
    return value.astype(np.uint8) if value.dtype == np.bool_ else value.view(f"u{value.dtype.itemsize}")


def wide(value: Lanes) -> Lanes:
    """Integers whose sign bit is copied: a true i1 is -1."""
    if value.dtype in NARROW_DTYPES:
        return value.astype(np.int8)
    return -value.astype(np.int8) if value.dtype == np.bool_ else value


def compare_integers(op: ir.OpView, _: np.dtype, a: Lanes, b: Lanes) -> Lanes:
    """arith.cmpi."""
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    a, b = (unsigned(a), unsigned(b)) if predicate >= 6 else (wide(a), wide(b))
    functions = [np.equal, np.not_equal, *[np.less, np.less_equal, np.greater, np.greater_equal] * 2]
    return functions[predicate](a, b)


def compare_floats(op: ir.OpView, _: np.dtype, a: Lanes, b: Lanes) -> Lanes:
    """arith.cmpf: predicates 1 to 6 are false on NaN, 8 to 13 are true."""
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    nan = np.isnan(a) | np.isnan(b)
    if predicate in (7, 14):
        return ~nan if predicate == 7 else nan
    functions = [np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal]
    result = functions[(predicate - 1) % 7](a, b)
    return result & ~nan if predicate < 7 else result | nan


def of_unsigned(function: Callable[..., Lanes]) -> Callable[..., Lanes]:
    """An op on unsigned integers; the result has the bits of the unsigned one."""

    def apply(_: ir.OpView, dtype: np.dtype, *operands: Lanes) -> Lanes:
        result = function(*map(unsigned, operands))
        if dtype in NARROW_DTYPES:
            return result.astype(np.int8)
        return result if dtype.kind == "f" or result.dtype.itemsize != dtype.itemsize else result.view(dtype)

    return apply


def plain(function: Callable[..., Lanes]) -> Callable[..., Lanes]:
    """An op that NumPy computes in the operands' own type, on integers of fewer bits than a byte in bytes."""

    def apply(_: ir.OpView, dtype: np.dtype, *operands: Lanes) -> Lanes:
        return function(*(wide(x) if x.dtype in NARROW_DTYPES else x for x in operands))

    return apply


def same_bits(_: ir.OpView, dtype: np.dtype, x: Lanes) -> Lanes:
    """arith.bitcast."""
    return (unsigned(x) if x.dtype in NARROW_DTYPES else x).view(dtype)


def lowest_bits(_: ir.OpView, dtype: np.dtype, x: Lanes) -> Lanes:
    """arith.trunci."""
    return wide(x) & {np.dtype(np.bool_): 1, np.dtype(np.uint8): 63}.get(dtype, -1)


def signed_quotient(_: ir.OpView, __: np.dtype, a: Lanes, b: Lanes) -> Lanes:
    """arith.divsi rounds towards zero."""
    return np.trunc(wide(a).astype(np.longdouble) / wide(b).astype(np.longdouble))


def away_from_zero(x: Lanes) -> Lanes:
    """math.round: to the nearest integer, of two equally near the one further from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole).astype(x.dtype)


def ones(_: ir.OpView, __: np.dtype, x: Lanes) -> Lanes:
    """math.ctpop."""
    return sum((unsigned(x) >> i & 1).astype(np.int8) for i in bits_of(x))


def leading_zeros(_: ir.OpView, __: np.dtype, x: Lanes) -> Lanes:
    """math.ctlz."""
    return len(bits_of(x)) - sum((unsigned(x) >> i != 0).astype(np.int8) for i in bits_of(x))


def bits_of(x: Lanes) -> range:
    """The bits of an integer."""
    return range({np.dtype(ml_dtypes.int2): 2, np.dtype(ml_dtypes.int4): 4}.get(x.dtype, 8 * x.dtype.itemsize))


NARROW_DTYPES = (np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4))

DIVISIONS = {"arith.divui", "arith.remui", "arith.divsi", "arith.remsi"}

SCALARS: dict[str, Callable[..., Lanes]] = {
    "arith.addf": plain(np.add), "arith.addi": plain(np.add), "arith.andi": plain(np.bitwise_and),
    "arith.bitcast": same_bits, "arith.cmpf": compare_floats, "arith.cmpi": compare_integers,
    "arith.divf": plain(np.divide), "arith.divsi": signed_quotient, "arith.divui": of_unsigned(np.floor_divide),
    "arith.extf": plain(np.asarray), "arith.extsi": plain(wide), "arith.extui": of_unsigned(np.asarray),
    "arith.fptosi": plain(np.trunc), "arith.fptoui": plain(np.trunc), "arith.index_cast": plain(wide),
    "arith.index_castui": of_unsigned(np.asarray), "arith.maximumf": plain(np.maximum),
    "arith.maxsi": plain(np.maximum), "arith.maxui": of_unsigned(np.maximum), "arith.minimumf": plain(np.minimum),
    "arith.minsi": plain(np.minimum), "arith.minui": of_unsigned(np.minimum), "arith.mulf": plain(np.multiply),
    "arith.muli": plain(np.multiply), "arith.negf": plain(np.negative), "arith.ori": plain(np.bitwise_or),
    "arith.remsi": plain(np.fmod), "arith.remui": of_unsigned(np.remainder),
    "arith.shli": plain(np.left_shift), "arith.shrsi": plain(np.right_shift),
    "arith.shrui": of_unsigned(np.right_shift), "arith.sitofp": plain(wide), "arith.subf": plain(np.subtract),
    "arith.subi": plain(np.subtract), "arith.truncf": plain(np.asarray),
    "arith.trunci": lowest_bits, "arith.uitofp": of_unsigned(np.asarray),
    "arith.xori": plain(np.bitwise_xor), "math.absf": plain(np.abs), "math.atan2": plain(np.arctan2),
    "math.cbrt": plain(np.cbrt), "math.ceil": plain(np.ceil), "math.copysign": plain(np.copysign),
    "math.ctlz": leading_zeros, "math.ctpop": ones,
    "math.cos": plain(np.cos), "math.exp": plain(np.exp), "math.expm1": plain(np.expm1),
    "math.floor": plain(np.floor), "math.fma": plain(fused), "math.log": plain(np.log), "math.log1p": plain(np.log1p),
    "math.powf": plain(np.power), "math.round": plain(away_from_zero),
    "math.roundeven": plain(np.rint), "math.rsqrt": plain(lambda x: 1 / np.sqrt(x)),
    "math.sin": plain(np.sin), "math.sqrt": plain(np.sqrt), "math.tan": plain(np.tan), "math.tanh": plain(np.tanh),
}  # fmt: skip

ATOMICS: dict[int, Callable[..., Lanes]] = {
    0: SCALARS["arith.addf"], 1: SCALARS["arith.addi"], 2: SCALARS["arith.andi"], 3: plain(lambda old, new: new),
    6: SCALARS["arith.maxsi"], 7: SCALARS["arith.maxui"], 10: SCALARS["arith.minsi"], 11: SCALARS["arith.minui"],
    14: SCALARS["arith.ori"], 15: SCALARS["arith.xori"],
}  # fmt: skip
"""By the number of an AtomicRMWKind."""
