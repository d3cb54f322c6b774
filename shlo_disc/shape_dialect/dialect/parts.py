# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of arrays in memory, as ops of a planned module and of a host program say where they begin."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.records import codec_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

PART = "part"
"""The attribute of a `disc.piece`."""


@dataclass(frozen=True)
class PartStart:
    """A signed integer of `bits` bits, element number `element` of an operand, that says where a part begins: it is
    clamped to 0 and `most`, and counts `step` bytes."""

    bits: int
    element: int
    most: Expr
    step: Expr


@dataclass(frozen=True)
class Part:
    """The beginning of a part of an array: `offset` bytes behind what `starts` say, of which each is an operand."""

    offset: Expr
    starts: tuple[PartStart, ...] = ()


_CODEC = codec_of(Part)


def part_of(piece: ir.Operation) -> Part:
    """The part of its source that a `disc.piece` is. Raises Malformed."""
    found: Part = _CODEC.read(piece.attributes[PART])
    return found


def part_attribute(part: Part) -> ir.Attribute:
    """The attribute of a `disc.piece`."""
    return _CODEC.write(part)


__all__ = ["PART", "Part", "PartStart", "part_attribute", "part_of"]
