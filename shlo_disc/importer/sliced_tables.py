# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Advice on slices and indices of NumPy's arrays and of lists, which take numbers only, by sizes that have names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jax import export

from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

from .comparisons import is_sensible, written
from .look_ups import UNKNOWN, known_value
from .user_code import Place

TEXT = "slice indices must be integers or None or have an __index__ method"
"""The message of Python and of NumPy."""


_INDEX = "cannot be interpreted as an integer"
"""Part of the message of Python where a size is a bound of a slice."""


def is_of_slice(message: str, place: Place | None) -> bool:
    """Tells whether an error is about a slice by what is no number."""
    expression = place.expression if place else None
    is_slice = isinstance(expression, ast.Subscript) and any(_slices(expression.slice))
    return TEXT in message or _INDEX in message and is_slice


def fault_of_slice(place: Place | None) -> str:
    """The fault of a slice by a size, and what to write; "" where no bound is known to be a size."""
    expression = _subscript(place)
    if place is None or expression is None:
        return ""
    bounds = [bound for _, part in _slices(expression.slice) for bound in (part.lower, part.upper) if bound is not None]
    sizes = [size for size in (_size(bound, place) for bound in bounds) if size is not None]
    if not sizes:
        return ""
    table, cut = ast.unparse(expression.value), ast.unparse(expression)
    cut = cut[len(table) :] if cut.startswith(table) else f"[{ast.unparse(expression.slice)}]"
    known = known_value(expression.value, place.frame)
    text = (
        f"the size {sizes[0]} is not an int while the function is traced, and {_kind(known)} is sliced by numbers only"
    )
    if isinstance(known, list | tuple | str | bytes) and not _is_array(known):
        return f"{text}: give the size as a number in args=, or _ for it in dynamic="
    advice = f"write jax.numpy.asarray({table}){cut}"
    if stated := _stated(expression.slice, np.shape(known) if _is_array(known) else (), place):
        advice += f", and state that it ends within {table}: constraints=({stated})"
    return f"{text}: {advice}"


def _subscript(place: Place | None) -> ast.Subscript | None:
    """The expression at a place, if it is an index or a slice."""
    expression = place.expression if place else None
    return expression if isinstance(expression, ast.Subscript) else None


def _kind(known: Any) -> str:
    return "an array of NumPy" if known is UNKNOWN or isinstance(known, np.ndarray) else f"a {type(known).__name__}"


def _is_array(known: Any) -> bool:
    """Tells whether jax.numpy.asarray takes a value."""
    if isinstance(known, np.ndarray):
        return True
    return isinstance(known, list | tuple) and all(isinstance(part, int | float | np.ndarray) for part in known)


def _slices(node: ast.expr) -> Iterator[tuple[int, ast.Slice]]:
    """Each slice in a subscript, with its axis."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    for axis, part in enumerate(parts):
        if isinstance(part, ast.Slice):
            yield axis, part
        elif isinstance(part, ast.Constant) and part.value in (None, ...):
            return  # later axes have other positions


def _stated(node: ast.expr, shape: tuple[int, ...], place: Place) -> str:
    """The constraints under which all slices of an array of that shape end within it; "" where none are known."""
    stated: dict[str, None] = {}
    for axis, part in _slices(node):
        if axis >= len(shape) or part.step is not None:
            continue
        for bound in (part.lower, part.upper):
            size = None if bound is None else _size(bound, place)
            for within in () if size is None else _within(Expr.parse(str(size)), shape[axis]):
                if is_sensible(within):
                    stated[f'"{written(within)}"'] = None
    return ", ".join(stated) + ("," if len(stated) == 1 else "")


def _within(size: Expr, length: int) -> tuple[Relation, Relation]:
    """The relations under which a bound is one of an axis of that length; a negative one counts from the end."""
    return Relation.le(size, length), Relation.ge(size, -length)


_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
}


def _size(node: ast.expr, place: Place) -> Any:
    """The value of a bound that is a size with a name; None for others."""
    value = _number(node, place)
    return value if export.is_symbolic_dim(value) else None


def _number(node: ast.expr, place: Place) -> Any:
    """A size or an integer; None for other expressions."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _number(node.left, place), _number(node.right, place)
        if left is None or right is None or isinstance(node.op, ast.FloorDiv) and right == 0:
            return None
        return _OPERATIONS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand, place)
        return None if value is None else -value
    value = known_value(node, place.frame)
    return value if export.is_symbolic_dim(value) or isinstance(value, int) else None


def note_of_slice(place: Place | None) -> str:
    """Advice on a slice of which not all bounds are known; "" where all are numbers."""
    expression = _subscript(place)
    if place is not None and expression is not None:
        bounds = (bound for _, part in _slices(expression.slice) for bound in (part.lower, part.upper))
        if all(bound is None or known_value(bound, place.frame) is not UNKNOWN for bound in bounds):
            return ""
    return "where a bound is a size that has a name, write jax.numpy.asarray(table)[:size] in place of table[:size]"


def note_of_table(place: Place | None) -> str:
    """Advice where an array of NumPy is indexed by an array that is traced; "" elsewhere."""
    expression = _subscript(place)
    if place is None or expression is None:
        return ""
    if not isinstance(known_value(expression.value, place.frame), np.ndarray):
        return ""
    table, index = ast.unparse(expression.value), ast.unparse(expression.slice)
    return (
        f"an array of NumPy takes no index that is traced: write jax.numpy.asarray({table})[{index}] in place of "
        f"{table}[{index}]"
    )


def size_of_index(place: Place | None) -> str:
    """The size that is the index of a subscript, or the first of its indices; "" where none is known to be."""
    expression = _subscript(place)
    if place is None or expression is None:
        return ""
    parts = expression.slice.elts if isinstance(expression.slice, ast.Tuple) else [expression.slice]
    return next((str(size) for part in parts if (size := _size(part, place)) is not None), "")


__all__ = ["fault_of_slice", "is_of_slice", "note_of_slice", "note_of_table", "size_of_index"]
