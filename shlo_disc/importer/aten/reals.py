# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real numbers that PyTorch computes from sizes and from floats that are arguments, such as 1 / (b * s), in double
precision as Python has them."""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any

import sympy
import torch
from torch.utils._sympy import functions

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.mlir import ir

from .sizes import NoSize

_UNARY = {"OpaqueUnaryFn_sqrt": "sqrt", "OpaqueUnaryFn_exp": "exponential", "OpaqueUnaryFn_log": "log",
          "OpaqueUnaryFn_sin": "sine", "OpaqueUnaryFn_cos": "cosine", "OpaqueUnaryFn_tanh": "tanh"}  # fmt: skip

_ASSOCIATIVE: tuple[tuple[Any, str], ...] = (
    (sympy.Add, "add"),
    (sympy.Mul, "multiply"),
    ((functions.Max, sympy.Max), "maximum"),
    ((functions.Min, sympy.Min), "minimum"),
)
_INEXACT = (sympy.Pow, functions.FloatPow, functions.PowByNatural)


def is_root(e: Any) -> bool:
    """Tells whether an expression is a square root."""
    if type(e).__name__ == "OpaqueUnaryFn_sqrt":
        return True
    return isinstance(e, _INEXACT) and e.args[1] == 0.5


def is_exact(e: Any) -> bool:
    """Tells whether each op of an expression is rounded as Python's, so that both find it on one side of a number.

    Powers, exponentials and the like may differ in their last bit, and SymPy forgets the order of a sum or a product.
    """
    if not all(map(is_exact, e.args)):
        return False
    if e.is_integer or is_root(e):
        return True
    if isinstance(e, sympy.Add | sympy.Mul) and len(e.args) > 2:
        return isinstance(e, sympy.Mul) and all(_is_whole(part) or _is_power_of_two(part) for part in e.args)
    return not isinstance(e, _INEXACT) and type(e).__name__ not in _UNARY


def _is_whole(e: Any) -> bool:
    return bool((e.args[0] if isinstance(e, functions.ToFloat) else e).is_integer)


def _is_power_of_two(e: Any) -> bool:
    return bool(e.is_Float) and abs(math.frexp(float(e))[0]) == 0.5


def real(t: Any, e: Any) -> ir.Value:
    """An expression of SymPy over sizes, and over floats that are arguments, as a tensor of rank 0 of f64.

    Raises NoSize for other functions.
    """
    if e in t.reals:
        return t.reals[e]
    if isinstance(e, sympy.Float | sympy.Rational | sympy.NumberSymbol):
        return t.constant(float(e), torch.float64)
    if isinstance(e, sympy.Symbol) or e.is_integer:
        return t.size(t.sizes.size_of(e), torch.float64)
    if isinstance(e, functions.FloatTrueDiv | functions.IntTrueDiv):
        return build.divide(*(real(t, part) for part in e.args))
    if isinstance(e, functions.ToFloat):
        return real(t, e.args[0])
    for kinds, combining in _ASSOCIATIVE:
        if isinstance(e, kinds):
            return reduce(partial(t.pointwise, combining), [real(t, part) for part in e.args])
    if is_root(e):
        return t.pointwise("sqrt", real(t, e.args[0]))
    if isinstance(e, sympy.Pow | functions.FloatPow | functions.PowByNatural):
        return build.power(*(real(t, part) for part in e.args))
    name = _UNARY.get(type(e).__name__)
    if name is None:
        raise NoSize(f"{e} is computed from sizes in a way that has no lowering")
    return t.pointwise(name, real(t, e.args[0]))
