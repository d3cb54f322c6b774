# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, factorisations and transforms of matrices."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import ALL, COMPLEX, FLOAT, NARROW_FLOAT
from shlo_disc.shape_dialect.registry.row import Row, rows

_TESTS = "tests/run/test_ops_linalg.py"
_FFT = "tests/run/test_ops_fft.py"

ROWS = (
    *rows("dot", "dot_general", ALL, tests="tests/run/test_ops_dot.py"),
    *rows("expand", "dot einsum", ALL, tests="tests/run/test_ops_old.py"),
    *rows("expand", "unary_einsum", ALL, tests="tests/run/test_ops_old.py"),
    *rows("library", "cholesky triangular_solve", FLOAT | NARROW_FLOAT | COMPLEX, tests=_TESTS),
    *rows("library", "fft", {"f32", "f64"} | COMPLEX, tests=_FFT),
    Row("@shlo_disc.fft", "library", frozenset({"f32", "f64", "i32", "i64"}) | COMPLEX, frozenset(), tests=_FFT),
)
