# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows that a gather takes out of an array that is computed of others, computed of the rows of these.

So an embedding, `w[ids]`, does not need all of a weight that a product reads as the integers that it is computed of.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.build import broadcast, broadcast_scalar, constant, create, view
from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops import BROADCASTS, RESHAPES
from shlo_disc.shape_dialect.ops.access import defining_op, is_scalar_constant
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers

STEPS = {
    *(f"stablehlo.{name}" for name in ("convert", "bitcast_convert", "multiply", "divide", "add", "subtract")),
    *(f"stablehlo.{name}" for name in ("and", "concatenate", "shift_left", "shift_right_logical")),
    "stablehlo.shift_right_arithmetic",
}
"""Ops by which arrays are computed of narrow integers: those of elements, and concatenations."""


def takes_rows(op: ir.Operation, computed: Sequence[ir.Operation]) -> bool:
    """Tells whether an op is a gather of whole rows whose elements need nothing else of what `computed` compute."""
    return _is_of_rows(op) and _ends_before(op.operands[0], computed)


def compute_rows(op: ir.Operation) -> None:
    """Put what computes the rows alone in the place of a gather that takes them."""
    with ir.InsertionPoint(op), op.location:
        op.results[0].replace_all_uses_with(_Rows(op).of(op.operands[0]))
    op.erase()


def _is_of_rows(op: ir.Operation) -> bool:
    if op.name != "stablehlo.gather":
        return False
    numbers = _numbers(op)
    sizes = [size.constant for size in dims_of(op.operands[0])]
    first = len(dims_of(op.results[0])) - len(sizes) + 1
    return (
        None not in sizes
        and list(numbers.collapsed_slice_dims) == [0]
        and list(numbers.start_index_map) == [0]
        and not list(numbers.operand_batching_dims)
        and list(numbers.offset_dims) == list(range(first, first + len(sizes) - 1))
        and integers(op.attributes["slice_sizes"]) == [1, *sizes[1:]]
    )


def _ends_before(value: ir.Value, computed: Sequence[ir.Operation]) -> bool:
    """Tells whether the rows of a value are computed of rows of others, as far as `computed` compute it."""
    op = defining_op(value)
    sources = None if op is None else _sources(op)
    return op is None or (op not in computed if sources is None else all(_ends_before(v, computed) for v in sources))


def _sources(op: ir.Operation) -> list[ir.Value] | None:
    """The operands whose rows those of the result are computed of; None where they are not."""
    if op.name in STEPS:
        is_along_rows = op.name == "stablehlo.concatenate" and _axis(op) == 0
        return None if is_along_rows else list(op.operands)
    rows = dims_of(op.results[0])[:1]
    if op.name in RESHAPES and len(op.operands) == 1:
        return list(op.operands) if dims_of(op.operands[0])[:1] == rows and rows else None
    if op.name not in BROADCASTS or len(op.operands) != 1 or 0 in integers(op.attributes["broadcast_dimensions"])[1:]:
        return None
    return list(op.operands) if _has_rows(op) else []


def _has_rows(op: ir.Operation) -> bool:
    """Tells whether the operand of a broadcast has the rows of the result, or one for all."""
    is_first = integers(op.attributes["broadcast_dimensions"])[:1] == [0]
    return is_first and dims_of(op.operands[0])[0] == dims_of(op.results[0])[0]


def _axis(op: ir.Operation) -> int:
    return int(ir.IntegerAttr(op.attributes["dimension"]).value)


def _numbers(op: ir.Operation) -> stablehlo.GatherDimensionNumbers:
    return stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])


class _Rows:
    """The rows that a gather takes, of any array with as many rows, at the insertion point."""

    def __init__(self, gather: ir.Operation):
        self.gather = gather
        self.outer = dims_of(gather.results[0])[
            : len(dims_of(gather.results[0])) - len(dims_of(gather.operands[0])) + 1
        ]

    def of(self, value: ir.Value) -> ir.Value:
        """The rows of a value."""
        op = defining_op(value)
        if op is not None and is_scalar_constant(op):
            return self._constant(op, value)
        sources = None if op is None else _sources(op)
        if op is None or sources is None:
            return self._gathered(value)
        if op.name in BROADCASTS:
            return self._broadcast(op)
        own = [self.of(source) for source in sources]
        if op.name in RESHAPES:
            return view(own[0], self._dims(value))
        attributes = {name: op.attributes[name] for name in op.attributes}
        if op.name == "stablehlo.concatenate":
            i64 = ir.IntegerType.get_signless(64)
            attributes["dimension"] = ir.IntegerAttr.get(i64, _axis(op) + len(self.outer) - 1)
        type_ = tensor_type(self._dims(value), element_type_of(value))
        return create(op.name.removeprefix("stablehlo."), own, type_, attributes)

    def _dims(self, value: ir.Value) -> tuple[Expr, ...]:
        return (*self.outer, *dims_of(value)[1:])

    def _constant(self, op: ir.Operation, value: ir.Value) -> ir.Value:
        number = array_of(op).ravel()[0].item()
        return broadcast_scalar(constant(number, element_type_of(value)), self._dims(value))

    def _broadcast(self, op: ir.Operation) -> ir.Value:
        source, positions = op.operands[0], integers(op.attributes["broadcast_dimensions"])
        first: list[int] = []
        if _has_rows(op):
            source, positions, first = self.of(source), positions[1:], list(range(len(self.outer)))
        elif positions[:1] == [0]:  # one row for all
            source, positions = view(source, dims_of(source)[1:]), positions[1:]
        later = [position + len(self.outer) - 1 for position in positions]
        return broadcast(source, self._dims(op.results[0]), [*first, *later])

    def _gathered(self, value: ir.Value) -> ir.Value:
        sizes, first = [size.constant or 0 for size in dims_of(value)], len(self.outer)
        index_axis = _numbers(self.gather).index_vector_dim
        numbers = stablehlo.GatherDimensionNumbers.get(
            offset_dims=list(range(first, first + len(sizes) - 1)),
            collapsed_slice_dims=[0],
            operand_batching_dims=[],
            start_indices_batching_dims=[],
            start_index_map=[0],
            index_vector_dim=index_axis,
        )
        attributes = {name: self.gather.attributes[name] for name in self.gather.attributes}
        attributes |= {"dimension_numbers": numbers, "slice_sizes": ir.DenseI64ArrayAttr.get([1, *sizes[1:]])}
        type_ = tensor_type(self._dims(value), element_type_of(value))
        return create("gather", [value, self.gather.operands[1]], type_, attributes)


__all__ = ["STEPS", "compute_rows", "takes_rows"]
