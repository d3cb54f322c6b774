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


@functools.cache
def for_exporting() -> dict[Any, Callable[..., Any]]:
    """For `ExportedProgram.run_decompositions`: of all that PyTorch can take apart, what has no translation."""
    known = table.rows()
    every = {**decomposition_table, **dict(core_aten_decompositions().items())}
    return {op: rule for op, rule in every.items() if _is_taken_apart(op, known)}


def _is_taken_apart(op: Any, known: dict[str, table.Row]) -> bool:
    if not isinstance(op, torch._ops.OpOverload):
        return False
    name = table.name_of(op)
    return bool(name) and name not in known and name not in _WHOLE


_WHOLE = frozenset({"bucketize.Scalar", "bucketize.Tensor", "complex.default", "polar.default"})
"""Ops that PyTorch decomposes into ops in place, or by numbers that it reads, which cannot be exported."""
