# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The distribution of shapes that a program is tuned for."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from shlo_disc.errors import OptionError, reading

EXAMPLE = '[{"dims": {"b": 8, "s": 64}, "weight": 0.7}, {"dims": {"b": 1, "s": 16}}]'


class WeightedShape(NamedTuple):
    """Values of the symbols, and how often calls have them."""

    dims: Mapping[str, int]
    weight: float = 1.0

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.dims.items())


Stated = Mapping[str, int] | WeightedShape | tuple[Mapping[str, int], float]
"""A shape as callers state it: without a weight, each counts the same."""


def distribution(shapes: Iterable[Stated]) -> list[WeightedShape]:
    """Each shape once, with weights that add up to 1. Raises OptionError without shapes, or for a wrong weight."""
    weights: dict[tuple[tuple[str, int], ...], float] = {}
    for stated in shapes:
        dims, weight = (stated, 1.0) if isinstance(stated, Mapping) else stated
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise OptionError(f"the weight of a shape must be a positive number, not {weight!r}")
        key = tuple(sorted(dims.items()))
        weights[key] = weights.get(key, 0.0) + weight
    if not weights:
        raise OptionError("tune needs at least one shape, e.g. {'b': 8, 's': 64}")
    total = sum(weights.values())
    return [WeightedShape(dict(key), weight / total) for key, weight in weights.items()]


def parse_shape(text: str) -> WeightedShape:
    """`b=8,s=64:0.7`, or without a weight `b=8,s=64`. Raises ValueError."""
    sizes, colon, weight = text.partition(":")
    pairs = [part.partition("=") for part in sizes.split(",")]
    return WeightedShape({name.strip(): int(value) for name, _, value in pairs}, float(weight) if colon else 1.0)


def load_shapes(path: str | os.PathLike[str]) -> list[WeightedShape]:
    """The shapes of a JSON file. Raises OptionError if it is none, OSError if it cannot be read."""
    try:
        with reading(path, f"a file of shapes has the form {EXAMPLE}"):
            return [_shape(row) for row in json.loads(Path(path).read_text())]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise OptionError(f"{os.fspath(path)}: not a list of shapes such as {EXAMPLE}: {error}") from None


def _shape(row: Any) -> WeightedShape:
    unknown = set(row) - {"dims", "weight"}
    if unknown:
        raise ValueError(f"there is no {min(unknown)!r}")
    dims = {str(name): value for name, value in row["dims"].items()}
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in dims.values()):
        raise ValueError(f"sizes must be integers, not {dims!r}")
    return WeightedShape(dims, row.get("weight", 1.0))


__all__ = ["WeightedShape", "distribution", "load_shapes", "parse_shape"]
