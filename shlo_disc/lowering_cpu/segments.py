# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each segment of a program plans: its sizes, checks and results, and the sizes it reads for later ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shlo_disc.lowering_cpu.host_plan import Check, Words
from shlo_disc.lowering_cpu.steps import Place, ReadSizes
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.buffers import arenas_of
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.inference.data_sizes import bound_symbols
from shlo_disc.shape_dialect.utils.regions import entry_block
from shlo_disc.transforms.segments import segment_of, symbol_segments
from shlo_disc.transforms.views import root


@dataclass
class LoweredSegment:
    """What the artifact's header needs to know of one segment: its plan's words, its checks and who is allocated.

    `results` are the leaves that it writes; `symbols` those that are read from data for its sake.
    """

    words: Words
    checks: list[Check]
    results: list[int]
    symbols: list[str]


def lowered_segments(
    module: ir.Module,
    places: Mapping[ir.Value, Place],
    arguments: Sequence[Dims],
    results: Sequence[Dims],
    symbols: Sequence[str],
    checks: Sequence[Check],
) -> list[LoweredSegment]:
    """A planned module's segments: every check stands in the first in which all its symbols are known."""
    known = {**dict.fromkeys(symbols, 0), **symbol_segments(module)}
    written = _written_in(module, places, len(arguments), len(results))
    segments = []
    for number, arena in enumerate(arenas_of(module.operation)):
        own = [leaf for leaf, segment in enumerate(written) if segment == number]
        shapes = [*(arguments if number == 0 else ()), *(results[leaf] for leaf in own)]
        words = Words([arena, *(d for dims in shapes for d in dims)])
        due = [c for c in checks if max([0, *(known[name] for name in c.symbols())]) == number]
        for check in due:
            for operand in check.operands:
                words.place(operand)
        read = [name for name, segment in known.items() if segment == number and name not in symbols]
        segments.append(LoweredSegment(words, due, own, read))
    return segments


def _written_in(module: ir.Module, places: Mapping[ir.Value, Place], arguments: int, results: int) -> list[int]:
    """The first segment that writes each result."""
    written: dict[int, int] = {}
    for op in entry_block(module).operations:
        for result in op.results:
            place = places.get(result)
            if place is not None and place.space == "buffer" and arguments <= place.index < arguments + results:
                leaf = place.index - arguments
                written[leaf] = min(segment_of(op), written.get(leaf, segment_of(op)))
    return [written.get(leaf, 0) for leaf in range(results)]


def read_sizes(bind: ir.OpView, places: Mapping[ir.Value, Place], symbols: Sequence[str]) -> ReadSizes:
    """The step of a `disc.bind`. `symbols`: all of the program's, in the order of the run-time table."""
    value = bind.operands[0]
    element = ir.IntegerType(ir.RankedTensorType(value.type).element_type)
    positions = tuple(symbols.index(name) for name in bound_symbols(bind))
    return ReadSizes(places[root(value)], element.width, element.is_unsigned, positions)
