# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sizes that ops of a static program state, which are `?` now: read from the values that have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import TABLE
from shlo_disc.shape_dialect.ops.dynamic_forms import DynamicForm
from shlo_disc.shape_dialect.ops.size_relations import Size, SizeRelations, numbers_of, rank
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .unknowns import Unknowns

Factors = Sequence[int | Size]
"""Numbers and sizes of values, whose product is a size."""


def form_of(op: ir.OpView) -> DynamicForm | None:
    """The dynamic form that an op needs where its result has dynamic sizes."""
    name = op.operation.name
    form = TABLE[name].dynamic_form if name in TABLE else None
    return form if form is not None and (form.of_type or form.whole is not None) else None


def stated_sizes(op: ir.OpView) -> dict[Size, list[Size]]:
    """The sizes of an op's result that its type states, each with the operands' sizes whose product it is, if any."""
    form = form_of(op)
    if form is None or not form.of_type:
        return {}
    factors, result = _OperandSizes(op).factors, op.results[0]
    return {size: factors.get(size, []) for size in (Size(result, axis) for axis in range(rank(result)))}


class _OperandSizes(SizeRelations):
    """The sizes of an op's result that are products of its operands' sizes, by the op's own relations."""

    def __init__(self, op: ir.OpView):
        self.factors: dict[Size, list[Size]] = {}
        self._result = op.results[0]
        relate = TABLE[op.operation.name].relate
        if relate is not None:
            relate(self, op)

    def same(self, a: Size, b: Size) -> None:
        if b.value == self._result:
            self.factors[b] = [a]

    def computed(self, result: Size, sources: Iterable[Size]) -> None:
        self.factors[result] = list(sources)

    def fix(self, value: ir.Value, axes: Iterable[int] | None = None) -> None:
        """A size that is fixed is a number, which needs no source."""


class ProgramSizes:
    """The `StatedSizes` of a program, whose sizes are symbols for values of the program: tensors of i32.

    related: for sizes of results that types state, the operands' sizes of which they are the products. All others have
    a source among `unknowns`.
    """

    def __init__(self, unknowns: Unknowns, related: Mapping[Size, Sequence[Size]]):
        self._related = related
        self._forms: dict[ir.Value, ir.Value] = {}
        self._unknowns = unknowns
        self._factors: dict[Expr, Factors] = {}
        self._i32 = ir.IntegerType.get_signless(32)
        self._replaced: ir.Operation | None = None
        self._position = 0

    def replace(self, op: ir.OpView, position: int, form: DynamicForm) -> None:
        """Replace an op within the block's operation at a position by its dynamic form.

        The op stays, for the sizes that name its result.
        """
        self._replaced, self._position = op.operation, position
        if not form.of_type and not self._states_sizes(op, form):
            return
        with ir.InsertionPoint(op), op.location:
            made = form.build(self, op)
        for result, value in zip(op.results, made if isinstance(made, list) else [made], strict=True):
            self._forms[result] = value
            result.replace_all_uses_with(value)

    def _states_sizes(self, op: ir.OpView, form: DynamicForm) -> bool:
        return form.whole is not None and any(n.constant is None for n in self.numbers(op, form.whole.attribute))

    def dims(self, value: ir.Value) -> Dims:
        """The sizes of an operand or result of the op that is being replaced."""
        tensor = ir.RankedTensorType(value.type)
        return tuple(
            self._symbol(self._factors_of(Size(value, axis))) if tensor.is_dynamic_dim(axis) else Expr.const(size)
            for axis, size in enumerate(tensor.shape)
        )

    def numbers(self, op: ir.OpView, name: str) -> Dims:
        """The numbers of an attribute. One for an axis that is taken as a whole is the operand's size."""
        numbers = [Expr.const(n) for n in numbers_of(op, name)]
        form = form_of(op)
        if form is not None and form.whole is not None and form.whole.attribute == name:
            result, whole = ir.RankedTensorType(op.results[0].type), self.dims(op.operands[0])
            for axis, target in form.whole.axes(op):
                if result.is_dynamic_dim(target):
                    numbers[axis] = whole[axis]
        return tuple(numbers)

    def element(self, constant: ir.OpView) -> Expr | None:
        """None: the elements of a constant are what they are in the static program."""
        return None

    def sizes(self, dims: Sequence[Expr], type_: ir.Type | None = None) -> ir.Value:
        """A tensor of these sizes, of rank 1 and of i32: no other type is asked for."""
        parts = [self._element(size) for size in dims]
        if len(parts) == 1:
            return parts[0]
        kind = ir.RankedTensorType.get([len(parts)], self._i32)
        return build.create("concatenate", parts, kind, {"dimension": integer_attr(0)})

    def _symbol(self, factors: Factors) -> Expr:
        symbol = Expr.symbol(f"size{len(self._factors)}")
        self._factors[symbol] = factors
        return symbol

    def _factors_of(self, size: Size) -> Factors:
        owner = size.value.owner
        if isinstance(owner, ir.Block) or owner != self._replaced:
            return [size]
        if size in self._related:
            return [self._current(factor) for factor in self._related[size]]
        source = self._unknowns.source(self._position, size)
        if source is None:
            raise ValueError(f"no value has the size of axis {size.axis} of {size.value}")
        return [Size(self._forms.get(source.value, source.value), source.axis)]

    def _current(self, size: Size) -> int | Size:
        """A size of an operand as it is now: a number, or that of the operand's form."""
        value = self._forms.get(size.value, size.value)
        tensor = ir.RankedTensorType(value.type)
        return Size(value, size.axis) if tensor.is_dynamic_dim(size.axis) else int(tensor.shape[size.axis])

    def _element(self, size: Expr) -> ir.Value:
        """A tensor<1xi32>."""
        one = ir.RankedTensorType.get([1], self._i32)
        if size.constant is not None:
            return self._number(size.constant, one)
        total, *others = [self._scalar(factor) for factor in self._factors[size]]
        for other in others:
            total = build.create("multiply", [total, other], total.type)
        return build.create("reshape", [total], one)

    def _scalar(self, factor: int | Size) -> ir.Value:
        kind = ir.RankedTensorType.get([], self._i32)
        if isinstance(factor, int):
            return self._number(factor, kind)
        return build.create("get_dimension_size", [factor.value], kind, {"dimension": integer_attr(factor.axis)})

    def _number(self, number: int, kind: ir.Type) -> ir.Value:
        return build.dense(ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(self._i32, number)))


__all__ = ["ProgramSizes", "form_of", "stated_sizes"]
