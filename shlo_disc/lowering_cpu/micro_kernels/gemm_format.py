# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Formats in which each element type is packed and multiplied on a target.

A packed form consists of words of 32 or 64 bits: an element, or two or four neighbours along k, which one instruction
multiplies and adds to a sum of 32 bits. To the runtime and to the loops of a micro-kernel, k is a number of words, so
there is one of everything. Where a target has no such instruction, elements get wider while they are packed.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.lowering_cpu.options import CpuOptions
from shlo_disc.shape_dialect.dialect.host import PackedFormat


@dataclass(frozen=True)
class Multiplier:
    """The types of a word and of a sum, and the registers that it takes besides a tile's sums and four for words."""

    name: str
    word: str
    sums: str
    spare: int = 0


MULTIPLIERS = {
    m.name: m
    for m in (
        Multiplier("f32", "f32", "f32"),
        Multiplier("f64", "f64", "f64"),
        Multiplier("bf16x2", "i32", "f32"),
        Multiplier("i16x2", "i32", "i32"),
        Multiplier("i8x4", "i32", "i32", spare=2),
        Multiplier("i32", "i32", "i32"),
        Multiplier("bf16x2_amx", "i32", "f32"),
        Multiplier("i8x4_amx", "i32", "i32"),
        Multiplier("ui8x4_amx", "i32", "i32"),
    )
}
"""i8x4: the left-hand side is given as unsigned numbers, 128 too large."""

AMX = {"bf16x2_amx": "tdpbf16ps", "i8x4_amx": "tdpbssd", "ui8x4_amx": "tdpbuud"}
"""Instructions that multiply whole tiles of words."""

FORMATS = (
    PackedFormat("f32", "f32"),
    PackedFormat("f64", "f64"),
    PackedFormat("bf16", "bf16x2_amx"),
    PackedFormat("bf16", "bf16x2"),
    PackedFormat("bf16", "f32"),
    PackedFormat("f16", "f32"),
    PackedFormat("i8", "i8x4_amx"),
    PackedFormat("i8", "i8x4"),
    PackedFormat("i8", "i16x2"),
    PackedFormat("ui8", "ui8x4_amx"),
    PackedFormat("ui8", "i16x2"),
    PackedFormat("i32", "i32"),
)
"""In the order of runtime/native/kernels/gemm_formats.cpp; of those of one element type, the fastest first."""

_FEATURES = {
    "bf16x2": "avx512bf16", "i8x4": "avx512vnni", "bf16x2_amx": "amx-bf16", "i8x4_amx": "amx-int8",
    "ui8x4_amx": "amx-int8",
}  # fmt: skip
"""Processor features that multipliers need, besides registers of 512 bits."""


def format_of(element: str, options: CpuOptions) -> PackedFormat:
    """The format of an element type that is the fastest one on a target."""
    element = "i32" if element == "ui32" else element
    return next(f for f in FORMATS if f.element == element and _is_offered(f.multiplier, options))


def _is_offered(multiplier: str, options: CpuOptions) -> bool:
    feature = _FEATURES.get(multiplier)
    return feature is None or (options.vector_bits == 512 and feature in options.features)
