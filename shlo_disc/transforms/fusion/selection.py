# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts of which only a short beginning is read: a selection of the first elements, not a sort."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.values import known_elements
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.decisions import Pattern

SELECTION: Pattern[_Sorted] = Pattern("selection", "of a sort only the first elements are computed")


@dataclass
class _Sorted:
    """A sort, and how many elements each of its readers takes from the beginning; None: something else of it."""

    sort: ir.Operation
    readers: list[ir.Operation]
    lengths: list[int | None]


def selecting_sort(op: ir.Operation) -> ir.Operation | None:
    """The sort whose beginning `op` slices, when everything that reads the sort takes equally few elements."""
    found = SELECTION.match(_sorted, op)
    return None if found is None else found.sort


def _sorted(op: ir.Operation) -> _Sorted | None:
    sort = defining_op(op.operands[0]) if op.operands else None
    if sort is None or sort.name != "stablehlo.sort":
        return None
    readers = [use.owner.operation for result in sort.results for use in result.uses]
    return _Sorted(sort, readers, [_length_of_beginning(reader) for reader in readers])


@SELECTION.requires("everything that reads the sort takes the beginning of its last axis, whole otherwise")
def _readers_take_the_beginning(found: _Sorted) -> bool:
    return None not in found.lengths


@SELECTION.requires("all of them take equally much")
def _equally_long(found: _Sorted) -> bool:
    return len(set(found.lengths)) == 1


@SELECTION.requires("none of them stands in a loop or branch of its own")
def _readers_are_beside_it(found: _Sorted) -> bool:
    return all(reader.block == found.sort.block for reader in found.readers)


@SELECTION.requires("it is a few elements, and not none")
def _is_short(found: _Sorted) -> bool:
    return all(0 < length <= policy().selected for length in found.lengths if length is not None)


def _length_of_beginning(op: ir.Operation) -> int | None:
    """The number of elements that a slice keeps of the last axis, when it starts at 0 and keeps all of the others."""
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
