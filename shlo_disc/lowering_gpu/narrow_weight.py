# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of narrow integers as the right side of a product: what they are, and an element of one as a float.

The call of `dequantized_dot` describes them (`transforms/simplify/dequantized_products.py`). Each element is computed
as in the program: converted, less its zero point, times its scale, and rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import Element, constant_like, convert, from_memory, round_to
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.index_math import divided, times
from shlo_disc.lowering_gpu.kernel import flat_view
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.dialect.fusion import Dot, fusion_of
from shlo_disc.shape_dialect.dialect.host import Guard
from shlo_disc.shape_dialect.dialect.library import library_function_of
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.mlir import arith, func, ir, memref
from shlo_disc.shape_dialect.symbolic.facts import Relation

CODES = ("i8", "ui8", "i4", "ui4", "i4", "ui4", "f8E4M3FN", "f8E5M2")
"""The elements of `CODES` in transforms/simplify/narrow_integers.py: those of pairs are halves of bytes."""

ROUNDINGS = ("f32", "bf16", "f16")
"""The types that scaled weights are rounded to, by their number in the call."""

F32 = Element("f32")


@dataclass(frozen=True)
class Parameter:
    """The scales or the zero points of a weight: one `number` or, where there is an `element` type, a tensor of them,
    with the distances from one group to the next and from one column to the next."""

    number: float = 0
    element: Element | None = None
    of_group: int = 0
    of_column: int = 0

    @property
    def name(self) -> str:
        """Part of a kernel's name."""
        if self.element is None:
            return f"{np.float32(self.number).view(np.uint32):x}"
        return f"{self.element.name}_{self.of_group}_{self.of_column}"


