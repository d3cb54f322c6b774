# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of the entry function."""

from __future__ import annotations

from collections.abc import Collection

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.regions import terminator_of


def drop_arguments(function: ir.OpView, positions: Collection[int]) -> None:
    """Take away arguments that nothing uses, with what is said of them."""
    block = function.regions[0].blocks[0]
    for position in sorted(positions, reverse=True):
        block.erase_argument(position)
    inputs = [a.type for a in block.arguments]
    results = [v.type for v in terminator_of(block).operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    if "arg_attrs" in function.attributes:
        attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        kept = [a for position, a in enumerate(attributes) if position not in positions]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)
