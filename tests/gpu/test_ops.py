# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of ops on GPUs, row by row: what it says is lowered computes XLA's numbers, and the rest is refused."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import shlo_disc
from shlo_disc.errors import UnsupportedError
from tests.gpu.checks import compiled
from tests.gpu.emulated import loaded, shared_client
from tests.gpu.marks import needs_mock_driver
from tests.gpu.mock_driver import MockDriver
from tests.op_programs import FORMS, pairs, row_of
from tests.op_programs.arrays import SIZES, arrays_of, check, is_run_by_xla, results_of_xla
from tests.op_programs.program import Program

pytestmark = needs_mock_driver

PAIRS = pairs()


def wanted(program: Program, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """XLA's results; those of our program for CPUs where XLA has no such op, or rounds differently."""
    if is_run_by_xla(program):
        return results_of_xla(program, arrays)
    return [np.asarray(r) for r in jax.tree.leaves(shlo_disc.compile(program.text)(*arrays))]


@pytest.mark.parametrize(("op", "element"), PAIRS, ids=[f"{op}-{element}" for op, element in PAIRS])
def test_row(driver: MockDriver, op: str, element: str) -> None:
    program = FORMS[op](element)
    if element not in row_of(op).on_gpus:
        with pytest.raises(UnsupportedError):
            compiled(program.text)
        return
    run = loaded(compiled(program.text), shared_client())
    for n in SIZES:
        arrays = arrays_of(program, n)
        check(run(*arrays), wanted(program, arrays), program)
