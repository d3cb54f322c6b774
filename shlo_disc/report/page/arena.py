# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The positions of values in the arena over time: rectangles of program order and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shlo_disc.driver.compilation import Compilation
from shlo_disc.report.page.document import Rectangle
from shlo_disc.shape_dialect.dialect.buffers import ArenaBuffer, arenas_of, buffers_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block
from shlo_disc.transforms.memory.liveness import Liveness


@dataclass(frozen=True)
class Arena:
    """The arena at given sizes: the bytes of each segment, None where sizes of it are read from data; what lies there,
    and the names of the commands, by their place in the program's order."""

    bytes: tuple[int | None, ...]
    commands: tuple[str, ...]
    rectangles: tuple[Rectangle, ...]


def arena_of(c: Compilation, dims: Mapping[str, int]) -> Arena:
    """The arena of a planned program at values of its symbols, without values of no bytes, or of a size not known.

    A value is needed from the command that makes it until the last one that reads it has ended. A command that writes a
    result where an argument was takes its place: the argument's rectangle ends where the result's begins. Values of
    loops and branches that lie where the results of those do are in the rectangle of these.
    """
    module = c.snapshots["plan"]
    live = Liveness.of(entry_block(module))
    ops = [op for op in live.begin if "disc.buffers" in op.attributes]
    found = [
        rectangle
        for op in ops
        for index, buffer in enumerate(buffers_of(op))
        if isinstance(buffer, ArenaBuffer)
        and (rectangle := _rectangle(live, op, index, buffer, len(op.results), dims)) is not None
    ]
    commands = [""] * (max(live.end.values(), default=0) + 1)
    for op, position in live.begin.items():
        commands[position] = _name(op)
    sizes = tuple(_at(size, dims) for size in arenas_of(module))
    return Arena(sizes, tuple(commands), tuple(_without_overlap(found)))


def _rectangle(
    live: Liveness, op: ir.Operation, index: int, buffer: ArenaBuffer, count: int, dims: Mapping[str, int]
) -> Rectangle | None:
    offset, size = _at(buffer.offset, dims), _at(buffer.bytes, dims)
    if offset is None or not size:
        return None
    name = _name(op)
    end = max(live.end[op], live.last_use(op.results[index])) + 1
    return Rectangle(f"{name}#{index}" if count > 1 else name, name, live.begin[op], end, offset, size, buffer.segment)


def _without_overlap(found: list[Rectangle]) -> list[Rectangle]:
    """The rectangles of each place, one after the other."""
    last: dict[tuple[int, int], int] = {}
    kept: list[Rectangle] = []
    for new in sorted(found, key=lambda r: (r.begin, -r.end)):
        place = new.segment, new.offset
        before = last.get(place)
        if before is not None and kept[before].end > new.begin:
            old = kept[before]
            if old.end > new.end or old.begin == new.begin:
                kept[before] = replace(old, bytes=max(old.bytes, new.bytes))
                continue
            kept[before] = replace(old, end=new.begin)
        last[place] = len(kept)
        kept.append(new)
    return kept


def _name(op: ir.Operation) -> str:
    if "callee" in op.attributes:
        return callee_of(op)
    return op.name.removeprefix("stablehlo.")


def _at(size: Expr, dims: Mapping[str, int]) -> int | None:
    return size.evaluate(dims) if size.symbols() <= set(dims) else None


__all__ = ["Arena", "arena_of"]
