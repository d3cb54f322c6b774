# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small program for each pair of an op and an element type of the table of ops, one module a family.

Processors run them (`tests/run/test_op_programs.py`) and GPUs (`tests/gpu/test_ops.py`). `python -m tests.op_programs`
prints how many of the pairs are lowered for GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator

from shlo_disc.shape_dialect.ops import TABLE, OpDef
from tests.op_programs import elements, lines, movement
from tests.op_programs.program import Form

FORMS: dict[str, Form] = {**elements.FORMS, **movement.FORMS, **lines.FORMS}
"""For each op of the table, without its dialect's name, the program that uses it on an element type."""

WITHOUT = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter",
           "partition_id", "replica_id")  # fmt: skip
"""Ops that vanish where one device runs a program; `gpu/test_collectives.py` has those of several GPUs."""

NOT_GENERATED = {
    **movement.NOT_GENERATED,
    **lines.NOT_GENERATED,
    **dict.fromkeys(WITHOUT, "needs several participants; see tests/pjrt/test_devices.py"),
}
"""Ops that no family of the fuzzer has, and why."""


def row_of(op: str) -> OpDef:
    """The row of an op that is named without its dialect."""
    return TABLE[op if op in TABLE else f"stablehlo.{op}"]


def table_pairs() -> Iterator[tuple[str, str]]:
    """The ops and element types of the specification that are compiled, in the table's order."""
    for row in TABLE.values():
        for element in sorted(row.spec & row.dtypes) if row.lowering else ():
            yield row.name.removeprefix("stablehlo."), element


def pairs() -> list[tuple[str, str]]:
    """The pairs that have a program."""
    return [(op, element) for op, element in table_pairs() if op not in WITHOUT]
