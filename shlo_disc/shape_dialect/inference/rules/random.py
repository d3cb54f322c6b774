# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random bits."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.inference.propagation import Propagation, Rule
from shlo_disc.shape_dialect.mlir import ir


def _rng_bit_generator(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(op.operands[0]), dims_of(op.results[1])]


def _dynamic_rng_bit_generator(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(op.operands[0]), p.sizes(op.operands[1])]


RULES: dict[str, Rule] = {
    "@stablehlo.dynamic_rng_bit_generator": _dynamic_rng_bit_generator,
    "stablehlo.rng_bit_generator": _rng_bit_generator,
}
