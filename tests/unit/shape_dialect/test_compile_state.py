# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a compile and of a trace: nested, in other threads, and the only ambient state of the package."""

from __future__ import annotations

import threading
from contextvars import copy_context
from pathlib import Path

import pytest

import shlo_disc
from shlo_disc.lowering.progress import watching
from shlo_disc.lowering_cpu.policy import CPU_POLICY
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.runtime.exporting import exporting, is_exporting
from shlo_disc.shape_dialect.compile_state import CompileState, compiling_for, current_compile, policy

ROOT = Path(shlo_disc.__file__).parent
HOMES = ["importer/trace_state.py", "shape_dialect/compile_state.py"]


def test_no_other_state_is_ambient() -> None:
    found = [path for path in ROOT.rglob("*.py") if "ContextVar" in path.read_text()]
    assert sorted(str(path.relative_to(ROOT)) for path in found) == HOMES


def test_a_compile_in_a_compile_has_the_fields_that_it_does_not_set() -> None:
    with compiling_for(CPU_POLICY, strict=True), exporting() as kept:
        with compiling_for(GPU_POLICY), watching(print):
            assert policy() is GPU_POLICY
            inside = current_compile()
            assert (inside.is_strict, inside.watch, inside.kept) == (False, print, kept)
        assert policy() is CPU_POLICY
        assert current_compile().is_strict and current_compile().watch is None
    assert current_compile() == CompileState()


def test_nothing_is_left_behind_an_error() -> None:
    with pytest.raises(ZeroDivisionError), compiling_for(CPU_POLICY), exporting():
        _ = 1 // 0
    assert not is_exporting()
    with pytest.raises(LookupError):
        policy()


def test_threads_have_their_own() -> None:
    seen: list[CompileState] = []
    note = lambda: seen.append(current_compile())  # noqa: E731
    with compiling_for(CPU_POLICY):
        copied = copy_context()
        threads = [threading.Thread(target=note), threading.Thread(target=copied.run, args=(note,))]
    for thread in threads:
        thread.start()
        thread.join()
    assert [state.policy for state in seen] == [None, CPU_POLICY]
