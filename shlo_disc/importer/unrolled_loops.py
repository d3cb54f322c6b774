# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Advice on loops over sizes that have names, of which some turns are one, as by `unroll=2` of `jax.lax.scan`."""

from __future__ import annotations

import ast
import re

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Expr, FloorDiv

from .user_code import Equation, Place

_FORI = "Can only use `unroll` in `fori_loop`"
_QUOTIENT = re.compile(r"Symbolic dimension comparison '(floordiv\(.*\))' (?:>=|<) '1' is inconclus")
_REST = re.compile(r"Symbolic dimension comparison '(mod\(.*\))' (?:>=|>|<|<=) '[01]' is inconclus")
_NUMBER = "_DimExpr"
_OPTIONS = {"jax.lax.scan": "unroll", "jax.lax.fori_loop": "unroll", "jax.lax.map": "batch_size"}


def on_unrolled(message: str, place: Place | None, lowered: Equation | None) -> str:
    """The fault of a loop that JAX cannot unroll, and what to write; "" of other errors.

    lowered: the operation that JAX was lowering.
    """
    option, count = _option(place, lowered)
    if _FORI in message:
        option = "unroll"
    elif not option or not any(words in message for words in ("floordiv(", "mod(", _NUMBER)):
        return ""
    text = f"{option}= of a loop cannot be traced with sizes that have names, as its length has one"
    advice = f"leave out {option}=, which changes no result"
    if (name := _divided(message)) and (count := count or name[1]):
        advice += f', or name the size as a multiple: write "{count}*{name[0]}" in place of "{name[0]}"'
    return f"{text}: {advice}"


def _option(place: Place | None, lowered: Equation | None) -> tuple[str, int]:
    """The option that divides the length of a loop, and its value; "" and 0 elsewhere."""
    if lowered is not None and lowered.primitive == "scan" and place is None:
        count = lowered.parameters.get("unroll", 1)
        return ("unroll", count) if count != 1 else ("", 0)
    if place is None or not isinstance(place.expression, ast.Call):
        return "", 0
    option = _OPTIONS.get(place.called(), "")
    given = [keyword.arg for keyword in place.expression.keywords]
    return (option, 0) if option in given else ("", 0)


def _divided(message: str) -> tuple[str, int] | None:
    """The symbol that a loop divides, and by how much; None where no symbol alone is the length."""
    found = _QUOTIENT.search(message) or _REST.search(message)
    try:
        atom = Expr.parse(found[1]).single_atom if found else None
    except ProgramError:
        return None
    if not isinstance(atom, FloorDiv):
        return None
    name, count = atom.dividend.is_symbol, atom.divisor.constant
    return (name, count) if name and count else None


__all__ = ["on_unrolled"]
