# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, factorisations and transforms of matrices."""

from __future__ import annotations

from shlo_disc.registry.dtypes import ALL, COMPLEX, FLOAT, NARROW_FLOAT
from shlo_disc.registry.row import refused, rows

_NONE = "this op has no lowering"

ROWS = (
    *rows("dot", "dot_general", ALL, tests="tests/run/test_ops_dot.py"),
    *rows("expand", "dot einsum unary_einsum", ALL, tests="tests/run/test_ops_old.py"),
    *refused("cholesky triangular_solve", FLOAT | NARROW_FLOAT | COMPLEX, _NONE),
    *refused("fft", frozenset({"f32", "f64"}) | COMPLEX, _NONE),
)
