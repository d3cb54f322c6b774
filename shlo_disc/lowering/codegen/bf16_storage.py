# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bf16 in memory and registers as 16-bit integers.

When an op that only moves bf16 lanes (a masked load, a gather) has to be split up, LLVM goes through f32 and back, by a
call of its run-time library. On integers it just moves them.
"""

from __future__ import annotations

import struct

from shlo_disc.shape_dialect.mlir import arith, ir

from .llvm_text import literal_bits


def store_bf16_as_integers(module: ir.Module) -> None:
    """Turn, in place, every type with bf16 in it into the same type with i16.

    To be called when no arithmetic on bf16 is left but that of instructions, whose operands are bitcasts: only
    constants, moves and bitcasts.
    """
    operations = [module.operation]

    def visit(op: ir.Operation) -> ir.WalkResult:
        operations.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in operations[1:]:
        if op.name == "arith.constant" and "bf16" in str(op.results[0].type):
            _replace_constant(op)
        elif not _is_instruction_operand(op):
            _retype(op)


def _is_instruction_operand(op: ir.Operation) -> bool:
    if op.name != "llvm.bitcast":
        return False
    return all(use.owner.operation.name == "llvm.call_intrinsic" for use in op.results[0].uses)


def _retype(op: ir.Operation) -> None:
    for value in (*op.results, *(a for region in op.regions for block in region for a in block.arguments)):
        if "bf16" in str(value.type):
            value.set_type(_as_integer(value.type))
    for name in list(op.attributes):
        attribute = op.attributes[name]
        if isinstance(attribute, ir.TypeAttr) and "bf16" in str(attribute.value):
            op.attributes[name] = ir.TypeAttr.get(_as_integer(attribute.value))


def _as_integer(kind: ir.Type) -> ir.Type:
    return ir.Type.parse(str(kind).replace("bf16", "i16"), kind.context)


def _replace_constant(op: ir.Operation) -> None:
    attribute, kind = op.attributes["value"], _as_integer(op.results[0].type)
    with ir.InsertionPoint(op), op.location:
        if isinstance(attribute, ir.FloatAttr):
            value = arith.constant(kind, ir.IntegerAttr.get(kind, _bits(attribute.value)))
        else:
            value = arith.constant(kind, _integer_elements(attribute, kind))
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _integer_elements(attribute: ir.Attribute, kind: ir.Type) -> ir.Attribute:
    element = ir.ShapedType(kind).element_type
    bits = [_signed(b) for b in _elements(str(attribute))]
    if len(bits) == 1:
        return ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(element, bits[0]))
    return ir.DenseElementsAttr.get([ir.IntegerAttr.get(element, b) for b in bits], kind)


def _elements(text: str) -> list[int]:
    """Bit patterns of the elements in the text of a dense attribute; one when it is a splat.

    The bindings give no access to the elements of a bf16 attribute but its text: decimals, bit patterns, or one string
    of bytes when there are many.
    """
    body = text[text.index("<") + 1 : text.rindex(">", 0, text.rindex(":"))]
    if body.startswith('"0x'):
        data = bytes.fromhex(body[3:-1])
        return [bits for (bits,) in struct.iter_unpack("<H", data)]
    words = body.replace("[", " ").replace("]", " ").replace(",", " ").split()
    return [int(w, 16) if w.startswith("0x") else literal_bits(w, "bfloat") for w in words]


def _bits(value: float) -> int:
    """Bits of the bf16 with this value, as a signed integer of 16 bits."""
    return int(struct.unpack("<hh", struct.pack("<f", value))[1])


def _signed(bits: int) -> int:
    return bits - (1 << 16) if bits >> 15 else bits
