# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From structured kernels to the LLVM dialect: the pass pipelines as text, and what they accept and leave behind."""

from __future__ import annotations

import re
from collections.abc import Callable

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.mlir import ir, passmanager

from .narrow_floats import legalize_narrow_floats
from .small_floats import FORMATS

# Folding before the conversion works on structured loops; folding after it works on what address arithmetic became.
# From the top down, the time of canonicalization grows with the square of the constants of a function: MLIR numbers the
# ops of a block anew for each that it moves to the front. The first `cse` leaves fewer.
CPU_PIPELINE = (
    "builtin.module("
    "func.func(cse,canonicalize{top-down=false},cse),"
    "expand-strided-metadata,"
    "lower-affine,"
    "convert-vector-to-scf{full-unroll=true},"
    "convert-scf-to-cf,"
    "convert-vector-to-llvm{reassociate-fp-reductions=true},"
    "finalize-memref-to-llvm,"
    "convert-math-to-llvm,"
    "convert-arith-to-llvm,"
    "convert-index-to-llvm,"
    "convert-ub-to-llvm,"
    "convert-cf-to-llvm,"
    "convert-func-to-llvm,"
    "reconcile-unrealized-casts,"
    "canonicalize{top-down=false},cse"
    ")"
)

_INPUT_DIALECTS = frozenset({"builtin", "func", "scf", "cf", "arith", "math", "vector", "memref", "index", "affine",
                             "llvm", "ub"})  # fmt: skip

# The math ops that every supported processor computes inline; LLVM would turn any other into a libm call per lane.
INLINE_MATH = frozenset(
    "math." + name
    for name in ("fma", "absf", "absi", "copysign", "sqrt", "rsqrt", "floor", "ceil", "round", "roundeven", "trunc",
                 "ctpop", "ctlz", "cttz", "isnan", "isinf", "isfinite", "isnormal")
)  # fmt: skip

_REJECTED = {
    "arith.remf": "would call fmod",
    "memref.alloc": "generated code never allocates",
    "memref.dealloc": "generated code never allocates",
    "memref.realloc": "generated code never allocates",
    "memref.copy": "would call a library function for strided memory",
    "llvm.inline_asm": "is not portable",
    "llvm.frem": "would call fmod",
}

_INTRINSICS = frozenset(
    "llvm.intr." + name
    for name in (
        "fma", "fmuladd", "fabs", "copysign", "sqrt", "floor", "ceil", "round", "roundeven", "trunc", "rint",
        "nearbyint", "maximum", "minimum", "maxnum", "minnum", "maximumnum", "minimumnum", "is.fpclass", "ctpop",
        "ctlz", "cttz", "abs", "smax", "smin", "umax", "umin", "bswap", "bitreverse", "fshl", "fshr", "sadd.sat",
        "uadd.sat", "ssub.sat", "usub.sat", "sshl.sat", "ushl.sat", "sadd.with.overflow", "uadd.with.overflow",
        "ssub.with.overflow", "usub.with.overflow", "smul.with.overflow", "umul.with.overflow", "masked.load",
        "masked.store", "masked.gather", "masked.scatter", "masked.expandload", "masked.compressstore",
        "memcpy", "memcpy.inline", "memmove", "memset", "memset.inline", "prefetch", "assume", "expect",
        "lifetime.start", "lifetime.end", "invariant.start", "invariant.end", "stacksave", "stackrestore",
        "vector.reduce.add", "vector.reduce.mul", "vector.reduce.and", "vector.reduce.or", "vector.reduce.xor",
        "vector.reduce.smax", "vector.reduce.smin", "vector.reduce.umax", "vector.reduce.umin",
        "vector.reduce.fadd", "vector.reduce.fmul", "vector.reduce.fmax", "vector.reduce.fmin",
        "vector.reduce.fmaximum", "vector.reduce.fminimum", "vector.insert", "vector.extract",
        "stepvector", "vector.interleave2", "vector.deinterleave2",
    )
)  # fmt: skip

# Intrinsics without an op for vectors of their own. `power_scaling` computes ldexp where LLVM does not; the others are
# instructions: products of pairs or fours of neighbours, added to a wider sum.
_CALLED_INTRINSICS = frozenset((
    "llvm.ldexp", "llvm.x86.avx512bf16.dpbf16ps.512", "llvm.x86.avx512.vpdpbusd.512", "llvm.x86.avx512.vpdpwssd.512",
    "llvm.x86.avx512.pmaddw.d.512", "llvm.x86.avx2.pmadd.wd", "llvm.x86.sse2.pmadd.wd", "llvm.x86.ldtilecfg",
    "llvm.x86.tilerelease", "llvm.x86.tilezero", "llvm.x86.tileloadd64", "llvm.x86.tilestored64",
    "llvm.x86.tdpbf16ps", "llvm.x86.tdpbssd", "llvm.x86.tdpbuud",
))  # fmt: skip

_SCALARS = ("f16", "bf16", "f32", "f64")
_FLOAT = re.compile(r"(f|bf|tf)\d")


