# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matrix product in the body of a loop."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks


@dataclass
class LoopProduct:
    """A product in the body of a loop."""

    loop: ir.OpView
    dot: ir.Operation

    @property
    def body(self) -> ir.Block:
        """The block of an iteration."""
        return nested_blocks(self.loop)[1]

    @property
    def numbers(self) -> stablehlo.DotDimensionNumbers:
        """The product's dimension numbers."""
        return stablehlo.DotDimensionNumbers(self.dot.attributes["dot_dimension_numbers"])

    def is_inside(self, value: ir.Value) -> bool:
        """Tells whether a value is made in an iteration."""
        owner = value.owner
        return owner == self.body if isinstance(owner, ir.Block) else owner.operation.block == self.body
