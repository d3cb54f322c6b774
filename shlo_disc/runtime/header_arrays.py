# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arrays that a header describes, at given sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from shlo_disc.errors import ShapeError
from shlo_disc.shape_dialect.dtypes import BY_NAME
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .axes import as_taken, users_shape
from .dims import shape_of


def sizes_of(given: Sequence[int], row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The sizes of an argument as the program takes it, for the shape of what a call gives. Raises ShapeError."""
    whole = users_shape(row)
    expected = whole[:-1] if "key" in row else whole
    shape = shape_of(given)
    if shape is None or not _fits(shape, expected):
        wanted = ", ".join(map(str, expected))
        raise ShapeError(f"{row['path']} has the shape {given}; the program takes ({wanted})")
    return as_taken((*shape, *whole[len(shape) :]), row.get("axes", ()))


def _fits(shape: Sequence[int], expected: Sequence[int | str]) -> bool:
    """Tells whether the rank and the static sizes are as expected."""
    if len(shape) != len(expected):
        return False
    return all(isinstance(size, str) or size == actual for size, actual in zip(expected, shape, strict=True))


def bytes_of(row: Mapping[str, Any], dims: Mapping[str, int]) -> int:
    """The bytes of an array of the header."""
    sizes = (Expr.parse(size).evaluate(dims) if isinstance(size, str) else int(size) for size in row["shape"])
    return math.prod(sizes) * BY_NAME[row["dtype"]].bytes


__all__ = ["bytes_of", "sizes_of"]