@dataclass(frozen=True)
class NarrowWeight:
    """A weight of `rows` (the depth of the product) and `columns`, of the element type `code`.

    by_columns: neighbours in memory are along the depth. half: the distance of rows that share a byte, 0 where none do.
    group: the rows that share a scale and a zero point.
    """

    code: Element
    rows: int
    columns: int
    by_columns: bool
    half: int
    group: int
    scale: Parameter
    zero: Parameter
    rounding: Element

    @staticmethod
    def of(fusion: func.FuncOp) -> NarrowWeight | None:
        """The weight of a product that a fusion is; None where that is no narrow one."""
        what = fusion_of(fusion)
        if not isinstance(what, Dot) or not what.narrow:
            return None
        function = library_function_of(next(iter(fusion.entry_block.operations)))
        told = function.parameters

        def parameter(name: str) -> Parameter:
            if name not in told:
                return Parameter(float(np.uint32(told[f"{name}_bits"]).view(np.float32)))
            element = Element(str(function.operands[told[name]]))
            return Parameter(0, element, told[f"{name}_k"], told[f"{name}_n"])

        code, rounding = Element(CODES[told["code"]]), Element(ROUNDINGS[told["rounding"]])
        by_columns = bool(told["dense_columns"])
        scale, zero = parameter("scale"), parameter("zero")
        return NarrowWeight(code, told["k"], told["n"], by_columns, told["half"], told["group"], scale, zero, rounding)

    @property
    def tensors(self) -> dict[str, Parameter]:
        """The scales and the zero points that are tensors, by name."""
        return {name: p for name, p in (("scale", self.scale), ("zero", self.zero)) if p.element is not None}

    @property
    def elements(self) -> list[Element]:
        """The element types of the buffers that a kernel reads: the bytes, then scales and zero points."""
        return [self.code, *(p.element for p in self.tensors.values() if p.element is not None)]

    @property
    def name(self) -> str:
        """Part of a kernel's name, other for other weights."""
        of = (self.code.name, self.half, f"{self.rows}x{self.columns}", self.group, self.scale.name, self.zero.name)
        return "_".join(map(str, (*of, self.rounding.name)))

    @cached_property
    def byte_rows(self) -> int:
        """The rows of bytes."""
        return self.rows // 2 if self.half else self.rows

    def bytes_at(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """The place of a byte in memory."""
        if self.by_columns:
            return arith.addi(times(column, self.byte_rows), row)
        return arith.addi(times(row, self.columns), column)

    def in_bytes(self, k: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        """The row of bytes in which row `k` of the weight lies, and which half of them, if it is one."""
        if not self.half:
            return k, None
        if self.half == 1:
            half, row = divided(k, 2)
            return row, half
        return divided(k, self.byte_rows)


def row_guards(problem: MatrixProduct, fusion: func.FuncOp) -> tuple[Guard, ...]:
    """The choice between a narrow weight and one that is written, where it depends on the rows of a product."""
    what = fusion_of(fusion)
    if not isinstance(what, Dot) or not what.narrow or problem.rhs in what.narrow:
        return ()
    few = (Relation.le(problem.m.size, GPU_POLICY.product_tile),)
    return (Guard("narrow weight", "weight written as floats", few, of_size=True),) if few[0].symbols() else ()


class WeightElements:
    """The elements of a weight whose buffers are told to a kernel, at the insertion point."""

    def __init__(self, weight: NarrowWeight, pointers: Sequence[ir.Value]):
        if len(pointers) != len(weight.elements):
            raise CompilerError("kernels: a narrow weight is told other buffers")
        self.weight = weight
        self.pointer, *others = pointers
        self.bytes = flat_view(self.pointer, index_constant(weight.byte_rows * weight.columns))
        self.pointers = dict(zip(weight.tensors, others, strict=True))
        self.memory = {name: self._view(name, weight.tensors[name]) for name in self.pointers}

    def at(self, k: ir.Value, column: ir.Value) -> ir.Value:
        """The element of a row and a column, an f32 in a register."""
        weight = self.weight
        row, half = weight.in_bytes(k)
        byte = memref.load(self.bytes, [weight.bytes_at(row, column)])
        if half is not None:
            amount = arith.index_cast(byte.type, times(half, 4))
            byte = arith.shrui(byte, amount)
        value = convert(from_memory(byte, weight.code), weight.code, F32)
        if self.weight.zero.number:
            value = arith.subf(value, constant_like(value, self.weight.zero.number))
        value = self.scaled(value, lambda name: self.parameter(name, k, column))
        return round_to(value, self.weight.rounding)

    def scaled(self, value: ir.Value, parameter: Callable[[str], ir.Value]) -> ir.Value:
        """A converted element, or several, less a zero point that is one number, less one that is not, times the scale.
        `parameter`: gives one that is a tensor, by name, in the type of the value."""
        zero, scale = self.weight.zero, self.weight.scale
        if zero.element is not None:
            value = arith.subf(value, parameter("zero"))
        if scale.element is not None:
            value = arith.mulf(value, parameter("scale"))
        elif scale.number != 1:
            value = arith.mulf(value, constant_like(value, scale.number))
        return value

    def parameter(self, name: str, k: ir.Value, column: ir.Value) -> ir.Value:
        """The scale or the zero point of an element, an f32."""
        return self.as_f32(name, memref.load(self.memory[name], [self.place_of(name, k, column)]))

    def as_f32(self, name: str, loaded: ir.Value) -> ir.Value:
        """A scale or a zero point from memory, or several, in registers."""
        element = self.weight.tensors[name].element
        if element is None:
            raise CompilerError("kernels: a number has no place in memory")
        return convert(from_memory(loaded, element), element, F32)

    def place_of(self, name: str, k: ir.Value, column: ir.Value) -> ir.Value:
        """The place of the scale or the zero point of an element."""
        told = self.weight.tensors[name]
        place = times(column, told.of_column)
        if self.weight.group == self.weight.rows:
            return place
        _, group = divided(k, self.weight.group)
        return arith.addi(times(group, told.of_group), place)

    def _view(self, name: str, told: Parameter) -> ir.Value:
        groups = self.weight.rows // self.weight.group
        reach = (groups - 1) * told.of_group + (self.weight.columns - 1) * told.of_column + 1
        return flat_view(self.pointers[name], index_constant(reach))


__all__ = ["F32", "NarrowWeight", "Parameter", "WeightElements", "row_guards"]
