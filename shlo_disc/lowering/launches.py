# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the lowering notes of each step of a program for those who want to know: the choices left to run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation


@dataclass(frozen=True)
class Guard:
    """A choice that generated code makes at run time, because the facts do not: `variant` where `conditions` hold.

    `is_fact`: they are such as a program could state, rather than a matter of how large a call is.
    """

    variant: str
    otherwise: str
    conditions: tuple[Relation, ...]
    is_fact: bool = True

    def substitute(self, meaning: Mapping[str, Expr]) -> Guard:
        """The guard over other names."""
        return replace(self, conditions=tuple(c.substitute(meaning) for c in self.conditions)) if meaning else self

    def choice(self, dims: Mapping[str, int]) -> str:
        """What is chosen at values of the symbols."""
        return self.variant if all(c.evaluate(dims) for c in self.conditions) else self.otherwise


@dataclass(frozen=True)
class Launched:
    """A step: the functions that it runs, the kind of its fusion and the fusion's name, which a copy lacks.

    `bytes` are those that a copy reads and writes, or clearing writes. `is_direct`: the program calls the kernel by
    itself, without the runtime.
    """

    name: str
    kind: str
    fusion: str = ""
    guards: tuple[Guard, ...] = ()
    bytes: Expr | None = None
    is_direct: bool = False
