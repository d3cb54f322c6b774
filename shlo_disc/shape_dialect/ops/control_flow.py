# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, branches, tokens and calls."""

from __future__ import annotations

from collections.abc import Iterable

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import define, no_flops
from shlo_disc.shape_dialect.ops.element_types import ALL
from shlo_disc.shape_dialect.ops.size_relations import SizeRelations

_TESTS = "tests/run/test_control_flow.py"


def _relate_branches(r: SizeRelations, op: ir.OpView) -> None:
    for region in op.regions:
        _match(r, op.results, _terminator(region).operands)


def _relate_while(r: SizeRelations, op: ir.OpView) -> None:
    _match(r, op.results, op.operands)
    for region in op.regions:
        _match(r, op.results, region.blocks[0].arguments)
    _match(r, op.results, _terminator(op.regions[1]).operands)


def _match(r: SizeRelations, a: Iterable[ir.Value], b: Iterable[ir.Value]) -> None:
    for x, y in zip(a, b, strict=True):
        r.same_shape([x, y])


def _terminator(region: ir.Region) -> ir.OpView:
    operations = region.blocks[0].operations
    return operations[len(operations) - 1]


OPS = (
    *define("control", "case if", ALL, relate=_relate_branches, tests=_TESTS),
    *define("control", "while", ALL, relate=_relate_while, flops=no_flops, tests=_TESTS),
    *define("import", "after_all create_token", {"!stablehlo.token"}, tests="tests/run/test_ops_distributed.py"),
)
