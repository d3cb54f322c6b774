# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The data that `watch` prints: a row for each function. Needs no MLIR."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

SCHEMA = 1


@dataclass(frozen=True)
class ProgramRow:
    """A program that was compiled. seconds: of the compile. why: "" for the first one, and for symbolic ones."""

    is_symbolic: bool
    seconds: float
    shapes: str
    why: str


@dataclass(frozen=True)
class FunctionRow:
    """A function of the watched process.

    place: where it is defined or, for what JAX runs eagerly, the line that called it. forms: the different element
    types and ranks that its arguments had. shapes: for each form those seen, in words.
    """

    name: str
    place: str
    is_users: bool
    calls: int
    forms: int
    shape_count: int
    shapes: tuple[str, ...]
    programs: tuple[ProgramRow, ...]
    why: str

    @property
    def seconds(self) -> float:
        """Those of all its compiles."""
        return sum(program.seconds for program in self.programs)

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> FunctionRow:
        """Rebuild a row from the dict that `dataclasses.asdict` made."""
        programs = tuple(ProgramRow(**program) for program in row["programs"])
        return cls(**{**row, "shapes": tuple(row["shapes"]), "programs": programs})


def document(rows: list[FunctionRow]) -> dict[str, Any]:
    """The rows as JSON has them."""
    return {"schema": SCHEMA, "functions": [dataclasses.asdict(row) for row in rows]}


__all__ = ["SCHEMA", "FunctionRow", "ProgramRow", "document"]
