# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of ops, row by row: a program of each op and element type that XLA has computes its numbers."""

from __future__ import annotations

import pytest

import shlo_disc
from shlo_disc.shape_dialect.ops import TABLE
from tests.op_programs import FORMS, NOT_GENERATED, WITHOUT, pairs
from tests.op_programs.arrays import SIZES, arrays_of, check, is_run_by_xla, results_of_xla

PAIRS = [(op, element) for op, element in pairs() if is_run_by_xla(FORMS[op](element))]


@pytest.mark.parametrize(("op", "element"), PAIRS, ids=[f"{op}-{element}" for op, element in PAIRS])
def test_row(op: str, element: str) -> None:
    program = FORMS[op](element)
    run = shlo_disc.compile(program.text)
    for n in SIZES:
        arrays = arrays_of(program, n)
        check(run(*arrays), results_of_xla(program, arrays), program)


def test_every_compiled_op_has_a_program() -> None:
    compiled_ops = {row.name.removeprefix("stablehlo.") for row in TABLE.values() if row.lowering and row.spec}
    assert compiled_ops == set(FORMS) | set(WITHOUT)
    assert not set(FORMS) & set(WITHOUT)
    assert set(NOT_GENERATED) <= compiled_ops
