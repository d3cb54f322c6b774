# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Micro-kernels as instructions: what each target multiplies with, and that sums stay in registers."""

from __future__ import annotations

import re

import pytest

from shlo_disc.lowering.codegen import CpuTarget, code_text, lower_to_llvm, to_llvm_ir
from shlo_disc.lowering_cpu import CpuOptions
from shlo_disc.lowering_cpu.micro_kernels.gemm_kernel import GemmTile, micro_kernels, tile_of
from shlo_disc.shape_dialect.mlir import ir

_AVX512 = ("avx2", "avx512bf16", "avx512bw", "avx512dq", "avx512f", "avx512vl", "avx512vnni", "f16c", "fma")
AVX2 = CpuTarget.named("x86-64-v3")
AVX512 = CpuTarget(AVX2.triple, _AVX512, 512)
NEON = CpuTarget("aarch64-unknown-linux-gnu", ("neon",), 128, "generic")

CASES = [
    (AVX2, "f32", 6, r"vfmadd\w+ps.*%ymm"),
    (AVX2, "f64", 6, r"vfmadd\w+pd.*%ymm"),
    (AVX2, "bf16", 6, r"vfmadd\w+ps.*%ymm"),
    (AVX2, "i8", 6, r"vpmaddwd.*%ymm"),
    (AVX2, "i32", 6, r"vpmulld.*%ymm"),
    (AVX512, "f32", 14, r"vfmadd\w+ps.*%zmm"),
    (AVX512, "f16", 14, r"vfmadd\w+ps.*%zmm"),
    (AVX512, "bf16", 14, r"vdpbf16ps.*%zmm"),
    (AVX512, "i8", 13, r"vpdpbusd.*%zmm"),
    (AVX512, "ui8", 14, r"(?:vpmaddwd|vpdpwssd).*%zmm"),
    (NEON, "f32", 14, r"fmla\s+v\d+\.4s"),
    (NEON, "f64", 14, r"fmla\s+v\d+\.2d"),
    (NEON, "bf16", 14, r"fmla\s+v\d+\.4s"),
    (NEON, "i32", 10, r"mla\s+v\d+\.4s"),
]


def inner_loop(tile: GemmTile, target: CpuTarget, instruction: str) -> str:
    """The block of the largest tile's assembly with the most of an instruction."""
    name = f"{tile.name}_{tile.rows}"
    with ir.Context(), ir.Location.unknown():
        module = lower_to_llvm(ir.Module.parse(dict(micro_kernels(tile))[name]))
        text = code_text("asm", to_llvm_ir(module), target, 3, {name})
    blocks = re.split(r"\n(?=\.L\w+:|\s+(?:j\w+|b\.\w+)\s+\.L)", text)
    return max(blocks, key=lambda block: len(re.findall(instruction, block)))


@pytest.mark.parametrize(("target", "element", "rows", "instruction"), CASES)
def test_sums_stay_in_registers(target: CpuTarget, element: str, rows: int, instruction: str) -> None:
    """One instruction for each register of sums and step of k, and nothing goes through the stack."""
    tile = tile_of(element, CpuOptions.of(target))
    assert tile.rows == rows
    loop = inner_loop(tile, target, instruction)
    offset = 1 if tile.format.multiplier == "i8x4" else 0
    assert len(re.findall(instruction, loop)) == 2 * (rows + offset), loop
    assert not re.search(r"%rsp|\bsp\b", loop), loop
