# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values with errors, and the rules that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""The distance from 1 to the next number."""

TINY = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}
"""The smallest normal number: what is smaller may be flushed to zero."""

LARGEST = {
    "float16": 65504.0,
    "bfloat16": float(ml_dtypes.finfo(ml_dtypes.bfloat16).max),
    "float32": float(np.finfo(np.float32).max),
    "float64": float(np.finfo(np.float64).max),
}

SUM_EPSILON = {name: min(eps, EPSILON["float32"]) for name, eps in EPSILON.items()}
"""Epsilon of the type in which sums are formed: 16 bits are summed in float32."""

_STORED = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}


@dataclass(frozen=True)
class Number:
    """An array: floats as float64. `error` is None where the value is exact, else at least 0, of the same shape.

    Of integers and booleans an error other than 0 says that the value may be another one.
    """

    value: Array
    error: Array | None = None

    @property
    def errors(self) -> Array:
        """The error as an array."""
        return np.zeros(self.value.shape) if self.error is None else self.error


@dataclass(frozen=True)
class Op:
    """The equation that a rule interprets: its parameters with all sizes known, and the type of its results.

    `same`: operands 0 and 1 are one value.
    """

    params: Mapping[str, Any]
    shapes: Sequence[tuple[int, ...]]
    dtypes: Sequence[str]
    same: bool = False

    @property
    def dtype(self) -> str:
        """The type of the first result."""
        return self.dtypes[0]

    @property
    def is_float(self) -> bool:
        """Tells whether the first result is of floats."""
        return self.dtype in EPSILON


Rule = Callable[..., "Number | list[Number]"]
RULES: dict[str, Rule] = {}
"""By the primitive's name: takes an Op and the operands, gives the result or results."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Makes a function the rule of primitives."""

    def add(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return add


def is_exact(value: Array, dtype: str) -> bool:
    """Tells whether all numbers are numbers of the type."""
    if dtype == "float64":
        return bool((value == np.round(value)).all()) and bool((np.abs(value) < 2.0**40).all())
    return bool((value.astype(_STORED[dtype]).astype(np.float64) == value).all())


def rounded(value: Array, error: Array | None, dtype: str, units: float = 1.0, *, basic: bool = False) -> Number:
    """A float that was computed: its error grows by so many units in the last place.

    basic: an exact result that the type has is found exactly, as +, -, *, / and square roots do.
    """
    if basic and error is None and is_exact(value, dtype):
        return Number(value)
    own = units * EPSILON[dtype] * np.abs(value) + 2 * TINY[dtype]
    return rounded_number(value, own if error is None else error + own, dtype)


def rounded_number(value: Array, error: Array | None, dtype: str) -> Number:
    """A number whose error is infinite where it is not known, and where the type overflows."""
    if error is None:
        return Number(value)
    error = np.where(np.isnan(error), np.where(np.isfinite(value), np.inf, 0.0), error)
    if dtype in LARGEST:
        over = np.isfinite(value) & (np.abs(value) + np.where(np.isfinite(error), error, 0) > LARGEST[dtype])
        error = np.where(over, np.inf, error)
    return Number(value, np.broadcast_to(error, value.shape))


def moved(function: Callable[..., Array], *operands: Number) -> Number:
    """An op that moves data: what becomes of values becomes of errors."""
    value = function(*(n.value for n in operands))
    if all(n.error is None for n in operands):
        return Number(value)
    return Number(value, function(*(n.errors for n in operands)))


def unknown(value: Array, is_unknown: Array | bool, base: Array | None = None) -> Number:
    """A value that may be anything where `is_unknown`."""
    if not np.any(is_unknown):
        return Number(value, base)
    start = np.zeros(value.shape) if base is None else base
    return Number(value, np.where(is_unknown, np.inf, start))


def any_error(*numbers: Number) -> bool:
    """Tells whether some element is not exact."""
    return any(n.error is not None and bool(np.any(n.error)) for n in numbers)
