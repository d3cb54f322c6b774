# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""At which indices a kernel reads its arguments, followed backwards from its results.

The index of an element of a result is a tuple of variables, one an axis. Going from a result to what it is computed
from, each op turns the index into those of its operands; a reduction brings in variables of its own. What an op does
with indices that is not known here gives an unknown index, for which nothing is claimed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shlo_disc.shape_dialect.dialect.fusion import columns_of, kind_of, results_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE
from shlo_disc.shape_dialect.utils.regions import terminator_of

Index = tuple[int | str | None, ...]
"""For each axis: an axis of the result, "reduced", "one" for an axis of size 1, or None: unknown.

The axes of a result are numbered without those of size 1: results that differ by those alone are numbered alike.
"""


class Read(NamedTuple):
    """A result reads an argument at the index `at`, inside of a reduction or not."""

    at: Index
    reduced: bool


class _Place(NamedTuple):
    value: ir.Value
    at: Index
    reduced: bool


Reads = dict[ir.Value, list[Read]]


def reads_of(fusion: func.FuncOp) -> Reads:
    """Every way in which the results of a fusion's one block read its arguments, in one walk from all results."""
    last = terminator_of(fusion.entry_block)
    pending = [_Place(output, _own(output), False) for output in last.operands]
    reads: Reads = {argument: [] for argument in fusion.entry_block.arguments}
    seen: set[_Place] = set()
    while pending:
        place = pending.pop()
        if place in seen:
            continue
        seen.add(place)
        owner = place.value.owner
        if isinstance(owner, ir.Block):
            reads[place.value].append(Read(place.at, place.reduced))
        else:
            pending += _operands(place, owner.operation)
    return reads


def _own(value: ir.Value) -> Index:
    numbers = itertools.count()
    return tuple("one" if d.constant == 1 else next(numbers) for d in dims_of(value))


def _wide(value: ir.Value) -> Dims:
    """The sizes that are not 1."""
    return tuple(d for d in dims_of(value) if d.constant != 1)


def _with_ones(dims: Dims, index: Sequence[int | str | None] | None) -> Index:
    """The index with "one" along axes of size 1, where there is no other; an unknown one where it is None."""
    if index is None:
        return (None,) * len(dims)
    return tuple("one" if d.constant == 1 else i for d, i in zip(dims, index, strict=True))


def _operands(place: _Place, op: ir.Operation) -> Iterator[_Place]:
    operands = [(value, dims_of(value)) for value in op.operands if isinstance(value.type, ir.RankedTensorType)]
    name, index = op.name, place.at
    if name in ELEMENTWISE:
        for value, dims in operands:
            yield _Place(value, _elementwise(dims, index), place.reduced)
        return
    indices = _operand_indices(name, index, op)
    reduced = place.reduced or name == "stablehlo.reduce"
    for number, (value, dims) in enumerate(operands):
        yield _Place(value, _with_ones(dims, indices[number] if number < len(indices) else None), reduced)


def _elementwise(dims: Dims, index: Index) -> Index:
    """The index at which an op reads an operand of these sizes whose result is read at `index`."""
    if not dims:
        return ()
    return _with_ones(dims, index if len(dims) == len(index) else None)


def _operand_indices(name: str, index: Index, op: ir.Operation) -> list[Sequence[int | str | None] | None]:
    """The index at which each operand is read, of an op that is not elementwise; None where it is unknown."""
    if name in BROADCASTS:
        return [_broadcast(op, index)]
    if name == "stablehlo.transpose":
        permutation = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
        return [[index[permutation.index(axis)] for axis in range(len(index))]]
    if name == "stablehlo.reduce":
        along = set(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
        kept = iter(index)
        rank = len(dims_of(op.operands[0]))
        whole = ["reduced" if axis in along else next(kept) for axis in range(rank)]
        half = len(op.operands) // 2
        return [*([whole] * half), *([()] * half)]
    return []


def _broadcast(op: ir.Operation, index: Index) -> list[int | str | None]:
    """An axis that is as long as the result's is read at its index; one of size 1 at "one"; others may be either."""
    source, result = dims_of(op.operands[0]), dims_of(op.results[0])
    targets = list(ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"]))
    return [index[t] if d == result[t] else None for d, t in zip(source, targets, strict=True)]


@dataclass(frozen=True)
class Walk:
    """The walk of a kernel through its results: `rows` axes one by one, all columns of a row several times.

    Axes of size 1 do not count.
    """

    rows: int
    rank: int

    @staticmethod
    def of(fusion: func.FuncOp) -> Walk | None:
        """The walk of a loop, an epilogue or a row kernel; None for a kernel of any other kind.

        A row kernel whose columns have all gone, for they were of size 1, is a loop.
        """
        kind, columns = kind_of(fusion), columns_of(fusion)
        sizes = {_wide(v) for v in results_of(fusion)}
        if kind in ("loop", "epilogue") or (kind == "row_reduce" and not columns):
            return Walk(*([len(next(iter(sizes)))] * 2)) if len(sizes) == 1 else None
        reduces = [op for op in fusion.entry_block.operations if op.operation.name == "stablehlo.reduce"]
        if kind != "row_reduce" or not reduces:
            return None
        domain = dims_of(reduces[0].operands[0])
        rows, whole = (tuple(d for d in part if d.constant != 1) for part in (domain[: len(domain) - columns], domain))
        trailing = list(range(len(domain) - columns, len(domain)))
        regular = all(
            dims_of(op.operands[0]) == domain and list(ir.DenseI64ArrayAttr(op.attributes["dimensions"])) == trailing
            for op in reduces
        )
        return Walk(len(rows), len(whole)) if regular and sizes <= {rows, whole} else None

    def allows(self, read: Read, result: ir.Value) -> bool:
        """Tells whether a read comes before `result` is written over what is read.

        Each row is read and written by itself. What a row reduces is read before any column of it is written; what is
        not reduced is read where it is written.
        """
        own = tuple(range(len(_wide(result))))
        index = tuple(place for place in read.at if place != "one")
        if len(index) != len(own) or index[: self.rows] != own[: self.rows]:
            return False
        columns = index[self.rows :]
        if columns == own[self.rows :]:
            return not read.reduced or not columns
        return read.reduced and self.rows < self.rank and all(place == "reduced" for place in columns)
