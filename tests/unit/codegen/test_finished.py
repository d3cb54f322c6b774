# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions marked as finished are compiled as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shlo_disc.codegen import CpuTarget, lower_to_llvm, optimized_llvm_ir, to_llvm_ir
from shlo_disc.codegen.finished import names_of, split_finished
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.context import make_context

FINISHED = 'attributes {passthrough = ["disc-finished"]}'
PROGRAM = """
  llvm.func @twice(%x: i64) -> i64 MARK {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %y = llvm.sub %x, %zero : i64
    %z = llvm.add %y, %y : i64
    llvm.return %z : i64
  }
  llvm.func @main(%x: i64) -> i64 {
    %y = llvm.call @twice(%x) : (i64) -> i64
    %z = llvm.call @twice(%y) : (i64) -> i64
    llvm.return %z : i64
  }
"""


def llvm_ir(mark: str) -> str:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(PROGRAM.replace("MARK", mark))
        return to_llvm_ir(lower_to_llvm(module))


def test_a_module_without_finished_functions_stays_whole() -> None:
    text = llvm_ir("")
    assert split_finished(text) == (text, "")
    assert names_of("") == []


def test_finished_functions_are_declared_where_they_are_called() -> None:
    text, finished = split_finished(llvm_ir(FINISHED))
    assert names_of(finished) == ["twice"]
    assert "declare i64 @twice(i64" in text
    assert "define i64 @main" in text


@pytest.mark.parametrize("exported", (None, {"main"}))
def test_they_are_not_optimised(exported: set[str] | None) -> None:
    optimised = optimized_llvm_ir(llvm_ir(FINISHED), CpuTarget.host(), 3, exported)
    assert optimised.count("call i64 @twice") == 2
    assert ("define internal" in optimised) == (exported is not None)
    assert '"target-cpu"' in optimised[optimised.index("@twice(i64 %0)") :]
    assert "sub i64 %0, 0" in optimised
    assert "sub" not in optimized_llvm_ir(llvm_ir(""), CpuTarget.host(), 3, exported)


def test_their_code_is_part_of_the_object(jit: Callable[..., Any]) -> None:
    assert jit(PROGRAM.replace("MARK", FINISHED))("main", 5) == 20
