# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs without their large constants. Works with JAX's bindings of MLIR as with the compiler's own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

MOST_ELEMENTS = 64
"""A constant of more elements, unless all are alike, is replaced: integers and booleans by zeros, others by ones."""


def elide_constants(module: Any, ir: Any) -> list[dict[str, str]]:
    """Replace the large constants of a module; their types and places. ir: the module's bindings."""
    found = []
    for op in list(_constants(module.operation)):
        kind = ir.RankedTensorType(op.results[0].type)
        count = math.prod(kind.get_dim_size(axis) for axis in range(kind.rank))
        if count <= MOST_ELEMENTS or _is_splat(op):
            continue
        found.append({"type": str(kind), "location": str(op.location)[:400]})
        small = ir.Operation.parse(f"stablehlo.constant dense<{_element(str(kind.element_type))}> : {kind}")
        ir.InsertionPoint(op).insert(small)
        op.results[0].replace_all_uses_with(small.results[0])
        op.erase()
    return found


def _is_splat(op: Any) -> bool:
    """Tells whether all elements are alike, by the text: the bindings do not give every kind of attribute."""
    text = op.get_asm(use_local_scope=True, large_elements_limit=MOST_ELEMENTS)
    _, found, elements = text.partition("dense<")
    return bool(found) and not elements.startswith(("[", '"'))


def _element(kind: str) -> str:
    if kind == "i1":
        return "false"
    if kind.startswith("complex"):
        return "(1.0, 0.0)"
    return "0" if kind.startswith(("i", "ui", "si")) else "1.0"


def _constants(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == "stablehlo.constant":
                    yield inner.operation
                yield from _constants(inner.operation)


__all__ = ["MOST_ELEMENTS", "elide_constants"]
