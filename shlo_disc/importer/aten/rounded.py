# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are floats rounded to integers, such as int(0.7 * n), which no expression over sizes is at all sizes.

The program computes them in double precision, as Python does, and reads them as it reads sizes from data.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

import sympy
import torch
from torch.utils._sympy import functions
from torch.utils._sympy.value_ranges import bound_sympy

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph
from .reals import is_exact, real
from .relations import bind
from .sizes import ROUNDED, NoSize


def bind_rounded(t: Graph, expressions: Iterable[Any], stated: Set[str]) -> dict[Any, Expr]:
    """Symbols for the rounded floats in expressions of SymPy over the symbols `stated`, at the start of the program."""
    atoms: dict[Any, None] = {}
    for e in expressions:
        if isinstance(e, sympy.Basic) and e.has(*ROUNDED):
            atoms.update(dict.fromkeys(sorted(e.atoms(*ROUNDED), key=sympy.default_sort_key)))
    found: dict[Any, Expr] = {}
    for atom in atoms:
        if _is_expression(t, atom) or any(str(t.sizes.size_of(s)) not in stated for s in atom.free_symbols):
            continue
        symbol = Expr.symbol(f"rounded{len(found)}")
        found[atom] = symbol
        _bind(t, atom, symbol)
    return found


def _is_expression(t: Graph, e: Any) -> bool:
    try:
        t.sizes.size_of(e)
    except NoSize:
        return False
    return True


def _bind(t: Graph, e: Any, symbol: Expr) -> None:
    """Compute a rounded float. Raises UnsupportedError for a function of sizes that has no lowering, or that may be
    rounded to another integer than Python's."""
    if not is_exact(e.args[0]):
        raise t.refuse(f"{t.sizes.shown(e)} may be another integer than in Python: its last bit may differ")
    try:
        value = real(t, e.args[0])
    except NoSize as error:
        raise t.refuse(str(error)) from None
    if isinstance(e, functions.CeilToInt):
        value = build.ceil(value)
    elif isinstance(e, functions.FloorToInt):
        value = build.floor(value)
    elif isinstance(e, functions.RoundToInt):
        value = t.pointwise("round_nearest_even", value)
    bind(t, t.convert(value, torch.int64), symbol, may_be_negative=not bound_sympy(e).lower >= 0)
