# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The precision of f32 products, decided when a program is imported for a GPU. Later stages read `disc.precision`.

What a program states has the meaning that XLA gives it on GPUs: a `precision_config` of DEFAULT or HIGH allows TF32,
and HIGHEST does not. An algorithm is computed as it is named, or by the cheapest precision that is at least as exact:

| algorithm, of sides of f32 | precision | bits of a side |
|--|--|--|
| one product of tf32, bf16, f16 or f8 | tf32 | 11 |
| three products of tf32 or bf16 | tf32x3 | 22 |
| f32, six and nine products of bf16 | full | 24 |

An algorithm of f64 on sides of f32 is refused. Products of other types have one precision, and are not marked; nor are
those of groups (`shlo_disc.ragged_dot`) and those that the compiler makes of other ops, which take all bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from shlo_disc.errors import Unsupported, UnsupportedError
from shlo_disc.shape_dialect.dialect.names import PRECISION, PRODUCTS
from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.locations import operation_name, source_line

_BY_COUNT = {1: "tf32", 3: "tf32x3"}
"""Precisions by the number of products of narrow parts that an algorithm has; any other count needs all bits."""

_FIELD = re.compile(r"(\w+) = (\w+)")


def decide_precision(module: ir.Module, chosen: str | None) -> None:
    """Replace what each product of a module states by `disc.precision`.

    chosen: `Options.matmul_precision`, which overrides the program; None for what the program states. Raises
    UnsupportedError listing the products whose algorithm has no precision here.
    """
    precision_of = _stated if chosen is None else lambda op: _CHOSEN[chosen]
    found: list[Unsupported] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in PRODUCTS:
            found.extend(_decide(op, precision_of))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if found:
        raise UnsupportedError(list(dict.fromkeys(found)))


_CHOSEN = {"highest": "full", "tf32x3": "tf32x3", "tf32": "tf32"}


def _decide(op: ir.Operation, precision_of: Callable[[ir.Operation], str | None]) -> list[Unsupported]:
    """Mark one product; returns what is wrong with it."""
    if not _is_of_f32(op):
        return []
    precision = precision_of(op)
    if precision is None:
        advice = "convert the sides to float64, or choose the algorithm F32_F32_F32"
        reason = f"the algorithm {_algorithm_of(op)} is more exact than products of f32 are"
        return [Unsupported(operation_name(op.location) or op.name, "f32", source_line(op.location), reason, advice)]
    for name in ("algorithm", "precision_config"):
        if name in op.attributes:
            del op.attributes[name]
    if precision != "full":
        op.attributes[PRECISION] = ir.StringAttr.get(precision)
    return []


def _is_of_f32(op: ir.Operation) -> bool:
    """Tells whether sums of a product are of f32 because a side is."""
    types = [str(element_type_of(value)) for value in list(op.operands)[:2]]
    return "f32" in types and "f64" not in types


def _stated(op: ir.Operation) -> str | None:
    """The precision that a product states; None for one that there is not."""
    if "algorithm" in op.attributes:
        return _of_algorithm(_algorithm_of(op))
    stated = str(op.attributes["precision_config"]) if "precision_config" in op.attributes else ""
    return "full" if "HIGHEST" in stated else "tf32"


def _algorithm_of(op: ir.Operation) -> str:
    return " ".join(str(op.attributes["algorithm"]).split())


def _of_algorithm(text: str) -> str | None:
    fields = dict(_FIELD.findall(text))
    sides = {fields["lhs_precision_type"], fields["rhs_precision_type"]}
    if "f64" in sides or fields["accumulation_type"] == "f64":
        return None
    if "f32" in sides:
        return "full"
    return _BY_COUNT.get(int(fields["num_primitive_operations"]), "full")


__all__ = ["decide_precision"]
