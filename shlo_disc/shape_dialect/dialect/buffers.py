# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers of values: the attribute `disc.buffers` of calls, loops and branches, written by `plan`, one entry a result.

`#disc.buffer<"result", {index = 0 : i64}>` is a result of the program. `#disc.buffer<"arena", {bytes = @"4*b*s",
offset = @"64*b"}>` is a part of the arena of a segment; offset and size are in bytes. The module's `disc.arenas` has
the size of each segment's arena.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from shlo_disc.shape_dialect.dialect.ops import BufferAttr
from shlo_disc.shape_dialect.dialect.records import as_kind, read_size, read_variant, to_attribute
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.types import Dims, dims_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

BUFFERS = "disc.buffers"
ARENAS = "disc.arenas"


@dataclass(frozen=True)
class ResultBuffer:
    """Result `index` of the program."""

    space: ClassVar[str] = "result"
    index: int


@dataclass(frozen=True)
class ArenaBuffer:
    """A slice of `bytes` bytes at `offset` in the arena of a segment."""

    space: ClassVar[str] = "arena"
    offset: Expr
    bytes: Expr
    segment: int = 0


Buffer = ResultBuffer | ArenaBuffer
SPACES: dict[str, type[ResultBuffer] | type[ArenaBuffer]] = {cls.space: cls for cls in (ResultBuffer, ArenaBuffer)}


def buffers_of(op: ir.OpView | ir.Operation) -> list[Buffer]:
    """The buffers of the results of an op of a planned module. Raises Malformed."""
    entries = as_kind(ir.ArrayAttr, op.attributes[BUFFERS], f"an array as {BUFFERS}")
    return [_read_buffer(entry) for entry in entries]


@remembered
def _read_buffer(entry: ir.Attribute) -> Buffer:
    return read_variant(SPACES, entry, BufferAttr, ("space", "place"), BUFFERS)


def set_buffers(op: ir.OpView | ir.Operation, buffers: Sequence[Buffer]) -> None:
    """Write on an op where its results lie."""
    op.attributes[BUFFERS] = ir.ArrayAttr.get([_write_buffer(buffer) for buffer in buffers])


@remembered
def _write_buffer(buffer: Buffer) -> ir.Attribute:
    return BufferAttr.get(ir.StringAttr.get(buffer.space), to_attribute(buffer))


def arenas_of(module: ir.Operation) -> Dims:
    """The size of each segment's arena, in bytes, of a planned module. Raises Malformed."""
    return tuple(map(read_size, as_kind(ir.ArrayAttr, module.attributes[ARENAS], f"an array as {ARENAS}")))


def set_arenas(module: ir.Operation, sizes: Sequence[Expr]) -> None:
    """Write the size of each segment's arena, in bytes."""
    module.attributes[ARENAS] = dims_attr(sizes)
