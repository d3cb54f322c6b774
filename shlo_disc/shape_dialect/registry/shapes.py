# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants, sizes, and ops that only arrange values."""

from __future__ import annotations

from shlo_disc.shape_dialect.registry.dtypes import ALL, BOOL
from shlo_disc.shape_dialect.registry.row import Row, refused, rows

_REFUSED = "tests/run/test_ops_refused.py"
_TESTS = "tests/run/test_ops_movement.py"

ROWS = (
    *rows("index", "constant", ALL, tests=_TESTS),
    *rows("index", "iota dynamic_iota", ALL - BOOL, tests=_TESTS),
    *rows("shape", "get_dimension_size", ALL, tests=_TESTS),
    *rows("import", "custom_call", ALL, tests="tests/run/test_bad_input.py"),
    *rows("import", "composite return", ALL, tests=_TESTS),
    *rows("order", "optimization_barrier", ALL, tests="tests/run/test_checkpoint.py"),
    # Of the dialect, not of the specification.
    *refused("set_dimension_size", (), "bounded dimensions have no lowering", "use a symbolic dimension", _REFUSED),
    *rows("import", "tuple get_tuple_element", ALL, tests="tests/run/test_ops_distributed.py"),
    Row("@shlo_disc.nonzero", "import", BOOL | {"i32", "i64"}, frozenset(), tests="tests/run/test_numpy_sizes.py"),
    Row("disc.shape", "shape", frozenset({"i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"}), frozenset()),
)
