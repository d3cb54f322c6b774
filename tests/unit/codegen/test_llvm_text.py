# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rewriting of floating-point constants: every syntax of the printer, every type, nothing else touched."""

from __future__ import annotations

import struct
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.codegen.llvm_text import literal_bits, rewrite_float_literals, to_llvm_ir
from shlo_disc.shape_dialect import mlir
from shlo_disc.shape_dialect.mlir import ir

KINDS = {"f16": ("half", 16), "bf16": ("bfloat", 16), "f32": ("float", 32), "f64": ("double", 64)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("store float f0x40490FDB, ptr %0", "store float 0x400921FB60000000, ptr %0"),
        ("store double f0x400921FB54442D18, ptr %0", "store double 0x400921FB54442D18, ptr %0"),
        ("store half f0x3E00, ptr %0", "store half 0xH3E00, ptr %0"),
        ("store bfloat f0x4049, ptr %0", "store bfloat 0xR4049, ptr %0"),
        ("ret float +inf", "ret float 0x7FF0000000000000"),
        ("ret float -inf", "ret float 0xFFF0000000000000"),
        ("ret float +qnan", "ret float 0x7FF8000000000000"),
        ("ret double -qnan", "ret double 0xFFF8000000000000"),
        ("ret float -nan(0x3FFFFF)", "ret float 0xFFFFFFFFE0000000"),
        ("ret float +snan(0x1)", "ret float 0x7FF0000020000000"),
        ("ret half +snan(0x100)", "ret half 0xH7D00"),
        ("ret float 1.000000e-01", "ret float 0x3FB99999A0000000"),
        ("ret float 1.401300e-45", "ret float 0x36A0000000000000"),
        ("ret float -0.000000e+00", "ret float 0x8000000000000000"),
        ("ret half 9.997550e-02", "ret half 0xH2E66"),
        ("ret bfloat 9.183550e-41", "ret bfloat 0xR0001"),
        ("<2 x float> splat (float -inf)", "<2 x float> splat (float 0xFFF0000000000000)"),
        ("%2 = fadd <16 x float> %1, 2.0", "%2 = fadd <16 x float> %1, 0x4000000000000000"),
        ("%3 = fptrunc double 1.0 to float", "%3 = fptrunc double 0x3FF0000000000000 to float"),
        ("{ half 1.0, double 1.0 }", "{ half 0xH3C00, double 0x3FF0000000000000 }"),
        ("[2 x float] [float 1.0, float +inf]", "[2 x float] [float 0x3FF0000000000000, float 0x7FF0000000000000]"),
    ],
)  # fmt: skip
def test_rewrites(line: str, expected: str) -> None:
    assert rewrite_float_literals(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        '@"float 1.0" = constant [4 x i8] c"1.0+inf"',
        "; float 1.0 -inf",
        "%inf = fadd nnan ninf float %1.0, %float.5",
        "call float @f1.5(float %x) #1",
        'attributes #0 = { "denormal-fp-math"="1.0,-inf" }',
        "br label %4",
        "store i32 10, ptr %1, align 4",
        "!0 = !{i32 2, !\"Debug 1.5 float\", i32 3}",
        "define void @f(ptr captures(none) %0, i64 -1) ; 1.5",
        "switch i64 %1, label %2 [ i64 -5, label %3 ]",
    ],
)  # fmt: skip
def test_leaves_alone(line: str) -> None:
    assert rewrite_float_literals("float " + line) == "float " + line


def test_a_constant_without_a_type_is_an_error() -> None:
    with pytest.raises(CompilerError, match="no type"):
        rewrite_float_literals("ret 1.0")


@pytest.mark.parametrize("line", ["half f0x12345", "half 1.0e9", "float 1.0e99", "float +snan(0x0)",
                                  "half +nan(0x200)"])  # fmt: skip
def test_a_constant_that_does_not_fit_is_an_error(line: str) -> None:
    with pytest.raises(CompilerError):
        rewrite_float_literals(line)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_decimals_of_float_are_rounded_once(value: float) -> None:
    text = f"{np.float32(value):.6e}"
    assert literal_bits(text, "float") == int(np.float32(text).view(np.uint32))


