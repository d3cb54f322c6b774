# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Object code: runs, has no external symbols, keeps wide vectors; bad input is an error that names the culprit."""

from __future__ import annotations

import numpy as np
import pytest

from shlo_disc.errors import ArtifactError, CompilerError
from shlo_disc.lowering.codegen import CpuTarget, code_text, compile_to_object, lower_to_llvm, to_llvm_ir
from shlo_disc.lowering.codegen.native import with_target_attributes
from shlo_disc.runtime.elf_symbols import defined_symbols, undefined_symbols
from shlo_disc.shape_dialect.mlir import ir

AXPY = """
func.func @axpy(%x: memref<?xf32>, %y: memref<?xf32>, %n: i64) {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  %a = arith.constant dense<0.1> : vector<16xf32>
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %end = arith.index_cast %n : i64 to index
  scf.for %i = %c0 to %end step %step {
    %left = arith.subi %end, %i : index
    %mask = vector.create_mask %left : vector<16xi1>
    %xv = vector.maskedload %x[%i], %mask, %zero : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %yv = vector.maskedload %y[%i], %mask, %zero : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %r = math.fma %a, %xv, %yv : vector<16xf32>
    vector.maskedstore %y[%i], %mask, %r : memref<?xf32>, vector<16xi1>, vector<16xf32>
  }
  return
}
"""


def lowered(source: str) -> str:
    with ir.Context(), ir.Location.unknown():
        return to_llvm_ir(lower_to_llvm(ir.Module.parse(source)))


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1000])
def test_axpy_runs(jit, n: int) -> None:
    x = np.random.default_rng(n).standard_normal(n + 8).astype(np.float32)
    y = np.ones(n + 8, np.float32)
    jit(AXPY)("axpy", x[:n], y[:n], n)
    expected = np.float32(0.1).astype(np.float64) * x[:n] + 1
    np.testing.assert_allclose(y[:n], expected, rtol=1e-6)
    assert (y[n:] == 1).all()


@pytest.mark.parametrize(
    "target", [CpuTarget.host(), CpuTarget.named("x86-64-v3"), CpuTarget("x86_64-unknown-linux-gnu")]
)
def test_object_needs_nothing_but_copies_and_fills(target: CpuTarget) -> None:
    # Without FMA the only way to compute math.fma is a library call, which must be refused.
    text = lowered(AXPY if target.features else AXPY.replace("math.fma %a, %xv, %yv", "arith.addf %xv, %yv"))
    data = compile_to_object(text, target)
    assert data[:4] == b"\x7fELF" and undefined_symbols(data) <= {"memcpy", "memmove", "memset", "memcmp"}
    assert "axpy" in defined_symbols(data)


def test_fma_without_the_feature_is_refused() -> None:
    with pytest.raises(CompilerError, match="fmaf"):
        compile_to_object(lowered(AXPY), CpuTarget("x86_64-unknown-linux-gnu"))


def test_wide_vectors_are_kept() -> None:
    wide = CpuTarget("x86_64-unknown-linux-gnu", ("avx512bw", "avx512dq", "avx512f", "avx512vl", "fma"), 512)
    assert "zmm" in code_text("asm", lowered(AXPY), wide)
    assert "ymm" in code_text("asm", lowered(AXPY), CpuTarget.named("x86-64-v3"))
    assert "fma" in code_text("optimized-llvm", lowered(AXPY), wide)


def test_internal_functions_disappear() -> None:
    source = """
    func.func @helper(%a: i64) -> i64 { %b = arith.addi %a, %a : i64  return %b : i64 }
    func.func @main(%a: i64) -> i64 { %b = func.call @helper(%a) : (i64) -> i64  return %b : i64 }"""
    data = compile_to_object(lowered(source), CpuTarget.host(), exported=["main"])
    assert defined_symbols(data) == {"main"}
    with pytest.raises(CompilerError, match="does not define other"):
        compile_to_object(lowered(source), CpuTarget.host(), exported=["main", "other"])


def test_attributes_are_on_every_definition() -> None:
    text = with_target_attributes(lowered(AXPY), CpuTarget.named("x86-64-v3"))
    assert text.count('"min-legal-vector-width"="256"') == text.count("define ")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("%e = math.exp %x : f32", "math.exp"),
        ("%e = arith.remf %x, %x : f32", "arith.remf"),
        ("%e = llvm.intr.sin(%x) : (f32) -> f32", "llvm.intr.sin"),
        ("%e = llvm.frem %x, %x : f32", "llvm.frem"),
        ('%e = "stablehlo.add"(%x, %x) : (f32, f32) -> f32', "stablehlo.add"),
        ("%e = memref.alloc() : memref<4xf32>", "memref.alloc"),
        ("%e = arith.extf %x : f32 to f128", "f128"),
        ("%e = vector.broadcast %x : f32 to vector<[4]xf32>", "scalable"),
        ("%b = memref.alloca() : memref<8xi1>\n%i = arith.constant 0 : index\n"
         "%e = vector.load %b[%i] : memref<8xi1>, vector<8xi1>", "vector.load"),
        ("%t = tensor.empty() : tensor<4xf32>", "tensor.empty"),
        ("func.call @expf(%x) : (f32) -> f32", "expf"),
    ],
)  # fmt: skip
def test_wrong_op_is_named(body: str, named: str) -> None:
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        source = f"func.func private @expf(f32) -> f32\nfunc.func public @f(%x: f32) {{ {body}\n return }}"
        module = ir.Module.parse(source)
        with pytest.raises(CompilerError, match=named):
            compile_to_object(to_llvm_ir(lower_to_llvm(module)), CpuTarget.host())


@pytest.mark.parametrize("text", ["nonsense", "define void @f() {\n  ret i32 0\n}\n", "define void @f() {\n"])
def test_bad_ir_text_is_an_error(text: str) -> None:
    with pytest.raises(CompilerError, match="LLVM rejects"):
        compile_to_object(text, CpuTarget.host())


def test_unknown_triple_is_an_error() -> None:
    with pytest.raises(CompilerError, match="no LLVM target"):
        compile_to_object("", CpuTarget("pdp11-dec-unix"))


def test_vector_bits_are_checked() -> None:
    with pytest.raises(CompilerError, match="vector_bits"):
        CpuTarget("x86_64-unknown-linux-gnu", (), 100)


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_malformed_object_is_an_error(data: bytes) -> None:
    with pytest.raises(ArtifactError, match="object code"):
        undefined_symbols(data)
