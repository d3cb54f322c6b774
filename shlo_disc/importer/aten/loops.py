# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that translations of ops are made of; those of PyTorch's own control flow are in `control.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.mlir import ir

from .graph import Graph


def repeated_while(
    carried: Sequence[ir.Value], condition: Callable[..., ir.Value], step: Callable[..., Sequence[ir.Value]]
) -> list[ir.Value]:
    """The values after as many steps as a condition of them holds."""
    types = [v.type for v in carried]
    op = ir.Operation.create("stablehlo.while", types, list(carried), regions=2)
    places = [ir.Location.unknown()] * len(types)
    before, body = (region.blocks.append(*types, arg_locs=places) for region in op.regions)
    with ir.InsertionPoint(before):
        ir.Operation.create("stablehlo.return", [], [condition(*before.arguments)])
    with ir.InsertionPoint(body):
        ir.Operation.create("stablehlo.return", [], list(step(*body.arguments)))
    return list(op.results)


def counted(
    t: Graph, count: Callable[[], ir.Value], starts: Sequence[ir.Value], step: Callable[..., Sequence[ir.Value]]
) -> list[ir.Value]:
    """The values after so many steps, each of which has its number (i64), from 0 on. count: made in the condition."""

    def following(number: ir.Value, *values: ir.Value) -> list[ir.Value]:
        return [build.add(number, t.constant(1, torch.int64)), *step(number, *values)]

    def is_below(number: ir.Value, *_: ir.Value) -> ir.Value:
        return t.compare("LT", number, count())

    return repeated_while([t.constant(0, torch.int64), *starts], is_below, following)[1:]


__all__ = ["counted", "repeated_while"]
