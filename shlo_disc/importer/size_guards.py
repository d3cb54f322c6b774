# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assertions on sizes that are added to a `jax.export.Exported`, as StableHLO that JAX checks as well."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from jax import export
from jax.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

_SYMBOL = "jax.global_constant"
_DIRECTIONS = {"==": "EQ", "!=": "NE", ">=": "GE", "<=": "LE", ">": "GT", "<": "LT"}


class SizeGuard(NamedTuple):
    """A relation of sizes that each call of a program has to satisfy, and the text of the error where it does not."""

    relation: Relation
    message: str


def with_guards(exported: export.Exported, guards: Sequence[SizeGuard]) -> export.Exported:
    """The program that asserts these relations as well.

    A relation is left out that has a symbol which the sizes of the arguments do not have.
    """
    if not guards:
        return exported
    from jax.extend.mlir import deserialize_portable_artifact, serialize_portable_artifact  # imports Pallas

    with jax_mlir.make_ir_context():
        module = deserialize_portable_artifact(bytes(exported.mlir_module_serialized))
        with ir.Location.unknown():
            _insert(module, guards)
        version = stablehlo.get_version_from_compatibility_requirement(
            stablehlo.StablehloCompatibilityRequirement.WEEK_4
        )
        data = serialize_portable_artifact(module, version, True)
    return replace(exported, mlir_module_serialized=data)


def _insert(module: Any, guards: Sequence[SizeGuard]) -> None:
    """Write the assertions at the head of the first function that has the symbols as arguments."""
    for function in module.body.operations:
        symbols = _symbols(function)
        stated = [guard for guard in guards if guard.relation.symbols() <= symbols.keys()]
        if stated:
            with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
                for guard in stated:
                    _assert(guard, symbols)
            return


def _symbols(function: Any) -> dict[str, Any]:
    """The arguments of a function that are sizes, by their symbols."""
    if "arg_attrs" not in function.attributes:
        return {}
    said = [ir.DictAttr(entry) for entry in ir.ArrayAttr(function.attributes["arg_attrs"])]
    pairs = zip(said, function.regions[0].blocks[0].arguments, strict=True)
    return {ir.StringAttr(entry[_SYMBOL]).value: value for entry, value in pairs if _SYMBOL in entry}


def _assert(guard: SizeGuard, symbols: Mapping[str, Any]) -> None:
    relation = guard.relation
    sides = [_size(side, symbols) for side in (relation.lhs, relation.rhs)]
    holds = stablehlo.compare(sides[0], sides[1], stablehlo.ComparisonDirectionAttr.get(_DIRECTIONS[relation.operator]))
    i32 = ir.IntegerType.get_signless(32)
    attributes = {
        "api_version": ir.IntegerAttr.get(i32, 2),
        "call_target_name": ir.StringAttr.get("shape_assertion"),
        "error_message": ir.StringAttr.get(guard.message),
        "has_side_effect": ir.BoolAttr.get(True),
    }
    ir.Operation.create("stablehlo.custom_call", [], [holds], attributes)


def _size(size: Expr, symbols: Mapping[str, Any]) -> Any:
    """An integer of rank 0, of the type of the symbols."""
    some = next(iter(symbols.values()))
    terms = []
    for factor, monomial in size.terms:
        factors = [_atom(atom, symbols) for atom, power in monomial for _ in range(power)]
        if factor != 1 or not factors:
            factors.append(_constant(factor, some))
        terms.append(functools.reduce(stablehlo.multiply, factors))
    return functools.reduce(stablehlo.add, terms) if terms else _constant(0, some)


def _atom(atom: Atom, symbols: Mapping[str, Any]) -> Any:
    if atom.kind == "symbol":
        return symbols[str(atom)]
    return _OPS[atom.kind](*(_size(operand, symbols) for operand in atom.operands))


def _constant(value: int, like: Any) -> Any:
    element = ir.RankedTensorType(like.type).element_type
    splat = ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], element), ir.IntegerAttr.get(element, value))
    return stablehlo.constant(splat)


def _mod(dividend: Any, divisor: Any) -> Any:
    """The remainder that has the sign of the divisor; StableHLO's has that of the dividend."""
    remainder = stablehlo.remainder(dividend, divisor)
    zero = _constant(0, dividend)
    is_other = stablehlo.compare(
        stablehlo.sign(remainder), stablehlo.sign(divisor), stablehlo.ComparisonDirectionAttr.get("NE")
    )
    is_some = stablehlo.compare(remainder, zero, stablehlo.ComparisonDirectionAttr.get("NE"))
    return stablehlo.select(stablehlo.and_(is_other, is_some), stablehlo.add(remainder, divisor), remainder)


def _floordiv(dividend: Any, divisor: Any) -> Any:
    return stablehlo.divide(stablehlo.subtract(dividend, _mod(dividend, divisor)), divisor)


_OPS: dict[str, Callable[..., Any]] = {
    "floordiv": _floordiv,
    "mod": _mod,
    "max": lambda *sizes: functools.reduce(stablehlo.maximum, sizes),
    "min": lambda *sizes: functools.reduce(stablehlo.minimum, sizes),
}

__all__ = ["SizeGuard", "with_guards"]
