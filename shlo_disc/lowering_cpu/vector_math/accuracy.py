# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Error bounds of results, in units in the last place of the exact value (its f32 or f64 grid).

Measured over all f32 for exp, expm1, log, log1p, tanh, logistic, erf and rsqrt, else over millions (f32) and hundreds
of thousands (f64) of arguments of every exponent and around the hard places; rounded up.
"""

from __future__ import annotations

_ROWS: dict[str, tuple[float, float]] = {
    "exp": (1.0, 1.0),
    "expm1": (1.5, 1.9),
    "logistic": (1.0, 1.0),
    "log": (0.9, 0.9),
    "log1p": (1.5, 1.5),
    "log2": (1.3, 1.4),
    "tanh": (2.5, 2.6),
    "sinh": (2.3, 2.5),
    "cosh": (1.5, 1.5),
    "asinh": (1.9, 1.8),
    "acosh": (2.2, 2.2),
    "atanh": (2.2, 2.2),
    "erf": (1.1, 1.2),
    "erfc": (0.51, 3.5),
    "sin": (0.51, 0.8),
    "cos": (0.51, 0.8),
    "tan": (0.51, 1.0),
    "asin": (1.3, 1.4),
    "acos": (1.0, 1.2),
    "atan": (0.6, 1.6),
    "atan2": (0.6, 1.7),
    "power": (0.6, 1.3),
    "cbrt": (0.51, 0.51),
    "sqrt": (0.5, 0.5),
    "rsqrt": (1.5, 1.5),
}

ULP: dict[tuple[str, str], float] = {
    (name, dtype): bound for name, bounds in _ROWS.items() for dtype, bound in zip(("f32", "f64"), bounds, strict=True)
}
