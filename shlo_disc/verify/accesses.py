# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""At which indices a kernel reads an argument, followed backwards from each of its results.

The index of an element of a result is a tuple of variables, one an axis. Going from a result to what it is computed
from, each op turns the index into those of its operands; a reduction brings in variables of its own. What an op does
with indices that is not known here gives an unknown index, for which nothing is claimed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.dialect.fusion import columns_of, kind_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.utils.op_sets import ELEMENTWISE

Index = tuple[int | str | None, ...]
"""For each axis: an axis of the result, "reduced", "one" for an axis of size 1, or None: unknown.

The axes of a result are numbered without those of size 1: results that differ by those alone are numbered alike.
"""

_BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")


class Read(NamedTuple):
    """Result `result` reads the argument at the index `at`, inside of a reduction or not."""

    result: int
    at: Index
    reduced: bool


class _Place(NamedTuple):
    value: ir.Value
    at: Index
    reduced: bool


def reads_of(fusion: func.FuncOp, argument: ir.Value) -> Iterator[Read]:
    """Every way in which the results of a fusion's one block read one of its arguments."""
    *_, last = fusion.entry_block.operations
    for number, output in enumerate(last.operands):
        pending = [_Place(output, _own(output), False)]
        seen: set[_Place] = set()
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            if place.value == argument:
                yield Read(number, place.at, place.reduced)
            elif not isinstance(place.value.owner, ir.Block):
                pending += _operands(place, place.value.owner.operation)


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
    indices = _operand_indices(place, op)
    reduced = place.reduced or op.name == "stablehlo.reduce"
    for number, operand in enumerate(op.operands):
        type_ = operand.type
        if isinstance(type_, ir.RankedTensorType):
            index = indices[number] if number < len(indices) else None
            yield _Place(operand, _with_ones(dims_of(type_), index), reduced)


def _operand_indices(place: _Place, op: ir.Operation) -> list[Sequence[int | str | None] | None]:
    """The index at which each operand is read; None where it is unknown."""
    index = place.at
    name = op.name
    if name in ELEMENTWISE:
        ranks = [len(dims_of(v)) for v in op.operands]
        return [index if rank == len(index) else () if not rank else None for rank in ranks]
    if name in _BROADCASTS:
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
    """How a kernel goes through its results: `rows` axes one by one, all columns of a row several times.

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
        *_, last = fusion.entry_block.operations
        sizes = {_wide(v) for v in last.operands}
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
        """Whether a read comes before `result` is written over what is read.

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
