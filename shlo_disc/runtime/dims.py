# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that users give for sizes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np

from shlo_disc.errors import ShapeError

NO_DIMS: Mapping[str, int] = MappingProxyType({})

Method = TypeVar("Method", bound=Callable[..., Any])


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


def by_name(method: Method) -> Method:
    """A method of values of dimension variables by name, which also takes them in one mapping.

    Raises ShapeError for anything else that is given by position.
    """

    @functools.wraps(method)
    def call(self: Any, *values: Any, **dims: Any) -> Any:
        if not values:
            return method(self, **dims)
        if len(values) > 1 or not isinstance(values[0], Mapping):
            name, given = method.__name__, ", ".join(map(repr, values))
            raise ShapeError(f"{name} takes values of dimension variables by name, as in {name}(b=1), not {given}")
        return method(self, **{**values[0], **dims})

    return cast(Method, call)


def all_dims(dims: Any) -> list[Mapping[str, Any]]:
    """Several sets of values of dimension variables; one mapping is one of them. Raises ShapeError for other values."""
    found = [dims] if isinstance(dims, Mapping) else list(dims) if isinstance(dims, Iterable) else [dims]
    if wrong := [each for each in found if not isinstance(each, Mapping)]:
        raise ShapeError(f"dims= has values of dimension variables by name, such as [{{'b': 1}}], not {wrong[0]!r}")
    return found


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
