# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts of which only a short beginning is read: a selection of the first elements, not a sort."""

from __future__ import annotations

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.propagation import integers
from shlo_disc.shape_dialect.types import dims_of
from shlo_disc.shape_dialect.values import known_elements
from shlo_disc.transforms.fusion.access import defining_op

MOST_SELECTED = 64
"""A longer beginning is had by a sort: selecting k of n elements takes up to k * n steps."""


def selecting_sort(op: ir.Operation) -> ir.Operation | None:
    """The sort whose beginning `op` slices, when everything that reads the sort takes equally few elements."""
    sort = defining_op(op.operands[0]) if op.operands else None
    if sort is None or sort.name != "stablehlo.sort":
        return None
    readers = [use.owner.operation for result in sort.results for use in result.uses]
    lengths = {_length_of_beginning(reader) if reader.block == sort.block else None for reader in readers}
    only = next(iter(lengths)) if len(lengths) == 1 else None
    return sort if only is not None and 0 < only <= MOST_SELECTED else None


def _length_of_beginning(op: ir.Operation) -> int | None:
    """How many elements a slice keeps of the last axis, when it starts at 0 and keeps all of the others."""
    starts: list[int | None]
    strides: list[int | None]
    if op.name == "stablehlo.slice":
        starts, strides = list(integers(op.attributes["start_indices"])), list(integers(op.attributes["strides"]))
    elif op.name == "stablehlo.real_dynamic_slice":
        try:
            starts, strides = ([e.constant for e in known_elements(op.operands[i])] for i in (1, 3))
        except ValueError:
            return None
    else:
        return None
    whole, part = dims_of(op.operands[0]), dims_of(op.results[0])
    is_beginning = not any(start != 0 for start in starts) and not any(stride != 1 for stride in strides)
    return part[-1].constant if is_beginning and whole[:-1] == part[:-1] else None
