# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masked loads of more than a register, in parts of one.

Where a processor has no registers of masks (AVX2), the mask of an instruction is the signs of a vector. LLVM 22 takes a
wide masked load apart, simplifies the mask of a part whose lanes are all known to be off to any numbers whose sign is
right, such as 1, and then holds what is not 0 for lanes that are on (`combineMaskedLoadConstantMask`): it loads all of
that part, past the end of the buffer. What is off is chosen afterwards, so that no number is wrong. Here the parts are
loads of their own, and a part that is off is found, and dropped, before instructions are chosen.
"""

from __future__ import annotations

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.mlir import arith, ir, vector

from .cpu_target import CpuTarget


def split_masked_loads(module: ir.Module, target: CpuTarget) -> None:
    """Take masked loads apart in place, where `target` needs it."""
    if "avx" not in target.features or "avx512f" in target.features:
        return
    wide: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "vector.maskedload":
            wide.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in wide:
        type_ = ir.VectorType(op.results[0].type)
        lanes = target.vector_bits // _bits(type_.element_type)
        if type_.shape[0] > lanes:
            with ir.InsertionPoint(op), op.location:
                _split(op, type_, lanes)


def _bits(element: ir.Type) -> int:
    return ir.IntegerType(element).width if isinstance(element, ir.IntegerType) else ir.FloatType(element).width


def _split(op: ir.Operation, type_: ir.VectorType, lanes: int) -> None:
    if type_.shape[0] % lanes:
        raise CompilerError(f"codegen: a masked load of {type_.shape[0]} lanes is no multiple of a register's {lanes}")
    base, *indices, mask, others = op.operands
    part = ir.VectorType.get([lanes], type_.element_type)
    parts = []
    for first in range(0, type_.shape[0], lanes):
        place = [[first], [lanes], [1]]
        offset = arith.constant(ir.IndexType.get(), first)
        here = [*indices[:-1], arith.addi(indices[-1], offset)]
        chosen = _part_of_mask(mask, lanes, place)
        instead = vector.extract_strided_slice(part, others, *place)
        parts.append(vector.maskedload(part, base, here, chosen, instead))
    op.results[0].replace_all_uses_with(_joined(parts))
    op.erase()


def _joined(parts: list[ir.Value]) -> ir.Value:
    """One vector of 2 ** n others. Neighbours are joined first: LLVM takes longer for lanes put into a wide vector."""
    while len(parts) > 1:
        both = 2 * ir.VectorType(parts[0].type).shape[0]
        parts = [vector.shuffle(a, b, list(range(both))) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _part_of_mask(mask: ir.Value, lanes: int, place: list[list[int]]) -> ir.Value:
    """Lanes of a mask: of both operands where it is a conjunction, so that one that is off makes it a constant."""
    owner = mask.owner
    if isinstance(owner, ir.OpView) and owner.operation.name == "arith.andi":
        return arith.andi(*(_part_of_mask(operand, lanes, place) for operand in owner.operands))
    part = ir.VectorType.get([lanes], ir.VectorType(mask.type).element_type)
    return vector.extract_strided_slice(part, mask, *place)
