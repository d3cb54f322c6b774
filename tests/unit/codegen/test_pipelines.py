# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops that kernels are made of, at many widths and element types, compiled and compared with NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from shlo_disc.lowering.codegen import CpuTarget, compile_to_object, lower_to_llvm, to_llvm_ir
from shlo_disc.shape_dialect.mlir import ir

BF16 = ml_dtypes.bfloat16
DTYPES = {"f16": np.float16, "bf16": BF16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16,
          "i32": np.int32, "i64": np.int64}  # fmt: skip
TARGETS = [CpuTarget.host(), CpuTarget.named("x86-64-v3")]
WIDTHS = (1, 2, 3, 8, 16, 32, 64)


def sample(dtype: str, size: int) -> np.ndarray:
    return (np.random.default_rng(size).integers(-9, 10, size) * 3).astype(DTYPES[dtype])


def zero(dtype: str) -> str:
    return "0" if dtype.startswith("i") else "0.0"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("target", TARGETS, ids=["host", "baseline"])
def test_masked_loop_doubles(jit, dtype: str, width: int, target: CpuTarget) -> None:
    add = "arith.addi" if dtype.startswith("i") else "arith.addf"
    vector, memory = f"vector<{width}x{dtype}>", f"memref<?x{dtype}>"
    loaded = jit(
        f"""func.func @f(%x: {memory}, %n: index) {{
      %c0 = arith.constant 0 : index
      %step = arith.constant {width} : index
      %zero = arith.constant dense<{zero(dtype)}> : {vector}
      scf.for %i = %c0 to %n step %step {{
        %left = arith.subi %n, %i : index
        %mask = vector.create_mask %left : vector<{width}xi1>
        %v = vector.maskedload %x[%i], %mask, %zero : {memory}, vector<{width}xi1>, {vector} into {vector}
        %r = {add} %v, %v : {vector}
        vector.maskedstore %x[%i], %mask, %r : {memory}, vector<{width}xi1>, {vector}
      }}
      return }}""",
        target,
    )
    for size in {1, max(width - 1, 1), width, width + 1, 5 * width + 3}:
        x = sample(dtype, size + 4)
        y = x.copy()
        loaded("f", y[:size], size)
        np.testing.assert_array_equal(y[:size], x[:size] + x[:size])
        np.testing.assert_array_equal(y[size:], x[size:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_load_shuffle_broadcast_store(jit, dtype: str, width: int) -> None:
    vector, memory = f"vector<{width}x{dtype}>", f"memref<?x{dtype}>"
    reverse = ", ".join(str(i) for i in reversed(range(width)))
    loaded = jit(f"""func.func @f(%x: {memory}, %y: {memory}) {{
      %c0 = arith.constant 0 : index
      %w = arith.constant {width} : index
      %w2 = arith.constant {2 * width} : index
      %v = vector.load %x[%c0] : {memory}, {vector}
      %r = vector.shuffle %v, %v [{reverse}] : {vector}, {vector}
      vector.store %r, %y[%c0] : {memory}, {vector}
      %s = vector.extract %v[{width - 1}] : {dtype} from {vector}
      %b = vector.broadcast %s : {dtype} to {vector}
      vector.store %b, %y[%w] : {memory}, {vector}
      %t = memref.load %x[%c0] : {memory}
      %i = vector.insert %t, %b [{width // 2}] : {dtype} into {vector}
      vector.store %i, %y[%w2] : {memory}, {vector}
      return }}""")
    x, y = sample(dtype, width), np.zeros(3 * width, DTYPES[dtype])
    loaded("f", x, y)
    inserted = np.full(width, x[-1])
    inserted[width // 2] = x[0]
    np.testing.assert_array_equal(y, np.concatenate([x[::-1], np.full(width, x[-1]), inserted]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 3, 16, 64])
def test_reductions(jit, dtype: str, width: int) -> None:
    kinds = ("add", "maxsi", "minsi", "xor") if dtype.startswith("i") else ("add", "maximumf", "minimumf", "maxnumf")
    vector, memory = f"vector<{width}x{dtype}>", f"memref<?x{dtype}>"
    body = "".join(
        f"""
      %r{i} = vector.reduction <{kind}>, %v : {vector} into {dtype}
      %p{i} = arith.constant {i} : index
      memref.store %r{i}, %y[%p{i}] : {memory}"""
        for i, kind in enumerate(kinds)
    )
    loaded = jit(f"""func.func @f(%x: {memory}, %y: {memory}) {{
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0] : {memory}, {vector} {body}
      return }}""")
    x, y = sample(dtype, width), np.zeros(len(kinds), DTYPES[dtype])
    loaded("f", x, y)
    last = np.bitwise_xor.reduce(x) if dtype.startswith("i") else x.max()
    np.testing.assert_array_equal(y, np.array([x.sum(dtype=x.dtype), x.max(), x.min(), last], x.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 4, 16, 32])
@pytest.mark.parametrize("target", TARGETS, ids=["host", "baseline"])
def test_gather_and_scatter(jit, dtype: str, width: int, target: CpuTarget) -> None:
    vector, memory = f"vector<{width}x{dtype}>", f"memref<?x{dtype}>"
    loaded = jit(
        f"""func.func @f(%x: {memory}, %at: memref<?xi32>, %y: {memory}, %n: index) {{
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<{zero(dtype)}> : {vector}
      %mask = vector.create_mask %n : vector<{width}xi1>
      %i = vector.load %at[%c0] : memref<?xi32>, vector<{width}xi32>
      %v = vector.gather %x[%c0] [%i], %mask, %zero
        : {memory}, vector<{width}xi32>, vector<{width}xi1>, {vector} into {vector}
      vector.scatter %y[%c0] [%i], %mask, %v : {memory}, vector<{width}xi32>, vector<{width}xi1>, {vector}
      return }}""",
        target,
    )
    x, at = sample(dtype, 100), np.random.default_rng(1).permutation(100)[:width].astype(np.int32)
    for n in {0, 1, width // 2, width}:
        y = np.zeros(100, DTYPES[dtype])
        loaded("f", x, at, y, n)
        expected = np.zeros_like(y)
        expected[at[:n]] = x[at[:n]]
        np.testing.assert_array_equal(y, expected)


def test_booleans_through_bytes(jit) -> None:
    loaded = jit("""func.func @f(%x: memref<?xf32>, %y: memref<?xi8>) {
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<0.0> : vector<16xf32>
      %v = vector.load %x[%c0] : memref<?xf32>, vector<16xf32>
      %c = arith.cmpf olt, %v, %zero : vector<16xf32>
      %old = vector.load %y[%c0] : memref<?xi8>, vector<16xi8>
      %b = arith.trunci %old : vector<16xi8> to vector<16xi1>
      %both = arith.andi %b, %c : vector<16xi1>
      %e = arith.extui %both : vector<16xi1> to vector<16xi8>
      vector.store %e, %y[%c0] : memref<?xi8>, vector<16xi8>
      return }""")
    x, y = sample("f32", 16), (np.arange(16) % 2).astype(np.int8)
    expected = (y == 1) & (x < 0)
    loaded("f", x, y)
    np.testing.assert_array_equal(y, expected)


def test_step_bitcast_shape_cast_constant_mask(jit) -> None:
    loaded = jit("""func.func @f(%y: memref<?xi32>) {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %s = vector.step : vector<8xindex>
      %i = arith.index_cast %s : vector<8xindex> to vector<8xi32>
      %f = arith.sitofp %i : vector<8xi32> to vector<8xf32>
      %b = vector.bitcast %f : vector<8xf32> to vector<8xi32>
      vector.store %b, %y[%c0] : memref<?xi32>, vector<8xi32>
      %q = vector.shape_cast %i : vector<8xi32> to vector<2x4xi32>
      %t = vector.transpose %q, [1, 0] : vector<2x4xi32> to vector<4x2xi32>
      %l = vector.shape_cast %t : vector<4x2xi32> to vector<8xi32>
      %m = vector.constant_mask [5] : vector<8xi1>
      vector.maskedstore %y[%c8], %m, %l : memref<?xi32>, vector<8xi1>, vector<8xi32>
      return }""")
    y = np.zeros(16, np.int32)
    loaded("f", y)
    np.testing.assert_array_equal(y[:8], np.arange(8).astype(np.float32).view(np.int32))
    np.testing.assert_array_equal(y[8:], [0, 4, 1, 5, 2, 0, 0, 0])


def test_view_alloca_and_subview(jit) -> None:
    loaded = jit("""func.func @f(%arena: memref<?xi8>, %at: index, %n: index) -> i64 {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %one = arith.constant 1.0 : f32
      %v = memref.view %arena[%at][%n] : memref<?xi8> to memref<?xf32>
      %sub = memref.subview %v[%c1][%n][%c1] : memref<?xf32> to memref<?xf32, strided<[?], offset: ?>>
      memref.store %one, %sub[%c0] : memref<?xf32, strided<[?], offset: ?>>
      %a = memref.alloca() {alignment = 64 : i64} : memref<16xi64>
      %k = arith.constant 42 : i64
      memref.store %k, %a[%n] : memref<16xi64>
      %r = memref.load %a[%n] : memref<16xi64>
      return %r : i64 }""")
    arena = np.zeros(64, np.int8)
    assert loaded("f", arena, 8, 3) == 42
    assert arena.view(np.float32)[3] == 1 and np.count_nonzero(arena.view(np.float32)) == 1


def test_structured_control_flow(jit) -> None:
    loaded = jit("""func.func @collatz(%n: i64) -> i64 {
      %zero = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %two = arith.constant 2 : i64
      %three = arith.constant 3 : i64
      %r:2 = scf.while (%x = %n, %steps = %zero) : (i64, i64) -> (i64, i64) {
        %go = arith.cmpi ne, %x, %one : i64
        scf.condition(%go) %x, %steps : i64, i64
      } do {
      ^bb0(%x: i64, %steps: i64):
        %bit = arith.andi %x, %one : i64
        %odd = arith.cmpi eq, %bit, %one : i64
        %y = scf.if %odd -> i64 {
          %t = arith.muli %x, %three : i64
          %u = arith.addi %t, %one : i64
          scf.yield %u : i64
        } else {
          %h = arith.shrui %x, %one : i64
          scf.yield %h : i64
        }
        %more = arith.addi %steps, %one : i64
        scf.yield %y, %more : i64, i64
      }
      return %r#1 : i64 }""")
    assert loaded("collatz", 27) == 111


def test_overflow_checks_and_wide_products(jit) -> None:
    loaded = jit("""func.func @high(%a: i64, %b: i64) -> i64 {
      %low, %high = arith.mulsi_extended %a, %b : i64
      return %high : i64 }
    func.func @overflows(%a: i64, %b: i64) -> i64 {
      %p = "llvm.intr.smul.with.overflow"(%a, %b) : (i64, i64) -> !llvm.struct<(i64, i1)>
      %o = llvm.extractvalue %p[1] : !llvm.struct<(i64, i1)>
      %r = arith.extui %o : i1 to i64
      return %r : i64 }
    func.func @ceil(%a: i64, %b: i64) -> i64 { %r = arith.ceildivsi %a, %b : i64  return %r : i64 }
    func.func @floor(%a: i64, %b: i64) -> i64 { %r = arith.floordivsi %a, %b : i64  return %r : i64 }
    func.func @index_floor(%a: index, %b: index) -> index { %r = index.floordivs %a, %b  return %r : index }""")
    for a, b in [(2**62, 4), (-(2**62), 7), (3, 5), (-7, 2), (7, -2), (-8, 2), (2**31, 2**31)]:
        assert loaded("high", a, b) == (a * b) >> 64
        assert loaded("overflows", a, b) == int(not -(2**63) <= a * b < 2**63)
        assert loaded("ceil", a, b) == -(-a // b)
        assert loaded("floor", a, b) == a // b == loaded("index_floor", a, b)


def test_inline_math(jit) -> None:
    names = ("absf", "sqrt", "floor", "ceil", "round", "roundeven", "trunc")
    body = "".join(
        f"""
      %r{i} = math.{name} %v : vector<16xf32>
      %p{i} = arith.constant {16 * i} : index
      vector.store %r{i}, %y[%p{i}] : memref<?xf32>, vector<16xf32>"""
        for i, name in enumerate(names)
    )
    loaded = jit(f"""func.func @f(%x: memref<?xf32>, %y: memref<?xf32>) {{
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0] : memref<?xf32>, vector<16xf32> {body}
      return }}
    func.func @bits(%x: i64) -> i64 {{
      %a = math.ctpop %x : i64  %b = math.ctlz %x : i64  %c = math.cttz %x : i64
      %d = arith.addi %a, %b : i64  %e = arith.addi %d, %c : i64  return %e : i64 }}""")
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 1e10, -1e10, np.inf, -np.inf, np.nan, -0.0, 0.0, 7.7, -7.7,
                  8388609.0], np.float32)  # fmt: skip
    y = np.zeros(16 * len(names), np.float32)
    loaded("f", x, y)
    away = np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x)
    with np.errstate(invalid="ignore"):
        expected = [np.abs(x), np.sqrt(x), np.floor(x), np.ceil(x), away, np.rint(x), np.trunc(x)]
    np.testing.assert_array_equal(y, np.concatenate(expected).astype(np.float32))
    assert loaded("bits", 0b1011000) == 3 + 57 + 3


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal 16-bit floats bit by bit; any NaN equals any other."""
    return bool(((a.view(np.uint16) == b.view(np.uint16)) | (np.isnan(a) & np.isnan(b))).all())


ARITHMETIC = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("target", TARGETS, ids=["host", "baseline"])
def test_narrow_arithmetic_rounds_once_to_even(dtype: str, target: CpuTarget, jit) -> None:
    body = "".join(
        f"""
        %r{i} = arith.{name} %a, %b : vector<16x{dtype}>
        vector.store %r{i}, %o{i}[%i] : memref<?x{dtype}>, vector<16x{dtype}>"""
        for i, name in enumerate(ARITHMETIC)
    )
    outs = ", ".join(f"%o{i}: memref<?x{dtype}>" for i in range(4))
    loaded = jit(f"""func.func @f(%x: memref<?x{dtype}>, %y: memref<?x{dtype}>, {outs}, %n: index) {{
      %c0 = arith.constant 0 : index
      %step = arith.constant 16 : index
      scf.for %i = %c0 to %n step %step {{
        %a = vector.load %x[%i] : memref<?x{dtype}>, vector<16x{dtype}>
        %b = vector.load %y[%i] : memref<?x{dtype}>, vector<16x{dtype}> {body}
      }}
      return }}""", target)  # fmt: skip
    bits = np.random.default_rng(3).integers(0, 1 << 16, (2, 1 << 16)).astype(np.uint16)
    x, y = bits[0].view(DTYPES[dtype]), bits[1].view(DTYPES[dtype])
    outs_np = [np.zeros_like(x) for _ in range(4)]
    loaded("f", x, y, *outs_np, x.size)
    with np.errstate(all="ignore"):
        for out, function in zip(outs_np, ARITHMETIC.values(), strict=True):
            expected = function(x.astype(np.float32), y.astype(np.float32)).astype(DTYPES[dtype])
            assert same_bits(out, expected)


@pytest.mark.parametrize("target", TARGETS, ids=["host", "baseline"])
@pytest.mark.parametrize("wide", ["f32", "f64"])
@pytest.mark.parametrize("narrow", ["f16", "bf16"])
def test_narrowing_rounds_once(target: CpuTarget, wide: str, narrow: str, jit) -> None:
    loaded = jit(f"""func.func @f(%x: memref<?x{wide}>, %y: memref<?x{narrow}>, %z: memref<?x{wide}>, %n: index) {{
      %c0 = arith.constant 0 : index
      %step = arith.constant 8 : index
      scf.for %i = %c0 to %n step %step {{
        %a = vector.load %x[%i] : memref<?x{wide}>, vector<8x{wide}>
        %b = arith.truncf %a : vector<8x{wide}> to vector<8x{narrow}>
        vector.store %b, %y[%i] : memref<?x{narrow}>, vector<8x{narrow}>
        %c = arith.extf %b : vector<8x{narrow}> to vector<8x{wide}>
        vector.store %c, %z[%i] : memref<?x{wide}>, vector<8x{wide}>
      }}
      return }}""", target)  # fmt: skip
    every = np.arange(1 << 16, dtype=np.uint16).view(DTYPES[narrow])
    with np.errstate(invalid="ignore"):
        every = every[np.isfinite(every)].astype(DTYPES[wide])
    middle = every[:-1] / 2 + every[1:] / 2
    special = [np.nan, np.inf, -np.inf, 3e38, -3e38, 65519.9, 65520.0, 1e-45, *[0.0] * 8]
    x = np.concatenate([every, middle, np.nextafter(middle, every[1:]), np.nextafter(middle, every[:-1]), special])
    x = x.astype(DTYPES[wide])
    x = x[: x.size // 8 * 8]
    y, z = np.zeros(x.size, DTYPES[narrow]), np.zeros_like(x)
    loaded("f", x, y, z, x.size)
    expected = nearest(x, narrow)
    assert same_bits(y, expected)
    np.testing.assert_array_equal(z, y.astype(z.dtype))


def nearest(x: np.ndarray, narrow: str) -> np.ndarray:
    """x rounded once to f16 or bf16, ties to even, by way of the long double grid of the format."""
    if narrow == "f16" or x.dtype == np.float32:
        with np.errstate(all="ignore"):
            return x.astype(DTYPES[narrow])
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.abs(x))
        grid = np.ldexp(1.0, np.maximum(exponent, -125) - 8)
        return (np.rint(x / grid) * grid).astype(np.float32).astype(BF16)


@pytest.mark.parametrize("count", [4, 200])
def test_bf16_constants_and_moves(count: int, jit) -> None:
    values = np.array([(i * 37 % 256) - 100.5 for i in range(count)], np.float32).astype(BF16)
    text = ", ".join(f"{float(v)!r}" for v in values)
    loaded = jit(
        f"""func.func @f(%y: memref<?xbf16>, %n: index) -> i64 {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %v = arith.constant dense<[{text}]> : vector<{count}xbf16>
      %nan = arith.constant 0x7FC0 : bf16
      %splat = arith.constant dense<0xFF80> : vector<{count}xbf16>
      %local = memref.alloca() : memref<{count}xbf16>
      vector.store %splat, %local[%c0] : memref<{count}xbf16>, vector<{count}xbf16>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %v) -> vector<{count}xbf16> {{
        %w = vector.load %local[%c0] : memref<{count}xbf16>, vector<{count}xbf16>
        %less = arith.cmpf olt, %w, %carried : vector<{count}xbf16>
        %kept = arith.select %less, %carried, %w : vector<{count}xi1>, vector<{count}xbf16>
        %negated = arith.negf %kept : vector<{count}xbf16>
        scf.yield %negated : vector<{count}xbf16>
      }}
      vector.store %r, %y[%c0] : memref<?xbf16>, vector<{count}xbf16>
      memref.store %nan, %y[%c0] : memref<?xbf16>
      %bits = arith.bitcast %nan : bf16 to i16
      %wide = arith.extui %bits : i16 to i64
      return %wide : i64 }}""",
        CpuTarget.named("x86-64-v3"),
    )
    for turns in (0, 1, 2):
        y = np.zeros(count, BF16)
        assert loaded("f", y, turns) == 0x7FC0
        assert np.isnan(y[0])
        np.testing.assert_array_equal(y[1:], (-values if turns == 1 else values)[1:])


def test_a_typical_kernel_compiles_quickly() -> None:
    body = "".join(f"%v{i + 1} = math.fma %v{i}, %v{i}, %v{i} : vector<32xf32>\n" for i in range(100))
    source = f"""func.func @f(%x: memref<?xf32>, %n: index) {{
      %c0 = arith.constant 0 : index
      %step = arith.constant 32 : index
      scf.for %i = %c0 to %n step %step {{
        %v0 = vector.load %x[%i] : memref<?xf32>, vector<32xf32>
        {body}
        vector.store %v100, %x[%i] : memref<?xf32>, vector<32xf32>
      }}
      return }}"""
    with ir.Context(), ir.Location.unknown():
        text = to_llvm_ir(lower_to_llvm(ir.Module.parse(source)))
    assert len(compile_to_object(text, CpuTarget.host())) < 20_000
