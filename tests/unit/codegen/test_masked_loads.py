# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masked loads that are wider than a register, for processors without registers of masks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.codegen import CpuTarget, lower_to_llvm, split_masked_loads
from shlo_disc.lowering.codegen.llvm_text import to_llvm_ir
from shlo_disc.lowering.codegen.native import code_text
from shlo_disc.shape_dialect.mlir import ir

AVX2 = CpuTarget.named("x86-64-v3")

TEXT = """
func.func @f(%source: memref<?xf32>, %target: memref<16xf32>, %first: index, %condition: i1) {{
  %c0 = arith.constant 0 : index
  %count = arith.constant {count} : index
  %lanes = vector.create_mask %count : vector<16xi1>
  %here = vector.broadcast %condition : i1 to vector<16xi1>
  %mask = arith.andi %lanes, %here : vector<16xi1>
  %zeros = arith.constant dense<0.0> : vector<16xf32>
  %value = vector.maskedload %source[%first], %mask, %zeros
    : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  vector.store %value, %target[%c0] : memref<16xf32>, vector<16xf32>
  return
}}
"""


def lowered(count: int, target: CpuTarget, level: int = 1) -> tuple[str, str]:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT.format(count=count))
        split_masked_loads(module, target)
        text = str(module)
        lower_to_llvm(module)
        return text, code_text("asm", to_llvm_ir(module), target, level)


@pytest.mark.parametrize("level", [0, 1, 3])
@pytest.mark.parametrize(("count", "loads"), [(2, 1), (8, 1), (9, 2), (16, 2)])
def test_parts_that_are_off_are_not_loaded(count: int, loads: int, level: int) -> None:
    """Stores of the 16 results are the only accesses without a mask."""
    text, code = lowered(count, AVX2, level)
    assert text.count("vector.maskedload") == 2
    assert code.count("vmaskmovps") == loads
    assert not [line for line in code.splitlines() if "vmovups" in line and line.strip().endswith("%ymm0")]


def test_masks_in_registers_need_nothing() -> None:
    text, _ = lowered(2, replace(AVX2, features=(*AVX2.features, "avx512f", "avx512vl"), vector_bits=512))
    assert text.count("vector.maskedload") == 1


def test_lanes_that_fill_no_registers_are_refused() -> None:
    """Their last part would lie behind the mask, and load what its memory happened to say."""
    text = TEXT.format(count=9).replace("16x", "15x")
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        with pytest.raises(CompilerError, match="a masked load of 15 lanes"):
            split_masked_loads(module, AVX2)
