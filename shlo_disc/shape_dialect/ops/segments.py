# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Segments: the parts of a call between which sizes are read from data.

Segment 0 needs the arguments' sizes only. A `disc.bind` in segment k makes its symbols known from segment k + 1 on. A
kernel, loop or branch runs in the first segment in which all its sizes and operands are known, so sizes are read as
seldom as can be. The ops of later segments carry `disc.segment`; a program without `disc.bind` is one segment.

A `disc.bind` inside of a loop or branch ends no segment: its symbols have limits, for which memory is planned.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.declarations import name_of, symbols_in
from shlo_disc.shape_dialect.dialect.names import SEGMENT
from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import dims_of, dims_of_attr
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import CONTROL
from shlo_disc.shape_dialect.ops.data_sizes import bound_symbols
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks, nested_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block
from shlo_disc.shape_dialect.utils.windows import window_sizes

RUNS = CONTROL | {"func.call", "disc.bind"}
"""The ops of a fused program that do something when it runs."""


def segment_of(op: ir.OpView) -> int:
    """The segment of an op of `RUNS`."""
    return ir.IntegerAttr(op.attributes[SEGMENT]).value if SEGMENT in op.attributes else 0


def symbol_segments(module: ir.Module) -> dict[str, int]:
    """The segment from which each symbol that is read from data between segments is known, in that order."""
    declared = symbols_in(module).items()
    found = {name: symbol.segment for name, symbol in declared if symbol.data and symbol.limit is None}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def split_segments(module: ir.Module) -> None:
    """Write the segments of a fused module into it and bring its ops into their order, in place."""
    ops = list(entry_block(module).operations)
    if not any(op.operation.name == "disc.bind" for op in ops):
        return
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    known: dict[str, int] = {}
    of_value: dict[ir.Value, int] = {}
    segments = []
    for op in ops:
        parts = [op, *(inner for nested in nested_blocks(op) for b in all_blocks(nested) for inner in b.operations)]
        names = {name for part in parts for name in _sizes_used(part, functions)}
        values = [value for part in parts for value in part.operands]
        segment = max([0, *(of_value.get(v, 0) for v in values), *(known[name] for name in names & known.keys())])
        segments.append(segment)
        of_value.update(dict.fromkeys(op.results, segment))
        if op.operation.name == "disc.bind":
            known.update(dict.fromkeys(bound_symbols(op), segment + 1))
            # Whoever reads sizes as data may be at their mercy, and runs when they have been checked.
            of_value[op.operands[0]] = segment + 1
    for segment, op in sorted(zip(segments[:-1], ops[:-1], strict=True), key=lambda pair: pair[0]):
        op.operation.move_before(ops[-1].operation)
        if segment and op.operation.name in RUNS:
            op.attributes[SEGMENT] = integer_attr(segment)
    for op in module.body.operations:
        if op.operation.name == "disc.symbol" and name_of(op) in known:
            op.attributes["segment"] = integer_attr(known[name_of(op)])


def _sizes_used(op: ir.OpView, functions: dict[str, func.FuncOp]) -> set[str]:
    """The symbols that running an op needs. Views and shapes are computed by whoever reads them."""
    if op.operation.name not in RUNS:
        return set()
    if op.operation.name != "func.call":
        return {name for value in op.results for d in dims_of(value) for name in d.symbols()}
    return _sizes_within(callee_of(op), functions)


def _sizes_within(name: str, functions: dict[str, func.FuncOp]) -> set[str]:
    """The symbols that a fusion needs, or one that it calls."""
    dims: list[Expr] = []
    names: set[str] = set()
    for inner in functions[name].entry_block.operations:
        dims += [d for value in (*inner.operands, *inner.results) for d in dims_of(value)]
        dims += window_sizes(inner)
        if inner.operation.name == "disc.shape":
            dims += dims_of_attr(inner.attributes["dims"])
        elif inner.operation.name == "func.call":
            names |= _sizes_within(callee_of(inner), functions)
    return names | {symbol for d in dims for symbol in d.symbols()}