def test_a_decimal_just_off_the_midpoint_is_rounded_once() -> None:
    # 1 + 2^-24 is halfway between two floats; the digits after it are lost in a double.
    assert literal_bits("1.000000059604644775390625000000000000001", "float") == 0x3F800001
    assert literal_bits("1.000000059604644775390624999999999999999", "float") == 0x3F800000
    assert literal_bits("1.00390625000000000000000000000000000001", "bfloat") == 0x3F81
    assert literal_bits("1.00390624999999999999999999999999999999", "bfloat") == 0x3F80
    assert literal_bits("1.00048828125000000000000000000000000001", "half") == 0x3C01


@given(st.integers(0, 0x7F7F))
def test_decimals_of_bfloat(bits: int) -> None:
    value = float(np.uint16(bits).view(ml_dtypes.bfloat16))
    assert literal_bits(f"{value:.40e}", "bfloat") == bits


def bits_via_printer(mlir_type: str, bits: list[int]) -> list[int]:
    """Print the constants with the bindings' LLVM, rewrite them, and read the bits back from the text."""
    kind, width = KINDS[mlir_type]
    values = ", ".join(f"0x{b:0{width // 4}X}" for b in bits)
    source = (f"llvm.mlir.global constant @g(dense<[{values}]> : tensor<{len(bits)}x{mlir_type}>)"
              f" : !llvm.array<{len(bits)} x {mlir_type}>")  # fmt: skip
    with ir.Context(), ir.Location.unknown():
        text = to_llvm_ir(ir.Module.parse(source))
    line = next(row for row in text.splitlines() if row.startswith("@g"))
    words = [w.rstrip(",]") for w in line.split("[", 2)[2].split() if w.startswith("0x")]
    return [read(word, kind) for word in words]


def read(word: str, kind: str) -> int:
    """Bits of a constant in LLVM's hexadecimal form."""
    bits = int(word.lstrip("0x").lstrip("HR") or "0", 16)
    if kind != "float":
        return bits
    if (bits >> 52) & 0x7FF == 0x7FF:
        return (bits >> 63) << 31 | 0x7F800000 | (bits >> 29) & 0x7FFFFF
    value = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


@pytest.mark.parametrize("mlir_type", ["f16", "bf16"])
def test_every_16_bit_constant_survives(mlir_type: str) -> None:
    every = list(range(1 << 16))
    assert bits_via_printer(mlir_type, every) == every


@pytest.mark.parametrize("mlir_type", ["f32", "f64"])
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_random_constants_survive(mlir_type: str, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**32))
    width = KINDS[mlir_type][1]
    special = [0x7F800000, 0xFF800001, 0x7FC00000, 1, 0x3DCCCCCD] if width == 32 else [0x7FF << 52, (0xFFF << 52) + 1]
    bits = special + [int(b) >> (64 - width) for b in np.random.default_rng(seed).integers(0, 2**64, 200, np.uint64)]
    assert bits_via_printer(mlir_type, bits) == bits


def test_constants_reach_memory(jit: Callable[..., object]) -> None:
    loaded = jit("""func.func @f(%x: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %v = arith.constant dense<[0x7f800000, 0xffffffff, 0.1, 0x00000001]> : vector<4xf32>
      vector.store %v, %x[%c0] : memref<?xf32>, vector<4xf32>
      return }""")
    out = np.zeros(4, np.uint32)
    loaded("f", out)
    assert out.tolist() == [0x7F800000, 0xFFFFFFFF, 0x3DCCCCCD, 1]


FUNCTION = "llvm.func @f(%x: f32) -> f32 { %y = llvm.fadd %x, %x : f32  llvm.return %y : f32 }"


def test_the_c_functions_and_the_bindings_print_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(FUNCTION)
        assert mlir._c_api() is not None
        by_c = mlir.to_llvm_ir_text(module)
        monkeypatch.setattr(mlir, "_c_api", lambda: None)
        assert mlir.to_llvm_ir_text(module) == by_c
    assert "fadd float" in by_c


def test_what_has_no_translation_is_an_error() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%x: f32) -> f32 { return %x : f32 }")
        with pytest.raises(CompilerError, match="translation to LLVM IR failed"):
            to_llvm_ir(module)
