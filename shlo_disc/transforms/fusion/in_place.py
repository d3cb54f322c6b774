# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Test whether a kernel that walks over elements or rows may write a result where one of its arguments is.

Such a kernel goes through the elements of a loop, or through rows, in any order and in several threads. It may write a
result where an argument is if it reads of the argument, for each element or row, nothing but what it then overwrites.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.fusion import Epilogue, Fusion, Loop, RowReduce, fusion_of, results_of
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import terminator_of
from shlo_disc.transforms.decisions import Pattern


@dataclass(frozen=True)
class Overwrite:
    """Result `result` of a kernel in the buffer of its argument `argument`."""

    fusion: func.FuncOp
    argument: int
    result: int

    @property
    def source(self) -> ir.Value:
        """The argument in the kernel."""
        return self.fusion.entry_block.arguments[self.argument]

    @property
    def output(self) -> ir.Value:
        """The result in the kernel."""
        return terminator_of(self.fusion.entry_block).operands[self.result]

    @property
    def what(self) -> Fusion:
        """The description of the fusion."""
        return fusion_of(self.fusion)

    @property
    def walks_rows(self) -> bool:
        """Tells whether it goes through rows rather than elements."""
        return isinstance(self.what, RowReduce)


IN_PLACE = Pattern[Overwrite]("in-place", "a loop or row kernel writes a result where an argument is")


def may_write_where(fusion: func.FuncOp, argument: int, result: int) -> bool:
    """Tells whether the kernel of `fusion` may write result `result` in the buffer of argument `argument`."""
    return IN_PLACE.match(lambda f: f if _walks(f) else None, Overwrite(fusion, argument, result)) is not None


def _walks(found: Overwrite) -> bool:
    """Tells whether a kernel goes through the elements of its results, or its rows, one after the other."""
    return isinstance(found.what, Loop | Epilogue) or (found.walks_rows and found.what.collapsed)


@IN_PLACE.requires("the result is no scratch memory, which is written before all of the argument is read")
def _is_no_scratch(found: Overwrite) -> bool:
    return found.result < len(results_of(found.fusion))


@IN_PLACE.requires("the argument and the result have one type")
def _same_type(found: Overwrite) -> bool:
    return found.source.type == found.output.type


@IN_PLACE.requires("all ops that depend on the argument, up to reductions of rows, are elementwise or broadcasts")
def _moves_nothing(found: Overwrite) -> bool:
    staying = _STAYING | {"stablehlo.reduce"} if found.walks_rows else _STAYING
    return all(op.name in staying for op in _readers_below(found.source))


@IN_PLACE.requires("the argument is spread out only along the columns of a row, never read at another row")
def _spreads_along_columns(found: Overwrite) -> bool:
    rows = list(range(len(dims_of(found.source))))
    spread = [op for op in _readers_below(found.source) if op.name in BROADCASTS]
    if not found.walks_rows:
        return not spread
    return all(list(integers(op.attributes["broadcast_dimensions"])) == rows for op in spread)


_STAYING = ELEMENTWISE | BROADCASTS | {"func.return"}


def _readers_below(source: ir.Value) -> list[ir.Operation]:
    """The ops that depend on a value. Behind a reduction, a row has been read already."""
    found: dict[ir.Operation, None] = {}
    pending = [source]
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user in found:
                continue
            found[user] = None
            if user.name != "stablehlo.reduce":
                pending += list(user.results)
    return list(found)