def check_input(module: ir.Module) -> set[ir.Type]:
    """The types of all values. Raise `CompilerError` naming the first op, or type, that the pipeline cannot take.

    Functions that are in the LLVM dialect already are left to `check_llvm_only`.
    """
    faults: dict[ir.Type, str] = {}
    _check(module, _fault, faults)
    return set(faults)


def _check(module: ir.Module, fault: Callable[[ir.Operation, str], str], faults: dict[ir.Type, str] | None) -> None:
    """Ask `fault` of every op, and of the types of all values where `faults` is to take the answers for them."""
    passed: set[str] = set()
    found: list[str] = []
    advance = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if faults is None and name in passed:
            return advance
        if faults is not None and name == "llvm.func":
            return ir.WalkResult.SKIP
        reason = "" if name in passed else fault(op, name)
        if not reason and faults is not None:
            reason = _type_fault_of(op, faults)
        if reason:
            found.append(f"codegen: {name} {reason} (at {op.location})")
            return ir.WalkResult.INTERRUPT
        if name not in _BY_OP:
            passed.add(name)
        return advance

    for op in module.body.operations:
        op.operation.walk(visit)
        if found:
            raise CompilerError(found[0])


def _type_fault_of(op: ir.Operation, faults: dict[ir.Type, str]) -> str:
    """The fault of a type that the op gives a value, as a result or as an argument of its blocks."""
    kinds = [value.type for value in op.results]
    for region in op.regions:
        kinds += [argument.type for block in region.blocks for argument in block.arguments]
    for kind in kinds:
        if kind not in faults:
            faults[kind] = _type_fault(kind)
        if faults[kind]:
            return faults[kind]
    return ""


def _fault(op: ir.Operation, name: str) -> str:
    """The reason that code cannot be generated from `op`, or nothing."""
    dialect = name.split(".", 1)[0]
    if dialect not in _INPUT_DIALECTS:
        return "is not an op that code is generated from"
    if name in _REJECTED:
        return _REJECTED[name]
    if dialect == "llvm":
        return _llvm_fault(op, name)
    if dialect == "math" and name not in INLINE_MATH:
        return "would call libm; expand it with shlo_disc.lowering_cpu.vector_math"
    if name in _VECTOR_MEMORY and _is_packed_boolean(op):
        return "on i1 elements would pack eight to a byte; go through i8"
    return ""


def _llvm_fault(op: ir.Operation, name: str) -> str:
    if name.startswith("llvm.intr.") and name not in _INTRINSICS:
        return "is not an intrinsic known to be computed inline"
    if name == "llvm.call_intrinsic" and ir.StringAttr(op.attributes["intrin"]).value not in _CALLED_INTRINSICS:
        return "calls an intrinsic that is not known to be computed inline"
    return ""


_VECTOR_MEMORY = frozenset({"vector.load", "vector.store", "vector.maskedload", "vector.maskedstore", "vector.gather",
                            "vector.scatter", "vector.transfer_read", "vector.transfer_write",
                            "vector.expandload", "vector.compressstore"})  # fmt: skip


_BY_OP = _VECTOR_MEMORY | {"llvm.call_intrinsic"}
"""Ops that are judged one by one; all others by their names."""


def _is_packed_boolean(op: ir.Operation) -> bool:
    memories = [ir.MemRefType(v.type) for v in op.operands if isinstance(v.type, ir.MemRefType)]
    return any(str(m.element_type) == "i1" for m in memories)


def _type_fault(kind: ir.Type) -> str:
    if isinstance(kind, ir.VectorType) and kind.scalable:
        return "has a scalable vector, which no target here supports"
    element = kind.element_type if isinstance(kind, (ir.VectorType, ir.MemRefType)) else kind
    if _FLOAT.match(str(element)) and str(element) not in _SCALARS and str(element) not in FORMATS:
        return f"has element type {element}; convert it first"
    if isinstance(element, ir.IntegerType) and element.width > 128:
        return f"has element type {element}; at most 128 bits are supported"
    return ""


def check_llvm_only(module: ir.Module) -> None:
    """Raise `CompilerError` naming the first op that is not an LLVM-dialect op that processors compute inline."""

    def fault(op: ir.Operation, name: str) -> str:
        if not name.startswith("llvm."):
            return "is left after lowering to the LLVM dialect"
        return _REJECTED.get(name) or _llvm_fault(op, name)

    _check(module, fault, None)


def lower_to_llvm(module: ir.Module, pipeline: str = CPU_PIPELINE) -> ir.Module:
    """Lower `module` in place to the LLVM dialect and return it.

    Accepts func, scf, cf, arith, math (`INLINE_MATH` only), vector, memref, index, affine and llvm ops. Reductions of
    floats by addition and multiplication are reassociated into trees. Raises `CompilerError` naming the op when the
    module holds something else, does not verify, or is not wholly lowered.
    """
    types = check_input(module)
    with module.context:
        try:
            legalize_narrow_floats(module, types)
            passes = passmanager.PassManager.parse(pipeline)
            passes.enable_verifier(False)  # after each pass; the result is verified below
            passes.run(module.operation)
            module.operation.verify()
        except ir.MLIRError as error:
            raise CompilerError(f"codegen: lowering to the LLVM dialect failed: {error}") from error
    check_llvm_only(module)
    return module
