# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dynamic forms: the ops, or custom calls, that ops become which state sizes that are no numbers any more.

A static program is made symbolic in two ways: its sizes become `?` (`importer/symbolic.py`), or several programs that
differ in sizes become one (`pjrt/generalize/`). Both have the sizes that an op states, and build its form from these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.lapack_sizes import SHAPE_OPERANDS
from shlo_disc.shape_dialect.ops.size_relations import rank
from shlo_disc.shape_dialect.symbolic.expr import Expr


class NoDynamicFormError(Exception):
    """An op has no form for the sizes that it states."""


class StatedSizes(Protocol):
    """The sizes that ops state, as expressions."""

    def dims(self, value: ir.Value) -> Dims:
        """The sizes of a value."""

    def numbers(self, op: ir.OpView, name: str) -> Dims:
        """The numbers of an attribute; none where it is absent."""

    def element(self, constant: ir.OpView) -> Expr | None:
        """The size that each element of a constant is; None where all elements are one literal.

        Raises NoDynamicFormError when the elements differ.
        """

    def sizes(self, dims: Sequence[Expr], type_: ir.Type | None = None) -> ir.Value:
        """A tensor of these sizes, by default of rank 1, at the insertion point."""


Build = Callable[[StatedSizes, ir.OpView], "ir.Value | list[ir.Value]"]


@dataclass(frozen=True)
class WholeAxes:
    """The numbers of an attribute that are sizes of the first operand, where an op takes all of an axis.

    axes: for each axis of the operand that the result has as well, that of the result.
    """

    attribute: str
    axes: Callable[[ir.OpView], Iterable[tuple[int, int]]]


@dataclass(frozen=True)
class DynamicForm:
    """The dynamic form of an op.

    build: makes it at the insertion point, in front of the op; the values of the op's results.
    of_type: the type of the result states sizes that are neither attributes nor sizes of operands.
    whole: the attribute whose numbers change with the sizes of the operand, in a program that is the only sample.
    """

    build: Build
    of_type: bool = False
    whole: WholeAxes | None = None


def create(
    name: str, type_: ir.Type, operands: Sequence[ir.Value], attributes: Mapping[str, ir.Attribute] | None = None
) -> Any:
    """The result of a StableHLO op."""
    return ir.Operation.create(f"stablehlo.{name}", [type_], operands, dict(attributes or {})).result


def kept_attributes(op: ir.OpView, *names: str) -> dict[str, ir.Attribute]:
    """The attributes of these names that an op has."""
    return {name: op.attributes[name] for name in names if name in op.attributes}


def spread(s: StatedSizes, scalar: ir.Value, op: ir.OpView) -> ir.Value:
    """A scalar as the shape of an op's result."""
    result = op.results[0]
    if not rank(result):
        return scalar
    none: dict[str, ir.Attribute] = {"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])}
    broadcast: ir.Value = create("dynamic_broadcast_in_dim", result.type, [scalar, s.sizes(s.dims(result))], none)
    return broadcast


def call(op: ir.OpView, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute]) -> list[ir.Value]:
    """The results of a custom call whose results have the types of an op's."""
    types = [result.type for result in op.results]
    return list(ir.Operation.create("stablehlo.custom_call", types, operands, attributes).results)


def shape_operands_attribute(first: int, count: int) -> dict[str, ir.Attribute]:
    """The attribute of a custom call whose operands from `first` on are the sizes of its results."""
    positions: Any = np.arange(first, first + count)
    return {SHAPE_OPERANDS: ir.DenseIntElementsAttr.get(positions)}


__all__ = [
    "DynamicForm", "NoDynamicFormError", "StatedSizes", "WholeAxes", "call", "create", "kept_attributes",
    "shape_operands_attribute", "spread",
]  # fmt: skip
