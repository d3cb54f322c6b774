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


COUNTS = """
import sys
import jax, jax.numpy as jnp
from shlo_disc.pjrt import compile as compiler
from shlo_disc.runtime.native_module import CallCount, observe_programs

observe_programs(True)
made, note = [], compiler.note_program
compiler.note_program = lambda *given: made.append(note(*given)) or made[-1]
functions = [jax.jit(lambda x: jnp.sin(x).sum()), jax.jit(lambda x: jnp.cos(x) + 1)]
results = [f(jnp.ones(n)) for f in functions for n in (3, 4, 5)]
of_executables = [sys.getrefcount(count) for count in made]
calls = sum(count.value for count in made)
jax.clear_caches()
assert made and calls >= 6, (made, calls)
assert of_executables == [sys.getrefcount(count) for count in made], of_executables
"""


def test_executables_hold_no_objects_of_python() -> None:
    """Any thread may release an executable, also one that must not wait for Python's lock while the process ends.

    Nanobind keeps the object of a class without `shared_from_this`, and takes the lock to release it.
    """
    done = run_python("-c", COUNTS, JAX_PLATFORMS="shlo_disc,cpu")
    assert done.returncode == 0, done.stderr[-2000:]
