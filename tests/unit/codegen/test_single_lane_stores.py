# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masked stores of one lane are scalar stores of the element's own width."""

from __future__ import annotations

import ctypes

import pytest

from shlo_disc.lowering.codegen.cpu_target import CpuTarget
from shlo_disc.lowering.codegen.native import code_text, compile_to_object
from shlo_disc.lowering.codegen.single_lane_stores import replace_single_lane_stores
from shlo_disc.runtime import _native


def program(wide: str, narrow: str, lanes: int, lane: int) -> str:
    """Stores lane `lane` of a vector of ones, which is truncated first."""
    mask = ", ".join(f"i1 {'true' if i == lane else 'false'}" for i in range(lanes))
    return f"""
define void @store(ptr %from, ptr %to) {{
  %x = load <{lanes} x {wide}>, ptr %from, align 1
  %t = trunc <{lanes} x {wide}> %x to <{lanes} x {narrow}>
  call void @llvm.masked.store.v{lanes}{narrow}.p0(<{lanes} x {narrow}> %t, ptr align 1 %to, <{lanes} x i1> <{mask}>)
  ret void
}}
declare void @llvm.masked.store.v{lanes}{narrow}.p0(<{lanes} x {narrow}>, ptr, <{lanes} x i1>)
"""


@pytest.mark.parametrize("lane", [0, 1])
@pytest.mark.parametrize(("wide", "narrow", "lanes"), [("i32", "i16", 16), ("i16", "i8", 32), ("i64", "i32", 8)])
def test_only_the_element_is_written(wide: str, narrow: str, lanes: int, lane: int) -> None:
    code = _native.ObjectCode(compile_to_object(program(wide, narrow, lanes, lane), CpuTarget.host(), 3, {"store"}))
    source = (ctypes.c_uint8 * 256)(*[1] * 256)
    target = (ctypes.c_uint8 * 64)(*[7] * 64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code.function("store"))(source, target)
    size = int(narrow[1:]) // 8
    expected = [7] * 64
    expected[lane * size : (lane + 1) * size] = [1] * size
    assert list(target) == expected


def test_other_masks_stay() -> None:
    text = program("i32", "i16", 4, 0).replace("i1 false, i1 false>", "i1 false, i1 true>")
    assert replace_single_lane_stores(text) == text


def test_the_replacement_is_one_store() -> None:
    text = replace_single_lane_stores(program("i32", "i16", 4, 2))
    assert "call void" not in text
    assert text.count("store i16") == 1
    assert "i64 2" in text
    assert "store" in code_text("asm", text, CpuTarget.host(), 3, {"store"})
