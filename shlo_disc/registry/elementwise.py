# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that compute each element of the result from the elements at the same index."""

from __future__ import annotations

from shlo_disc.registry.dtypes import ALL, BOOL, COMPLEX, FLOAT, INT, NARROW_FLOAT, NARROW_INT, REAL, SIGNED
from shlo_disc.registry.row import refused, rows

_FLOATS = "tests/run/test_ops_float.py"
_INTS = "tests/run/test_ops_integer.py"
_ANY_FLOAT = FLOAT | NARROW_FLOAT
_ANY_INT = INT | NARROW_INT

ROWS = (
    *rows(
        "elementwise",
        "cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh",
        FLOAT,
        spec=_ANY_FLOAT | COMPLEX,
        tests=_FLOATS,
    ),
    *rows("elementwise", "cbrt", FLOAT, spec=_ANY_FLOAT, tests=_FLOATS),
    *rows("elementwise", "atan2", FLOAT, spec=_ANY_FLOAT | COMPLEX, tests=_FLOATS),
    *rows("elementwise", "ceil floor round_nearest_afz round_nearest_even", FLOAT, spec=_ANY_FLOAT, tests=_FLOATS),
    *rows("elementwise", "is_finite", FLOAT | BOOL, spec=_ANY_FLOAT | BOOL, tests=_FLOATS),
    *rows("elementwise", "reduce_precision", FLOAT, spec=_ANY_FLOAT, tests=_FLOATS),
    *rows("elementwise", "abs", FLOAT | SIGNED, spec=_ANY_FLOAT | SIGNED | {"i2", "i4"} | COMPLEX, tests=_FLOATS),
    *rows("elementwise", "sign", FLOAT | SIGNED, spec=_ANY_FLOAT | SIGNED | {"i2", "i4"} | COMPLEX, tests=_FLOATS),
    *rows("elementwise", "negate", FLOAT | INT, spec=_ANY_FLOAT | _ANY_INT | COMPLEX, tests=_INTS),
    *rows("elementwise", "add maximum minimum multiply", REAL, spec=ALL, tests=_INTS),
    *rows("elementwise", "subtract divide power remainder", REAL, spec=ALL - BOOL, tests=_INTS),
    *rows("elementwise", "and not or xor", BOOL | INT, spec=BOOL | _ANY_INT, tests=_INTS),
    *rows(
        "elementwise",
        "count_leading_zeros popcnt shift_left shift_right_arithmetic shift_right_logical",
        INT,
        spec=_ANY_INT,
        tests=_INTS,
    ),
    *rows("elementwise", "clamp compare convert select", REAL, spec=ALL, tests=_INTS),
    *rows("elementwise", "bitcast_convert", REAL, spec=ALL, tests=_INTS),
    *refused("complex imag real", _ANY_FLOAT | COMPLEX, "complex numbers have no lowering", "compute with pairs"),
    *rows("expand", "map", REAL, spec=ALL, tests=_INTS),
)
