# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What can be compiled: one table, read once per import, so that everything unsupported is reported together."""

from __future__ import annotations

from collections.abc import Iterator

from shlo_disc.errors import Unsupported, UnsupportedError
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.locations import operation_name, source_line
from shlo_disc.shape_dialect.propagate import RULES

from .signature import DTYPES

STRUCTURAL = {"func.func", "func.return", "stablehlo.return", "builtin.module"}

SUGGESTIONS = {
    "stablehlo.while": "unroll the loop or move it out of the compiled function",
    "stablehlo.case": "use jnp.where / lax.select, or compile each branch",
    "stablehlo.if": "use jnp.where / lax.select, or compile each branch",
    "stablehlo.convolution": "express it as a dot over patches",
    "stablehlo.sort": "sort outside the compiled function",
}


def check_supported(module: ir.Module) -> None:
    """Raise UnsupportedError listing every construct of `module` that cannot be compiled."""
    found = []
    for op in _operations(module.operation):
        found += _op_problems(op)
    if found:
        raise UnsupportedError(list(dict.fromkeys(found)))


def _operations(op: ir.Operation) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _operations(inner.operation)


def _op_problems(op: ir.OpView) -> list[Unsupported]:
    name = op.operation.name
    where = source_line(op.location)
    label = operation_name(op.location)
    shown = f"{name} ({label})" if label else name
    if name == "stablehlo.custom_call":
        target = ir.StringAttr(op.attributes["call_target_name"]).value
        if target == "shape_assertion":
            return []
        return [Unsupported(f"{shown} @{target}", "", where, "this custom call has no lowering")]
    if name not in RULES and name not in STRUCTURAL:
        return [Unsupported(shown, "", where, "this op has no lowering", SUGGESTIONS.get(name, ""))]
    problems = [
        Unsupported(shown, dtype, where, "this dtype has no lowering", "convert to a supported dtype first")
        for dtype in sorted(_foreign_dtypes(op))
    ]
    if name in _EXTRA_CHECKS and not problems:
        reason = _EXTRA_CHECKS[name](op)
        if reason:
            problems.append(Unsupported(shown, "", where, reason))
    return problems


def _foreign_dtypes(op: ir.OpView) -> set[str]:
    dtypes = set()
    for value in [*op.operands, *op.results]:
        if not isinstance(value.type, ir.RankedTensorType):
            dtypes.add(str(value.type))
        elif str(value.type.element_type) not in DTYPES:
            dtypes.add(str(value.type.element_type))
    return dtypes


def _check_bitcast(op: ir.OpView) -> str | None:
    source, result = op.operands[0].type, op.results[0].type
    same = ir.RankedTensorType(source).rank == ir.RankedTensorType(result).rank
    return None if same else "a bitcast that changes the rank has no lowering"


def _check_dot(op: ir.OpView) -> str | None:
    lhs, rhs = (str(ir.RankedTensorType(v.type).element_type) for v in op.operands)
    return None if lhs == rhs else f"operands of different dtypes ({lhs} and {rhs}) have no lowering"


_EXTRA_CHECKS = {
    "stablehlo.bitcast_convert": _check_bitcast,
    "stablehlo.dot_general": _check_dot,
}
