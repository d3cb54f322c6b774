# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real numbers that PyTorch computes from sizes and from floats that are arguments, such as 1 / (b * s), in double
precision as Python has them."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.utils._sympy import functions

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.mlir import ir

from .sizes import NoSize

_UNARY = {"OpaqueUnaryFn_sqrt": "sqrt", "OpaqueUnaryFn_exp": "exponential", "OpaqueUnaryFn_log": "log",
          "OpaqueUnaryFn_sin": "sine", "OpaqueUnaryFn_cos": "cosine", "OpaqueUnaryFn_tanh": "tanh"}  # fmt: skip


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
    if isinstance(e, sympy.Add | sympy.Mul):
        first, *others = (real(t, part) for part in e.args)
        for other in others:
            first = t.pointwise("add" if isinstance(e, sympy.Add) else "multiply", first, other)
        return first
    if isinstance(e, sympy.Pow | functions.FloatPow | functions.PowByNatural):
        return build.power(*(real(t, part) for part in e.args))
    name = _UNARY.get(type(e).__name__)
    if name is None:
        raise NoSize(f"{e} is computed from sizes in a way that has no lowering")
    return t.pointwise(name, real(t, e.args[0]))
