# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plan of each segment of a program: its arena, checks and results, and the sizes that were read for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shlo_disc.shape_dialect.dialect.host import Check, Plan
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.segments import symbol_segments
from shlo_disc.shape_dialect.ops.variants import allocations_of


def function_name(stem: str, segment: int) -> str:
    """`disc_plan` or `disc_run` of the first segment, `disc_plan_1` of the second."""
    return f"{stem}_{segment}" if segment else stem


def plans_of(
    module: ir.Module, signature: Signature, checks: Sequence[Check], written: Mapping[int, int]
) -> Iterator[Plan]:
    """The plan of each segment: every check stands in the first in which all its symbols are known.

    `written`: the first segment that writes each result.
    """
    symbols = [s.name for s in signature.symbols]
    known = {**dict.fromkeys(symbols, 0), **symbol_segments(module)}
    for number, arena in enumerate(allocations_of(module)):
        due = tuple(c for c in checks if max([0, *(known[name] for name in c.symbols())]) == number)
        own = tuple(leaf for leaf in range(len(signature.results)) if written.get(leaf, 0) == number)
        read = tuple(name for name, segment in known.items() if segment == number and name not in symbols)
        yield Plan(arena, due, own, read)
