# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that PyTorch takes apart before they are translated: those that have no translation of their own.

An op that is translated as it is gives a smaller graph, and PyTorch's tracing with symbolic sizes is what most of the
time from a module to code goes into.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, decomposition_table

from . import table
from .graph import HALVES


@functools.cache
def for_exporting() -> dict[Any, Callable[..., Any]]:
    """For `ExportedProgram.run_decompositions`: of all that PyTorch can take apart, what has no translation."""
    known = table.rows()
    every = {**decomposition_table, **dict(core_aten_decompositions().items()), **_OWN}
    return {op: rule for op, rule in every.items() if _is_taken_apart(op, known)}


def _is_taken_apart(op: Any, known: dict[str, table.Row]) -> bool:
    if not isinstance(op, torch._ops.OpOverload):
        return False
    name = table.name_of(op)
    return bool(name) and name not in known and name not in _WHOLE


def _trilinear(
    x: Any, y: Any, z: Any, expand1: list[int], expand2: list[int], expand3: list[int], sumdim: list[int], _: int = 1
) -> Any:
    """The product of three tensors with further axes at the places `expand`, summed along `sumdim`: `nn.Bilinear`."""
    wide = []
    for value, axes in ((x, expand1), (y, expand2), (z, expand3)):
        for axis in axes:
            value = value.unsqueeze(axis)
        wide.append(value)
    return (wide[0] * wide[1] * wide[2]).sum(sumdim)


def _round_decimals(x: Any, *, decimals: int) -> Any:
    """Rounding to multiples of a power of ten, as eager PyTorch computes it: halves in single precision."""
    if decimals == 0:
        return torch.round(x)
    power, value = 10.0 ** abs(decimals), x.float() if x.dtype in HALVES else x
    found = torch.round(value * power) / power if decimals > 0 else torch.round(value / power) * power
    return found.to(x.dtype)


_OWN: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._trilinear.default: _trilinear,
    torch.ops.aten.round.decimals: _round_decimals,
}
"""Decompositions of ours, for ops of which PyTorch has none, or one into ops without a translation."""

_WHOLE = frozenset({"bucketize.Scalar", "bucketize.Tensor", "complex.default", "polar.default"})
"""Ops that PyTorch decomposes into ops in place, or by numbers that it reads, which cannot be exported."""
