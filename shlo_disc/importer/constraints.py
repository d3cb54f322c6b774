# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constraints on sizes, in `constraints=` of `shlo_disc.compile` and `shlo_disc.jit`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

_COMPARISON = re.compile(r"<=>|[<>=!]=|[<>=]")
_NAME = re.compile(r"[a-zA-Z_]\w*")
_FUNCTIONS = ("floordiv", "mod", "max", "min")
_REMAINDER = re.compile(r"(\w+)\s*%\s*(\w+)")


def constraint_fault(constraints: Any, known: Collection[str] | None = None, option: str = "args=") -> str:
    """The fault of `constraints` that are no sequence of comparisons, and what to write; "" where there is none.

    known: the names of sizes in the option, where they are known.
    """
    if isinstance(constraints, str):
        return f"constraints= is a sequence of strings: write constraints=({constraints!r},)"
    for constraint in constraints:
        if not isinstance(constraint, str):
            return f"constraints= is a sequence of strings, such as 'b <= 64', and {constraint!r} is none"
        found = _COMPARISON.findall(constraint)
        others = [name for name in _NAME.findall(constraint) if known and name not in (*known, *_FUNCTIONS)]
        if others and not (len(found) == 1 and found[0] in ("<=", ">=", "==")):
            return f"constraints= has a size {others[0]!r} in {constraint!r}, and {option} has none of that name"
        if "%" in constraint:
            instead = _REMAINDER.sub(r"mod(\1, \2)", constraint)
            return f"constraints= has the remainder as a function: write {instead!r} in place of {constraint!r}"
        if "/" in constraint:
            return f"constraints= has no fractions, as in {constraint!r}: write floordiv(s, 2), or 2*t in place of s"
        if len(found) == 1 and found[0] in ("<=", ">=", "=="):
            continue
        if found == ["!="]:
            return f"constraints= cannot state {constraint!r}: leave it out, or state a range by <= and >="
        if len(found) == 1 and not all(side.strip() for side in _COMPARISON.split(constraint)):
            found = []
        wanted = f"write {_comparison(constraint, found[0])!r}" if len(found) == 1 else "write each one by itself"
        instead = wanted if found else "write it as 'b <= 64', 'b >= 2' or 's == 2*t'"
        return f"constraints= compares sizes by <=, >= or ==, and {constraint!r} does not: {instead}"
    return _contradiction(constraints)


def _comparison(constraint: str, sign: str) -> str:
    """The comparison that was meant: of integers, b < 64 is b <= 63."""
    left, right = (side.strip() for side in constraint.split(sign))
    if sign not in "<>":
        return f"{left} == {right}"
    step = 1 if sign == ">" else -1
    bound = str(int(right) + step) if right.isdecimal() else f"{right} {'+' if step > 0 else '-'} 1"
    return f"{left} {sign}= {bound}"


def _contradiction(constraints: Sequence[str]) -> str:
    """The fault of constraints that no sizes of at least 1 satisfy, with two of them where these suffice; or ""."""
    try:
        relations = [Relation.parse(text) for text in constraints]
    except ProgramError:
        return _syntax_fault(constraints)
    if is_satisfiable(relations):
        return ""
    for i, relation in enumerate(relations):
        if not is_satisfiable([relation]):
            return (
                f"no call can satisfy the constraint {constraints[i]!r}: sizes are at least 1, and one that may be 0 "
                'is named "b - 1" in the shape, where b is at least 1'
            )
    pairs = ((i, k) for k in range(len(relations)) for i in range(k))
    found = next(((i, k) for i, k in pairs if not is_satisfiable([relations[i], relations[k]])), range(len(relations)))
    texts = " and ".join(repr(constraints[i]) for i in found)
    return f"no call can satisfy the constraints {texts} together: change one of them, or leave it out"


def _syntax_fault(constraints: Sequence[str]) -> str:
    """The fault of the first constraint that JAX does not read, and what to write; "" where JAX says what is wrong."""
    from shlo_disc.runtime.size_syntax import rewritten

    for constraint in constraints:
        sign = _COMPARISON.findall(constraint)[0]
        instead = f" {sign} ".join(rewritten(side.strip()) for side in constraint.split(sign))
        try:
            Relation.parse(instead)
        except ProgramError:
            continue
        if instead.replace(" ", "") != constraint.replace(" ", ""):
            return f"constraints= has {constraint!r}: write {instead!r}"
    return ""


def is_satisfiable(relations: Sequence[Relation]) -> bool:
    """Tells whether some sizes of at least 1 satisfy all relations, as far as is known."""
    facts = Facts()
    try:
        for name in sorted({name for relation in relations for name in relation.symbols()}):
            facts.declare(name, min=1)
        for relation in relations:
            facts.add(relation)
    except ProgramError:
        return False
    return True


__all__ = ["constraint_fault", "is_satisfiable"]
