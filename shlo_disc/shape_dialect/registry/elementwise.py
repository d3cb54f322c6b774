# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that compute each element of the result from the elements at the same index."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import ALL, BOOL, COMPLEX, FLOAT, INT, NARROW_FLOAT, NARROW_INT, SIGNED
from shlo_disc.shape_dialect.registry.row import rows

_FLOATS = "tests/run/test_ops_float.py"
_INTS = "tests/run/test_ops_integer.py"
_COMPLEX = "tests/run/test_ops_complex.py"
_PARTS = COMPLEX | {"f32", "f64"}
_ANY_FLOAT = FLOAT | NARROW_FLOAT
_ANY_SIGNED = SIGNED | {"i2", "i4"}
_ANY_INT = INT | NARROW_INT

ROWS = (
    *rows(
        "elementwise",
        "cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh",
        _ANY_FLOAT | COMPLEX,
        tests=_FLOATS,
    ),
    *rows("elementwise", "cbrt", _ANY_FLOAT | COMPLEX, tests=_FLOATS),
    *rows("elementwise", "atan2", _ANY_FLOAT | COMPLEX, tests=_FLOATS),
    *rows("elementwise", "ceil floor round_nearest_afz round_nearest_even", _ANY_FLOAT, tests=_FLOATS),
    *rows("elementwise", "is_finite", _ANY_FLOAT | BOOL, tests=_FLOATS),
    *rows("elementwise", "reduce_precision", _ANY_FLOAT, tests=_FLOATS),
    *rows("elementwise", "abs", _ANY_FLOAT | _ANY_SIGNED | COMPLEX, tests=_FLOATS),
    *rows("elementwise", "sign", _ANY_FLOAT | _ANY_SIGNED | COMPLEX, tests=_FLOATS),
    *rows("elementwise", "negate", _ANY_FLOAT | _ANY_INT | COMPLEX, tests=_INTS),
    *rows("elementwise", "add maximum minimum multiply", ALL, tests=_INTS),
    *rows("elementwise", "subtract divide power", ALL - BOOL, tests=_INTS),
    *rows("elementwise", "remainder", ALL - BOOL - COMPLEX, spec=ALL - BOOL, tests=_INTS),
    *rows("elementwise", "and not or xor", BOOL | _ANY_INT, tests=_INTS),
    *rows(
        "elementwise",
        "count_leading_zeros popcnt shift_left shift_right_arithmetic shift_right_logical",
        _ANY_INT,
        tests=_INTS,
    ),
    *rows("elementwise", "clamp compare convert select", ALL, tests=_INTS),
    *rows("elementwise", "bitcast_convert", ALL, tests=_INTS),
    *rows("expand", "complex imag real", _PARTS, tests=_COMPLEX),
    *rows("expand", "map", ALL, tests=_INTS),
)
