# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions that the user registered take the form of library calls."""

from __future__ import annotations

from shlo_disc.shape_dialect.custom_calls import find_custom_call
from shlo_disc.shape_dialect.dialect.library import LIBRARY
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.lapack_sizes import entries, shape_operands
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.expand.library_call import library_call


def _custom_call(op: ir.OpView) -> bool:
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    if LIBRARY in op.attributes or find_custom_call(target) is None:
        return False
    shapes = shape_operands(op)
    operands = [v for i, v in enumerate(op.operands) if i not in shapes]
    kept = {name: op.attributes[name] for name in ("has_side_effect",) if name in op.attributes}
    results = [r.type for r in op.results]
    values = library_call(
        target, operands, results, {}, Expr.const(0), custom=_attributes(op), aliases=_aliases(op), attributes=kept
    )
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    return True


def _attributes(op: ir.OpView) -> dict[str, ir.Attribute]:
    for key in ("mhlo.backend_config", "backend_config"):
        if key in op.attributes:
            given = op.attributes[key]
            return entries(given) if isinstance(given, ir.DictAttr) else {"backend_config": given}
    return {}


def _aliases(op: ir.OpView) -> list[tuple[int, int]]:
    if "output_operand_aliases" not in op.attributes:
        return []
    return [_alias(attribute) for attribute in ir.ArrayAttr(op.attributes["output_operand_aliases"])]


def _alias(attribute: ir.Attribute) -> tuple[int, int]:
    """(result, operand) of an `output_operand_alias`."""
    alias = stablehlo.OutputOperandAlias(attribute)
    places = list(alias.output_tuple_indices)
    return (places[0] if places else 0), int(alias.operand_index)


EXPANSIONS = [("stablehlo.custom_call", _custom_call)]
