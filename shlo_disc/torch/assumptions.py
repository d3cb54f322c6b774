# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Relations of sizes that PyTorch has assumed while it traced a program, and the lines of the user that led to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.value_ranges import bound_sympy

_CDIST = "torch.cdist"
_ROWS = 25
"""The rows up to which `torch.cdist` subtracts; for more it multiplies."""


def simplified(relation: Any) -> Any:
    """A relation without quotients that are known, as `(b*t + t - 1) // t`, which is `b`; PyTorch keeps them."""
    return relation.replace(FloorDiv, _quotient) if isinstance(relation, sympy.Basic) else relation


def _quotient(base: Any, divisor: Any) -> Any:
    """A floor division by a symbol: the multiples of it are taken out of the sum, if what is left is -1 or 0."""
    whole: list[Any] = []
    rest: list[Any] = []
    if not divisor.is_Symbol or not divisor.is_positive:
        return FloorDiv(base, divisor)
    for term in sympy.Add.make_args(sympy.expand(base)):
        (whole if divisor in sympy.Mul.make_args(term) else rest).append(term)
    left = sympy.Add(*rest)
    return sympy.Add(*(term / divisor for term in whole)) + left if left in (-1, 0) else FloorDiv(base, divisor)


def has_own_start(environment: Any, symbol: Any, ranges: Mapping[Any, Any], sizes: Set[Any]) -> bool:
    """Tells whether a range starts where PyTorch starts those of all sizes, at 2, or where it follows from that.

    Where a mask has n elements and a cache m = n - 1, it takes n to be 3 or more: no guard of n alone ends there.
    sizes: the symbols of sizes that have no `Dim`.
    """
    start = ranges[symbol].lower
    size = symbol if environment is None else environment.replace(symbol)
    if size != symbol or not symbol.is_Symbol:
        known = {part: limits for part, limits in ranges.items() if part.is_Symbol}
        return size.free_symbols <= sizes and bool(start == bound_sympy(size, known).lower)
    guards = [] if environment is None else environment.guards
    if symbol not in sizes or start == 2 or not guards:
        return symbol in sizes and bool(start == 2)
    return not any(_ends_at(simplified(environment.replace(guard.expr)), symbol, start, -1) for guard in guards)


def origins_of(program: ExportedProgram, environment: Any, ranges: Iterable[tuple[Any, Any]]) -> dict[Any, str]:
    """The lines that relations are of, and the ends of ranges that no `Dim` has: (symbol, end).

    An end that PyTorch took has a guard, which holds there, and not for the size beyond.
    """
    found: dict[Any, str] = {}
    guards = [] if environment is None else environment.guards
    known = [(simplified(environment.replace(guard.expr)), _place_of(guard.sloc)) for guard in guards]
    for relation, place in known:
        if place:
            found.setdefault(relation, place)
    for symbol, limits in ranges:
        for end, beyond in ((limits.lower, -1), (limits.upper, 1)):
            places = [place for relation, place in known if _ends_at(relation, symbol, end, beyond)]
            if places:
                found[symbol, end] = _shown(program, end, next(filter(None, places), ""))
    return found


def _ends_at(relation: Any, symbol: Any, end: Any, beyond: int) -> bool:
    """Tells whether a relation of this symbol alone ends there."""
    if getattr(relation, "free_symbols", set()) != {symbol} or not isinstance(end, sympy.Integer) or end + beyond < 1:
        return False
    try:
        inside, outside = (relation.xreplace({symbol: sympy.Integer(value)}) for value in (end, end + beyond))
    except (ZeroDivisionError, AssertionError):  # PyTorch's own functions of SymPy have no value there
        return False
    return bool(inside == sympy.true and outside == sympy.false)


def _shown(program: ExportedProgram, end: Any, place: str) -> str:
    at = f" at {place}" if place else ""
    if end in (_ROWS, _ROWS + 1) and any("cdist" in name or "euclidean" in name for name in _ops_of(program)):
        return f"{_CDIST}{at}"
    return f"an op or a branch{at}"


def _ops_of(program: ExportedProgram) -> Iterator[str]:
    return (str(node.target) for node in program.graph.nodes if node.op == "call_function")


def _place_of(where: Any) -> str:
    """The file and line of the user's that made PyTorch state a guard, as "model.py:4"; "" where it has none."""
    user = getattr(where, "maybe_user_loc", None)
    if user is None:
        frame = getattr(where, "framework_loc", None)
        if frame is None or isinstance(frame, str) or frame.filename.startswith(_LIBRARY):
            return ""
        return f"{frame.filename}:{frame.lineno}"
    found = re.match(r"\(?(.+?:\d+)", str(user))
    return found[1] if found else ""


_LIBRARY = (torch.__file__.removesuffix("__init__.py"), __file__.removesuffix("assumptions.py"))

__all__ = ["has_own_start", "origins_of", "simplified"]
