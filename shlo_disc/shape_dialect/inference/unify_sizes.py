# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One expression for sizes that are proved to be equal, in the types and attributes of a function.

Rewrites make types without the facts: the zeros between the rows of an input of `2*h - 1` rows are
`max(0, h - 1)` of them. After this, two types of equal sizes are the same type, so that later stages compare types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields

from shlo_disc.shape_dialect.dialect.types import (
    Dims,
    dims_attr,
    dims_of,
    dims_of_attr,
    element_type_of,
    has_encoding,
    tensor_type,
)
from shlo_disc.shape_dialect.dialect.window import GROUPS, WINDOW, Window, read_window, window_attribute
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks, all_values
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.symbolic.facts_witness import value_at
from shlo_disc.shape_dialect.utils.convolution import group_count_attributes, group_counts

_SAMPLES = 6
"""Sizes at which expressions are compared before they are proved to be equal."""


def unify_sizes(block: ir.Block, facts: Facts, fixed: Iterable[Expr] = ()) -> None:
    """Write one of each class of equal sizes, in place; `fixed` ones stay as they are written.

    The types of the function and of its calls are not changed.
    """
    types = dict.fromkeys(value.type for value in all_values(block))
    attributed = [op for inner in all_blocks(block) for op in inner.operations if _has_sizes(op)]
    sizes = {size for type_ in types if has_encoding(type_) for size in dims_of(type_)}
    sizes |= {size for op in attributed for dims in _sizes_of(op) for size in dims}
    classes = _Classes(facts, fixed)
    for size in sorted(sizes, key=lambda size: size.key):
        classes.add(size)
    unified = {type_: _unified(type_, classes.dims) for type_ in types if has_encoding(type_)}
    for value in all_values(block):
        type_ = unified.get(value.type, value.type)
        if type_ != value.type:
            value.set_type(type_)
    for op in attributed:
        _unify_attributes(op, classes.dims)


class _Classes:
    """Classes of sizes that are proved to be equal. The first one of a class stands for it."""

    def __init__(self, facts: Facts, fixed: Iterable[Expr]):
        self._facts = facts
        self._chosen: dict[Expr, Expr] = {}
        self._alike: dict[tuple[frozenset[str], tuple[int | None, ...]], list[Expr]] = {}
        self._points: dict[frozenset[str], list[dict[str, int]]] = {}
        for size in fixed:
            self._chosen[size] = size
            self._bucket(size).append(size)

    def add(self, size: Expr) -> None:
        """Find the class of a size, or begin one with its simplest form."""
        if size in self._chosen:
            return
        simple = self._facts.simplify(size)
        bucket = self._bucket(simple)
        found = next((other for other in bucket if self._facts.equal(simple, other)), None)
        if found is None:
            bucket.append(simple)
            found = self._chosen[simple] = simple
        self._chosen[size] = found

    def dims(self, dims: Dims) -> Dims:
        """Sizes that were added, as their classes write them."""
        return tuple(self._chosen[size] for size in dims)

    def _bucket(self, size: Expr) -> list[Expr]:
        """Those of the same symbols and the same values at some sizes, with which alone a size can be equal."""
        names = self._facts.canonical(size).symbols() | size.symbols()
        if names not in self._points:
            self._points[names] = list(self._facts.samples(names, _SAMPLES))
        values = tuple(value_at(size, point) for point in self._points[names])
        return self._alike.setdefault((names, values), [])


def _unified(type_: ir.Type, unify: Callable[[Dims], Dims]) -> ir.Type:
    return tensor_type(unify(dims_of(type_)), element_type_of(type_))


def _has_sizes(op: ir.OpView) -> bool:
    return op.operation.name == "disc.shape" or WINDOW in op.attributes or GROUPS in op.attributes


def _sizes_of(op: ir.OpView) -> list[Dims]:
    if op.operation.name == "disc.shape":
        return [dims_of_attr(op.attributes["dims"])]
    if GROUPS in op.attributes:
        return [group_counts(op)]
    window = read_window(op.attributes[WINDOW])
    return [getattr(window, field.name) for field in fields(window)]


def _unify_attributes(op: ir.OpView, unify: Callable[[Dims], Dims]) -> None:
    if op.operation.name == "disc.shape":
        op.attributes["dims"] = dims_attr(unify(dims_of_attr(op.attributes["dims"])))
        return
    if GROUPS in op.attributes:
        counts = unify(group_counts(op))
        del op.attributes[GROUPS]
        for name, attribute in group_count_attributes(counts).items():
            op.attributes[name] = attribute
        return
    window = read_window(op.attributes[WINDOW])
    op.attributes[WINDOW] = window_attribute(Window(**{f.name: unify(getattr(window, f.name)) for f in fields(window)}))
