# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that users give for sizes."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shlo_disc.errors import ShapeError


def dim_values(names: Sequence[str], dims: Mapping[str, Any]) -> dict[str, int]:
    """The values of dimension variables, in the order of `names`.

    Raises ShapeError when there are more or fewer than these, or when a value is no integer of 64 bits.
    """
    if set(dims) != set(names):
        given = sorted(map(str, dims))
        how = ", ".join(f"{name}=1" for name in names)
        hint = f": they are given by name, as in {how}, or --dims {how.replace(' ', '')}" if names else ""
        raise ShapeError(f"expected values for the dimension variables {list(names)}, got {given}{hint}")
    values = {}
    for name in names:
        value = integer_of(dims[name])
        if value is None:
            raise ShapeError(f"the value of the dimension variable '{name}' is no 64-bit integer: {dims[name]!r}")
        values[name] = value
    return values


def shape_of(shape: Any) -> tuple[int, ...] | None:
    """A shape's sizes; None when it is not a sequence of integers of 64 bits."""
    if not isinstance(shape, Sequence) or isinstance(shape, str | bytes):
        return None
    sizes = tuple(map(integer_of, shape))
    return None if None in sizes else tuple(size for size in sizes if size is not None)


def integer_of(value: Any) -> int | None:
    """Anything that Python takes as an index, but for booleans; None for all else and for more than 64 bits."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        number = operator.index(value)
    except TypeError:
        return None
    return number if -(1 << 63) <= number < 1 << 63 else None
