# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The data of a report: what the page's script finds, as JSON, in the element `#document`.

The JSON has the fields of these classes under their names, with lists for tuples. Texts are packed: deflated (zlib) and
in base64, so that a program of thousands of ops is a page of a few megabytes; the browser inflates one when it is
looked at. Lines are counted from 0, and a range ends before its second number.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import Any

SCHEMA = 1
"""Changes when a field changes its meaning or goes."""


@dataclass(frozen=True)
class Excerpt:
    """Lines of a text: the text's name and the range."""

    text: str
    first: int
    end: int


@dataclass(frozen=True)
class Overview:
    """A program's summary. `rows`: names and texts, as ("arena", "64*b*s"). timings: seconds by stage, "stage/pass"."""

    name: str
    target: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]
    timings: dict[str, float]


@dataclass(frozen=True)
class Diff:
    """The changes between two texts: the ranges that differ, as (first, end) in `left` and (first, end) in `right`.

    Lines that differ only in the numbers of values (`%12`) count as equal. What lies between two changes is of the same
    length on both sides. A change is one line that has become another, with the same op, or lines of one side only.
    """

    left: str
    right: str
    changes: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True)
class Node:
    """A box of the graph.

    kind: "argument", "result", "control" for a loop or branch, or that of a fusion. `x`, `y`: its middle, in pixels.
    trunk: where the lines of its edges turn, one point a layer below it.
    ops: what it computes, in a line. sources: the user's lines with their code where the file is at hand. inputs and
    outputs: types. excerpts: where its ops, its kernels and their machine code are, under "ops", "kernel" and "code".
    """

    name: str
    kind: str
    x: float
    y: float
    trunk: tuple[tuple[float, float], ...] = ()
    ops: str = ""
    kernels: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    excerpts: dict[str, tuple[Excerpt, ...]] | None = None


@dataclass(frozen=True)
class Edge:
    """Values that one node makes and another reads, by their numbers; `bends`: how far its line follows the trunk."""

    source: int
    target: int
    label: str
    bends: int = 0


@dataclass(frozen=True)
class Symbol:
    """A size: `bounds` such as "1 <= s <= 48", what else is declared of it, and where a call takes it from."""

    name: str
    bounds: str
    more: str


@dataclass(frozen=True)
class Missing:
    """A relation that was not proved: what it decides, and whom it would help (node numbers or the user's lines).

    constraint: what to write among the constraints of the sizes, simpler than the relation where that is enough; ""
    where no call could promise it.
    """

    relation: str
    decides: tuple[str, ...]
    where: tuple[str, ...]
    constraint: str


@dataclass(frozen=True)
class Rule:
    """A pattern of rewrites: how often it was taken, and how often each of its conditions refused it.

    made: the places where it was taken, with the relations that were proved for it; refused: the same for a condition
    that did not hold, with those that were not. The most frequent ones only.
    """

    name: str
    text: str
    taken: int
    conditions: tuple[tuple[str, int], ...]
    made: tuple[tuple[str, tuple[str, ...]], ...]
    refused: tuple[tuple[str, str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Rectangle:
    """A value in the arena: needed from the command `begin` on, until before `end`; `bytes` bytes at `offset`."""

    name: str
    node: str
    begin: int
    end: int
    offset: int
    bytes: int
    segment: int = 0


@dataclass(frozen=True)
class KernelRow:
    """A command: what `report.KernelReport` says of it, the node that it computes ("" for a copy) and its guards."""

    node: str
    guards: tuple[str, ...]
    report: dict[str, Any]


@dataclass(frozen=True)
class Call:
    """The program at given sizes. `problem`: why the commands have no times, "" where they have.

    arenas: the bytes of each segment's arena, None where sizes of it are read from data. commands: the names on the
    time axis of the arena, one a position from 0 on.
    """

    dims: dict[str, int]
    machine: str
    problem: str
    arenas: tuple[int | None, ...]
    result_bytes: int | None
    commands: tuple[str, ...]
    rectangles: tuple[Rectangle, ...]
    kernels: tuple[KernelRow, ...]


@dataclass(frozen=True)
class Document:
    """All of a report."""

    schema: int
    overview: Overview
    texts: dict[str, str]
    diffs: tuple[Diff, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    symbols: tuple[Symbol, ...]
    constraints: tuple[tuple[str, str], ...]
    missing: tuple[Missing, ...]
    rules: tuple[Rule, ...]
    calls: tuple[Call, ...]


def pack(text: str) -> str:
    """A text as the document has it."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack(packed: str) -> str:
    """The text of `pack`."""
    return zlib.decompress(base64.b64decode(packed)).decode()
