# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From PyTorch's symbolic integers, which are SymPy's expressions, to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import sympy
import torch
from torch.utils._sympy import functions

from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv


class NoSize(ValueError):
    """An expression of PyTorch's that is no expression over sizes."""


def size_of(value: Any) -> Expr:
    """The expression of an int, a SymInt or an integer expression of SymPy. Raises NoSize."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Expr.const(value)
    if isinstance(value, torch.SymInt):
        return _read(value.node.expr)
    if isinstance(value, sympy.Expr):
        return _read(value)
    raise NoSize(f"{value} is no size")


def sizes_of(values: Iterable[Any]) -> Dims:
    """The expressions of several sizes, as of a shape."""
    return tuple(map(size_of, values))


def _read(e: Any) -> Expr:
    if isinstance(e, sympy.Integer):
        return Expr.const(int(e))
    if isinstance(e, sympy.Symbol):
        return Expr.symbol(e.name)
    if isinstance(e, sympy.Pow) and isinstance(e.args[1], sympy.Integer) and int(e.args[1]) >= 0:
        return _read(e.args[0]) ** int(e.args[1]) if int(e.args[1]) else Expr.const(1)
    if isinstance(e, functions.TruncToInt | functions.FloorToInt) and (found := _scaled(e.args[0])) is not None:
        return found
    for kind, build in _KINDS:
        if isinstance(e, kind):
            return build(*map(_read, e.args))
    raise NoSize(f"{e} is no expression over sizes")


def _scaled(e: Any) -> Expr | None:
    """floor(factor * size) of a positive factor that is a fraction of a small power of two, such as 1.5, else None.

    The product is exact in double precision then, as PyTorch computes it.
    """
    factor, rest = e.as_coeff_Mul()
    if not isinstance(rest, functions.ToFloat) or not isinstance(factor, sympy.Float) or not factor > 0:
        return None
    above, below = float(factor).as_integer_ratio()
    return _read(rest.args[0]) * above // below if max(above, below) <= _SMALL else None


_SMALL = 1 << 12


def _modular_indexing(base: Expr, divisor: Expr, modulus: Expr) -> Expr:
    return base // divisor % modulus


_KINDS: tuple[tuple[Any, Callable[..., Expr]], ...] = (
    (sympy.Add, lambda *parts: reduce(lambda a, b: a + b, parts)),
    (sympy.Mul, lambda *parts: reduce(lambda a, b: a * b, parts)),
    (functions.CeilDiv, ceildiv),
    (functions.FloorDiv, lambda a, b: a // b),  # CleanDiv is one
    (functions.PythonMod, lambda a, b: a % b),
    (functions.Mod, lambda a, b: a % b),
    (sympy.Mod, lambda a, b: a % b),
    (functions.ModularIndexing, _modular_indexing),
    (functions.Max, Expr.maximum),
    (functions.Min, Expr.minimum),
    (sympy.Max, Expr.maximum),
    (sympy.Min, Expr.minimum),
)
