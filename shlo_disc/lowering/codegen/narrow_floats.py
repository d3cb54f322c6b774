# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floats of 16 bits and fewer on processors without instructions for them.

Where a processor lacks an instruction LLVM calls a helper of its run-time library, which generated code does not have.
So arithmetic on bf16 is done in f32 and rounded after each op, and the rounding itself is spelled out in integer ops
(the bf16 instructions of AVX-512 are not used: they flush subnormals). f16 goes through the F16C conversions, except
for the ops that LLVM has no inline expansion of. Narrowing from f64 goes through an f32 that is rounded to odd, after
which the last rounding is exact (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
using rounding to odd"). Floats of a byte or less are integers in registers, too: `small_floats` has their conversions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.mlir import arith, ir, math

from .bf16_storage import store_bf16_as_integers
from .small_floats import FORMATS, decode, encode

_ARITHMETIC = frozenset(
    "arith." + name
    for name in ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf", "sitofp", "uitofp",
                 "fptosi", "fptoui", "cmpf", "negf")
)  # fmt: skip
_NOT_INLINE_ON_F16 = frozenset(("arith.maxnumf", "arith.minnumf", "vector.reduction"))


def legalize_narrow_floats(module: ir.Module, types: Iterable[ir.Type]) -> None:
    """Rewrite, in place, the ops on 16-bit floats that have no inline form everywhere. Each op still rounds once.

    `types`: those of the module's values.
    """
    text = " ".join(map(str, types))
    if "f16" not in text and not any(name in text for name in FORMATS):
        return
    for op in _collect(module, _needs_widening):
        _widen(op)
    for op in _collect(module, _narrows_double):
        _replace(op, lambda op: arith.truncf(op.results[0].type, _round_to_odd_f32(op.operands[0])))
    legalize_small_floats(module)
    for op in _collect(module, _narrows_to_bf16):
        _replace(op, lambda op: _truncate_to_bf16(op.operands[0], op.results[0].type))
    for op in _collect(module, _extends_bf16):
        _replace(op, lambda op: _extend_bf16(op.operands[0], op.results[0].type))
    if "bf16" in text:
        store_bf16_as_integers(module)


