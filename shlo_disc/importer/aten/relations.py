# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Relations of sizes that PyTorch states, as assertions that annotate learns from and each call checks.

And symbols that are read from data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch

from shlo_disc.runtime.words_of_torch import ASSUMED
from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph
from .reals import is_exact, real
from .sizes import NoSize

_DIRECTIONS = {sympy.Ge: "GE", sympy.Gt: "GT", sympy.Le: "LE", sympy.Lt: "LT", sympy.Eq: "EQ", sympy.Ne: "NE"}


def assert_holds(t: Graph, relation: Any, message: str | None = None) -> None:
    """State that a relation of sizes holds, as `jax.export` does. Raises UnsupportedError for one of other numbers.

    message: by default the relation and the line of the node that is translated.
    """
    if relation in (True, sympy.true):
        return
    if isinstance(relation, sympy.And):
        for part in relation.args:
            assert_holds(t, part, message)
        return
    condition = truth(t, relation)
    text, values = _requirement(t, relation) if message is None else (message, [])
    state(t, condition, text, values)


def check_relation(t: Graph, relation: Any) -> None:
    """State a relation that PyTorch took to hold of sizes or integers of the arguments: each call checks it."""
    place = t.origins.get(relation)
    if any(str(t.sizes.size_of(symbol)) in t.bound for symbol in getattr(relation, "free_symbols", ())):
        assert_holds(t, relation)
        return
    text = f"{ASSUMED}{t.sizes.shown(relation)}{f' ({place})' if place else ''}"
    assert_holds(t, relation, text)


def check_ends(t: Graph, symbol: Any, limits: Any, least: int) -> None:
    """State that a symbol is in its range, which each call checks; a start of `least` or below it is none."""
    low, high, name = limits.lower, limits.upper, t.sizes.shown(symbol)
    known = {end: t.origins.get((symbol, end)) for end in (low, high)}
    taken = {end: f", as PyTorch took it for {origin}" for end, origin in known.items() if origin}
    if isinstance(low, sympy.Integer) and int(low) > least:
        least_size = sympy.Ge(symbol, low, evaluate=False)  # to SymPy, PyTorch's symbols are positive
        assert_holds(t, least_size, f"{name} is below its range, which starts at {low}{taken.get(low, '')}")
    if isinstance(high, sympy.Integer) and int(high) < LARGEST:
        text = f"{name} is above its range, which ends at {high}{taken.get(high, '')}"
        assert_holds(t, sympy.Le(symbol, high), text)


LARGEST = 1 << 40
"""Ends of ranges beyond it are none."""


def _requirement(t: Graph, relation: Any) -> tuple[str, list[ir.Value]]:
    """A message about a relation of PyTorch's and the values in it: of sizes, if some of them are read from data."""
    text = f"Expected {t.sizes.said(relation)}, which {t.line} requires."
    symbols = sorted(relation.free_symbols, key=str)
    sources = [f"{symbol} is {t.sources[str(symbol)]}" for symbol in symbols if str(symbol) in t.sources]
    if not sources:
        return text, []
    values = ", ".join(f"{t.sizes.shown(symbol)} = {{{place}}}" for place, symbol in enumerate(symbols))
    return f"{text} Here {values}; {', and '.join(sources)}.", [
        t.size(t.sizes.size_of(s), torch.int64) for s in symbols
    ]


def state(t: Graph, condition: ir.Value, message: str, values: Sequence[ir.Value] = ()) -> None:
    """State that a boolean of rank 0, computed from sizes, is true. `{i}` in the message stands for value i."""
    i32 = ir.IntegerType.get_signless(32)
    attributes: dict[str, ir.Attribute] = {
        "api_version": ir.IntegerAttr.get(i32, 2),
        "call_target_name": ir.StringAttr.get("shape_assertion"),
        "error_message": ir.StringAttr.get(message),
        "has_side_effect": ir.BoolAttr.get(True),
    }
    ir.Operation.create("stablehlo.custom_call", [], [condition, *values], attributes)


def bind(t: Graph, value: ir.Value, size: Expr, may_be_negative: bool = False) -> None:
    """Read a symbol from an integer tensor of one element. Each call checks that it is not negative, unless it may."""
    t.bound.add(str(size.is_symbol))
    attributes: dict[str, ir.Attribute] = {"symbols": dims_attr((size,))}
    ir.Operation.create("disc.bind", [], [value], attributes)
    if not may_be_negative:
        number, least = t.size(size, torch.int64), t.size(Expr.const(0), torch.int64)
        name = str(size)
        source = f"; {name} is {t.sources[name]}" if name in t.sources else ""
        text = f"Expected {name} >= 0, which {t.line} requires. Here {name} = {{0}}{source}."
        state(t, t.compare("GE", number, least), text, [number])


def truth(t: Graph, relation: Any) -> ir.Value:
    """A relation of sizes as a boolean of rank 0. Raises UnsupportedError for one of other numbers."""
    if isinstance(relation, sympy.Not):
        return build.not_(truth(t, relation.args[0]))
    if isinstance(relation, sympy.And | sympy.Or):
        first, *others = (truth(t, part) for part in relation.args)
        for other in others:
            first = t.pointwise("and" if isinstance(relation, sympy.And) else "or", first, other)
        return first
    for kind, direction in _DIRECTIONS.items():
        if isinstance(relation, kind):
            try:
                return t.compare(direction, *(t.size(t.sizes.size_of(e), torch.int64) for e in relation.args))
            except NoSize as error:
                return _truth_of_reals(t, direction, relation, str(error))
    raise t.refuse(f"the relation {t.sizes.said(relation)} has no lowering")


def _truth_of_reals(t: Graph, direction: str, relation: Any, reason: str) -> ir.Value:
    """A relation of floats, which the program computes and reads as a symbol that is 1 where it holds, else 0."""
    if not all(map(is_exact, relation.args)):
        raise t.refuse(reason)
    try:
        holds = t.compare(direction, *(real(t, e) for e in relation.args))
    except NoSize as error:
        raise t.refuse(str(error)) from None
    symbol = Expr.symbol(f"holds{len(t.bound)}")
    bind(t, t.convert(holds, torch.int64), symbol, may_be_negative=True)
    return t.compare("EQ", t.size(symbol, torch.int64), t.size(Expr.const(1), torch.int64))
