# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The largest size for which a program's memory suffices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shlo_disc.driver.stage_text import peak_memory
from shlo_disc.errors import ShapeError
from shlo_disc.runtime.dims import dim_values, integer_of
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation
from shlo_disc.shape_dialect.symbolic.largest import LARGEST, largest_value

if TYPE_CHECKING:
    from shlo_disc.driver.compilation import Compilation
    from shlo_disc.driver.executable import Executable


def max_dim(executable: Executable, c: Compilation, name: str, memory: int, others: Mapping[str, int]) -> int:
    """The largest value of symbol `name` for which a call allocates at most `memory` bytes. Raises ShapeError.

    c: the compilation of the executable, planned. others: the values of all other symbols.
    """
    names = [symbol.name for symbol in executable.signature.symbols]
    if name not in names:
        raise ShapeError(f"the program has no dimension variable {name!r}; it has {names}")
    limit = integer_of(memory)
    if limit is None:
        raise ShapeError(f"memory= is a number of bytes, not {memory!r}")
    known = dim_values([each for each in names if each != name], others)
    formula = peak_memory(c).substitute(known)
    relations = [_substituted(relation, known) for relation in c.facts.relations]
    low, high = c.facts.symbols[name].min or 0, c.facts.symbols[name].max

    def may_fit(facts: Facts) -> bool:
        least, _ = facts.range(formula)
        return (least is None or least <= limit) and not any(facts.prove(each) is False for each in relations)

    def bytes_at(value: int) -> int | None:
        """None for a value that is not allowed."""
        try:
            return executable.peak_memory(**known, **{name: value})
        except ShapeError:
            return None

    def fits(value: int) -> bool:
        needed = bytes_at(value)
        return needed is not None and needed <= limit

    found = largest_value(name, low, LARGEST if high is None else high, may_fit, fits)
    if found is None:
        needed = bytes_at(low)
        example = "" if needed is None else f": a call with {name}={low} takes {needed}"
        raise ShapeError(f"no value of {name!r} fits {limit} bytes{example}")
    if found == LARGEST:
        raise ShapeError(f"every value of {name!r} fits {limit} bytes: what a call takes does not grow with it")
    return found


def _substituted(relation: Relation, known: Mapping[str, int]) -> Relation:
    return Relation(relation.operator, relation.lhs.substitute(known), relation.rhs.substitute(known))


__all__ = ["max_dim"]
