# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of different ops that belong together: where a value is cut, and what loops go through.

That they are equal in the samples hints that they are at all sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from shlo_disc.shape_dialect.mlir import ir

from .gradients import Classes
from .samples import Samples

_LEAST_FIXED = 4
"""Smaller numbers that are the same in all samples are too often equal by chance."""


def join_cuts(classes: Classes, separate: AbstractSet[int]) -> None:
    """Join the places at which a value is cut, but separate ones: where a piece ends and where another one starts."""
    samples = classes.samples
    places: dict[object, int] = {}
    for value, axis, number, whole in _cuts(samples):
        values = samples.values[number]
        is_inside = number not in separate and values != samples.values[whole]
        if is_inside and not (samples.is_fixed(number) and values[0] < _LEAST_FIXED):
            classes.join(number, places.setdefault((value, axis, values), number))


def _cuts(samples: Samples) -> Iterator[tuple[ir.Value, int, int, int]]:
    """Yields values, axes, the numbers at which they are cut, bounds of slices and sizes of prefixes, and the sizes."""
    for position, op in enumerate(samples.operations):
        if op.operation.name == "stablehlo.slice" and position not in samples.plain:
            origin = samples.origin(op.operands[0])
            for name in ("start_indices", "limit_indices"):
                for axis, number in enumerate(samples.attributes[position, name]):
                    yield origin, axis, number, samples.dims[origin][axis]
    for (position, index), numbers in samples.operands.items():
        origin = samples.origin(samples.operations[position].operands[index])
        for axis, (number, whole) in enumerate(zip(numbers, samples.dims[origin], strict=True)):
            yield origin, axis, number, whole


def join_loops(classes: Classes) -> None:
    """Join the first sizes of what loops go through with those of what they fill, which is a scalar spread out.

    Where they vary they are found anyway.
    """
    samples = classes.samples
    for position, op in enumerate(samples.operations):
        if op.operation.name != "stablehlo.while":
            continue
        rows = [(v, samples.operands.get((position, i), samples.dims.get(v, []))) for i, v in enumerate(op.operands)]
        firsts = [(v, dims[0]) for v, dims in rows if dims and samples.is_fixed(dims[0])]
        sources = {samples.values[number]: number for value, number in firsts if not _is_filled(samples, value)}
        for value, number in firsts:
            if _is_filled(samples, value) and set(samples.values[number]) != {1}:
                classes.join(number, sources.get(samples.values[number], number))


def _is_filled(samples: Samples, value: ir.Value) -> bool:
    """Tells whether a value is a scalar that was spread out."""
    position = samples.position.get(value.owner)
    if position is None or samples.operations[position].operation.name != "stablehlo.broadcast_in_dim":
        return False
    return not samples.dims.get(samples.operations[position].operands[0])


__all__ = ["join_cuts", "join_loops"]
