# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops whose result has a size that is read from data."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.inference.propagation import Propagation, Rule
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.facts import Relation


def _nonzero(p: Propagation, op: ir.OpView) -> list[Dims]:
    """As many elements as are true: no more than there are. The size has its symbol from the importer."""
    (count,), (length,) = dims_of(op.results[0]), dims_of(op.operands[0])
    p.require(Relation.le(count, length), op)
    return [(count,)]


RULES: dict[str, Rule] = {"disc.nonzero": _nonzero}