def _collect(module: ir.Module, wanted: Callable[[ir.Operation], bool]) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if wanted(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _needs_widening(op: ir.Operation) -> bool:
    elements = {_element(value.type) for value in (*op.operands, *op.results)}
    if "bf16" in elements:
        return op.name in _ARITHMETIC or op.name.startswith("math.") or op.name == "vector.reduction"
    return "f16" in elements and op.name in _NOT_INLINE_ON_F16


def _narrows_double(op: ir.Operation) -> bool:
    return op.name == "arith.truncf" and _element(op.operands[0].type) == "f64" and _is_narrow(op.results[0].type)


def _narrows_to_bf16(op: ir.Operation) -> bool:
    return op.name == "arith.truncf" and _element(op.results[0].type) == "bf16"


def _extends_bf16(op: ir.Operation) -> bool:
    return op.name == "arith.extf" and _element(op.operands[0].type) == "bf16"


def _is_narrow(kind: ir.Type) -> bool:
    return _element(kind) in ("f16", "bf16")


def _is_small(kind: ir.Type) -> bool:
    return _element(kind) in FORMATS


def legalize_small_floats(module: ir.Module) -> None:
    """Rewrite floats of a byte or less, in place. Only conversions and bitcasts use them, and those work on codes."""
    for op in _collect(module, lambda op: op.name == "arith.truncf" and _is_small(op.results[0].type)):
        _replace(op, lambda op: _truncate_to_small(op.operands[0], op.results[0].type))
    for op in _collect(module, lambda op: op.name == "arith.extf" and _is_small(op.operands[0].type)):
        _replace(op, lambda op: _extend_small(op.operands[0], op.results[0].type))
    leaving = lambda op: _is_small(op.operands[0].type) and not _is_small(op.results[0].type)  # noqa: E731
    for op in _collect(module, lambda op: op.name == "arith.bitcast" and leaving(op)):
        _replace(op, lambda op: _code_of(op.operands[0]))
    for op in reversed(_collect(module, lambda op: op.name == "arith.bitcast" and _is_small(op.results[0].type))):
        op.erase()


def _truncate_to_small(value: ir.Value, kind: ir.Type) -> ir.Value:
    single = _round_to_odd_f32(value) if _element(value.type) == "f64" else value
    return arith.bitcast(kind, encode(single, _element(kind)))


def _extend_small(value: ir.Value, kind: ir.Type) -> ir.Value:
    single = decode(_code_of(value), _element(value.type))
    return single if single.type == kind else arith.extf(kind, single)


def _code_of(value: ir.Value) -> ir.Value:
    """The integer that a small float is a bitcast of."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.bitcast":
        raise CompilerError(f"codegen: {value} is neither a conversion nor a bitcast")
    source = owner.operands[0]
    return _code_of(source) if _is_small(source.type) else source


def _replace(op: ir.Operation, build: Callable[[ir.Operation], ir.Value]) -> None:
    with ir.InsertionPoint(op), op.location:
        value = build(op)
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _widen(op: ir.Operation) -> None:
    """Do the op in f32: extend its 16-bit operands, round its 16-bit result."""

    def build(op: ir.Operation) -> ir.Value:
        operands = [_extended(value) for value in op.operands]
        kind = op.results[0].type
        wide = _like(kind, ir.F32Type.get()) if _is_narrow(kind) else kind
        attributes = {name: op.attributes[name] for name in op.attributes}
        value = ir.Operation.create(op.name, [wide], operands, attributes).result
        return arith.truncf(kind, value) if wide != kind else value

    _replace(op, build)


def _extended(value: ir.Value) -> ir.Value:
    return arith.extf(_like(value.type, ir.F32Type.get()), value) if _is_narrow(value.type) else value


def _truncate_to_bf16(value: ir.Value, kind: ir.Type) -> ir.Value:
    """f32 -> bf16, to nearest, ties to even; NaN becomes a quiet NaN that keeps its sign and upper payload bits."""
    bits_type = _like(kind, ir.IntegerType.get_signless(32))
    half_type = _like(kind, ir.IntegerType.get_signless(16))
    bits = arith.bitcast(bits_type, value)
    upper = arith.shrui(bits, _constant(bits_type, 16))
    last = arith.andi(upper, _constant(bits_type, 1))
    rounded = arith.shrui(arith.addi(bits, arith.addi(last, _constant(bits_type, 0x7FFF))), _constant(bits_type, 16))
    quiet = arith.ori(upper, _constant(bits_type, 0x40))
    is_nan = arith.cmpf(arith.CmpFPredicate.UNO, value, value)
    return arith.bitcast(kind, arith.trunci(half_type, arith.select(is_nan, quiet, rounded)))


def _element(kind: ir.Type) -> str:
    return str(kind.element_type) if isinstance(kind, ir.VectorType) else str(kind)


def _extend_bf16(value: ir.Value, kind: ir.Type) -> ir.Value:
    """bf16 -> f32 or f64: the upper half of the f32."""
    half_type = _like(kind, ir.IntegerType.get_signless(16))
    bits_type = _like(kind, ir.IntegerType.get_signless(32))
    bits = arith.extui(bits_type, arith.bitcast(half_type, value))
    single = arith.bitcast(_like(kind, ir.F32Type.get()), arith.shli(bits, _constant(bits_type, 16)))
    return single if single.type == kind else arith.extf(kind, single)


def _like(kind: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType.get(kind.shape, element) if isinstance(kind, ir.VectorType) else element


def _constant(kind: ir.Type, value: int) -> ir.Value:
    if not isinstance(kind, ir.VectorType):
        return arith.constant(kind, ir.IntegerAttr.get(kind, value))
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(kind.element_type, value)))


def _round_to_odd_f32(wide: ir.Value) -> ir.Value:
    """The f32 next to the f64 `wide`, odd unless exact. NaN stays NaN; beyond the f32 range it gives the largest."""
    single = _like(wide.type, ir.F32Type.get())
    bits_type = _like(wide.type, ir.IntegerType.get_signless(32))
    nearest = arith.truncf(single, wide)
    back = arith.extf(wide.type, nearest)
    bits = arith.bitcast(bits_type, nearest)
    one = _constant(bits_type, 1)
    # Stepping the magnitude: up when the nearest fell short of the exact value, else down.
    short = arith.cmpf(arith.CmpFPredicate.OGT, math.absf(wide), math.absf(back))
    stepped = arith.select(short, arith.addi(bits, one), arith.subi(bits, one))
    is_odd = arith.cmpi(arith.CmpIPredicate.ne, arith.andi(bits, one), _constant(bits_type, 0))
    inexact = arith.cmpf(arith.CmpFPredicate.ONE, wide, back)
    kept = arith.select(is_odd, bits, stepped)
    return arith.bitcast(single, arith.select(inexact, kept, bits))
