# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements: how they are held in memory and in registers, and the conversions from one type to another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.mlir import arith, ir


@dataclass(frozen=True)
class Element:
    """An element type as the kernels see it."""

    name: str

    @cached_property
    def is_float(self) -> bool:
        """Any float, those of a byte or less included."""
        return self.name[0] == "f" or self.name == "bf16"

    @cached_property
    def is_half(self) -> bool:
        """A float of 16 bits or fewer: held as f32 in registers."""
        return self.is_float and self.name not in ("f32", "f64")

    @cached_property
    def is_small_float(self) -> bool:
        """A float of a byte or less: a byte in memory."""
        return self.is_half and self.name not in ("f16", "bf16")

    @cached_property
    def is_bool(self) -> bool:
        """One byte in memory, i1 in registers."""
        return self.name == "i1"

    @cached_property
    def is_unsigned(self) -> bool:
        """ui2 to ui64, and booleans."""
        return self.name.startswith("ui") or self.is_bool

    @cached_property
    def width(self) -> int:
        """Bits in a register."""
        return 32 if self.is_half else int(self.name.lstrip("bfui"))

    @cached_property
    def bits(self) -> int:
        """Bits of the value itself."""
        return int(self.name[1]) if self.is_small_float else int(self.name.lstrip("bfui"))

    def register(self) -> ir.Type:
        """The type of a value in registers."""
        if self.is_half:
            return ir.F32Type.get()
        if self.is_float:
            return ir.F64Type.get() if self.name == "f64" else ir.F32Type.get()
        return ir.IntegerType.get_signless(self.width)

    def memory(self) -> ir.Type:
        """The type of an element in memory."""
        if self.bits <= 8:
            return ir.IntegerType.get_signless(8)
        return self.exact() if self.is_half else self.register()

    def exact(self) -> ir.Type:
        """The type that has exactly the values of the element."""
        return ir.Type.parse(self.name) if self.is_float else ir.IntegerType.get_signless(self.width)


@remembered
def element_of(type_: ir.Type) -> Element:
    """The element of a tensor type."""
    return Element(str(ir.RankedTensorType(type_).element_type))


def like(value: ir.Value, element: ir.Type) -> ir.Type:
    """The type of `value` (scalar or vector) with another element type."""
    if isinstance(value.type, ir.VectorType):
        return ir.VectorType.get(value.type.shape, element)
    return element


def number_attribute(element: ir.Type, number: float | int) -> ir.Attribute:
    """A scalar attribute of a signless integer or float type; integers beyond the type's range wrap around."""
    if not isinstance(element, ir.IntegerType):
        return ir.FloatAttr.get(element, float(number))
    half = 1 << (element.width - 1)
    return ir.IntegerAttr.get(element, (int(number) + half) % (2 * half) - half)


def constant_like(value: ir.Value, number: float | int) -> ir.Value:
    """`number` in every lane, of the type of `value`."""
    type_ = value.type
    attribute = number_attribute(type_.element_type if isinstance(type_, ir.VectorType) else type_, number)
    if isinstance(type_, ir.VectorType):
        return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, attribute))
    return arith.constant(type_, attribute)


def _widened_from(value: ir.Value, element: Element) -> ir.Value | None:
    """The half float that `value` is a widened copy of. Narrowing again would cost time and a NaN's payload."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.extf":
        return None
    source = owner.operands[0]
    return source if source.type == like(value, element.exact()) else None


def round_to(value: ir.Value, element: Element) -> ir.Value:
    """Round a register value to what its element type can hold."""
    if not element.is_half or _widened_from(value, element) is not None:
        return value
    narrow = arith.truncf(like(value, element.exact()), value)
    return arith.extf(value.type, narrow)


def from_memory(value: ir.Value, element: Element) -> ir.Value:
    """A loaded value as a register value."""
    if element.is_bool:
        return arith.cmpi(arith.CmpIPredicate.ne, value, constant_like(value, 0))
    if element.bits < 8:
        value = arith.trunci(like(value, ir.IntegerType.get_signless(element.bits)), value)
    if element.is_small_float:
        value = arith.bitcast(like(value, element.exact()), value)
    return arith.extf(like(value, element.register()), value) if element.is_half else value


def to_memory(value: ir.Value, element: Element) -> ir.Value:
    """A register value as it is stored."""
    if element.is_half:
        value = narrowed(value, element)
    if element.is_small_float:
        value = arith.bitcast(like(value, ir.IntegerType.get_signless(element.bits)), value)
    return arith.extui(like(value, element.memory()), value) if element.bits < 8 else value


def narrowed(value: ir.Value, element: Element) -> ir.Value:
    """A register value as the half float, or smaller one, that it stands for."""
    return _widened_from(value, element) or arith.truncf(like(value, element.exact()), value)


# ---- conversions ----------------------------------------------------------------------------------------------------


def convert(value: ir.Value, source: Element, target: Element) -> ir.Value:
    """Between element types, with XLA's semantics: floats to integers saturate, NaN becomes 0; to bool is `!= 0`."""
    result = like(value, target.register())
    if target.is_bool:
        zero = constant_like(value, 0)
        if source.is_float:
            return arith.cmpf(arith.CmpFPredicate.UNE, value, zero)
        return value if source.is_bool else arith.cmpi(arith.CmpIPredicate.ne, value, zero)
    if source.is_float and target.is_float:
        if source.width == target.width:
            return value
        return arith.extf(result, value) if target.width > source.width else arith.truncf(result, value)
    if source.is_float:
        return _float_to_integer(value, target, result)
    if target.is_float:
        return arith.uitofp(result, value) if source.is_unsigned else arith.sitofp(result, value)
    if source.width == target.width:
        return value
    if source.width > target.width:
        return arith.trunci(result, value)
    return arith.extui(result, value) if source.is_unsigned else arith.extsi(result, value)


def _float_to_integer(value: ir.Value, target: Element, result: ir.Type) -> ir.Value:
    low = 0 if target.is_unsigned else -(1 << (target.width - 1))
    high = (1 << (target.width if target.is_unsigned else target.width - 1)) - 1
    lowest, limit = constant_like(value, float(low)), constant_like(value, float(high + 1))
    above = arith.cmpf(arith.CmpFPredicate.OGE, value, limit)
    inside = arith.andi(
        arith.cmpf(arith.CmpFPredicate.OGT, value, lowest), arith.cmpf(arith.CmpFPredicate.OLT, value, limit)
    )
    safe = arith.select(inside, value, constant_like(value, 0.0))
    number = arith.fptoui(result, safe) if target.is_unsigned else arith.fptosi(result, safe)
    below = arith.cmpf(arith.CmpFPredicate.OLE, value, lowest)
    number = arith.select(below, constant_like(number, low), number)
    return arith.select(above, constant_like(number, high if high < 1 << 63 else -1), number)
