# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process does not grow with calls, and little with compiled programs: see `leak_programs.py`."""

from __future__ import annotations

import json

import pytest

from tests.pjrt.plugin import run_python

OF_A_PROGRAM = 32 << 10
"""Limit for one program: MLIR's bindings and the C library's heap keep some 7 KB of it, more at first."""
NOISE = 1 << 20


@pytest.mark.parametrize(
    ("calls", "programs"), [(20_000, 50), pytest.param(100_000, 500, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_memory_stays(calls: int, programs: int) -> None:
    settings = {"JAX_PLATFORMS": "shlo_disc,cpu", "MALLOC_ARENA_MAX": "1"}  # the C library adds heaps under load
    done = run_python("-m", "tests.pjrt.leak_programs", str(calls), str(programs), **settings)
    assert done.returncode == 0, done.stderr[-2000:]
    grown = json.loads(done.stdout.splitlines()[-1])
    assert grown["calls"] < NOISE, grown
    assert grown["donations"] < NOISE, grown
    assert grown["programs"] < NOISE + programs * OF_A_PROGRAM, grown
