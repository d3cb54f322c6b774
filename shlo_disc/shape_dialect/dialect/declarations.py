# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The declarations of a module's sizes: symbols, derived sizes and constraints, written and read back as facts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.dialect.ops import ConstraintOp, DimOp, SymbolOp
from shlo_disc.shape_dialect.dialect.records import Malformed, entries_of, from_entries, to_entries
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation

MOST_BOUNDED_DIMS = 32
"""Derived sizes whose bounds are looked for and written down; they are for readers, and stages ask the facts."""


@dataclass(frozen=True)
class Symbol:
    """The attributes of a `disc.symbol`: a size that the caller chooses, or that is read from data.

    min, max: inclusive bounds; without `min`, a size that the caller chooses is at least 0. divisor, residue: the size
    is congruent to the residue modulo the divisor. hints: likely values. data: the size is read from data. segment: the
    first segment in which such a size is known, see `shape_dialect/ops/segments.py`. limit: of a size that is read in a
    loop or branch, an expression of sizes known before, which it does not exceed.
    """

    min: int | None = None
    max: int | None = None
    divisor: int = 1
    residue: int = 0
    hints: tuple[int, ...] = ()
    data: bool = False
    segment: int = 0
    limit: Expr | None = None

    def check(self) -> None:
        """Raises Malformed where no size is like this."""
        if self.min is not None and self.max is not None and self.min > self.max:
            raise Malformed(f"min = {self.min} is more than max = {self.max}")
        if self.divisor < 1 or not 0 <= self.residue < self.divisor:
            raise Malformed(f"no size is {self.residue} modulo {self.divisor}")
        if self.segment < 0 or (self.segment and not self.data):
            raise Malformed("only a size that is read from data has a segment, which is counted from 0")
        if self.limit is not None and (not self.data or self.segment):
            raise Malformed("only a size that is read from data inside of a loop or branch has a limit, and no segment")


@dataclass(frozen=True)
class Bounds:
    """The attributes of a `disc.dim`."""

    min: int | None = None
    max: int | None = None


@dataclass(frozen=True)
class Wording:
    """The attributes of a `disc.constraint` besides the relation: the error of a call that breaks it.

    message: a template in which `{i}` stands for operand i; "" for our default text. origin: what requires the
    relation.
    """

    origin: str
    message: str = ""
    operands: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Constraint:
    """A relation every call must satisfy, with jax.export's message (a template over `operands`) or ours."""

    relation: Relation
    message: str
    operands: Dims
    origin: str


def symbol_of(op: ir.OpView) -> Symbol:
    """The symbol that a `disc.symbol` declares. Raises Malformed."""
    return from_entries(Symbol, entries_of(op, but="name"))


def name_of(op: ir.OpView) -> str:
    """The name of a `disc.symbol` or `disc.dim`."""
    return ir.StringAttr(op.attributes["name"]).value


def constraint_of(op: ir.OpView) -> Constraint:
    """The constraint that a `disc.constraint` states. Raises Malformed."""
    text = ir.StringAttr(op.attributes["relation"]).value
    try:
        relation = Relation.parse(text)
    except ProgramError as error:
        raise Malformed(f"{text!r} is no relation of sizes: {error}") from None
    wording = from_entries(Wording, entries_of(op, but="relation"))
    return Constraint(relation, wording.message, wording.operands, wording.origin)


def symbols_in(module: ir.Module) -> dict[str, Symbol]:
    """The symbols of a module, in their order. Raises Malformed."""
    return {name_of(op): symbol_of(op) for op in module.body.operations if op.operation.name == "disc.symbol"}


def constraints_in(module: ir.Module) -> list[Constraint]:
    """The constraints of a module, in their order. Raises Malformed."""
    return [constraint_of(op) for op in module.body.operations if op.operation.name == "disc.constraint"]


def facts_of(module: ir.Module) -> Facts:
    """All that a module says of its sizes. Raises Malformed, or ProgramError where it contradicts itself."""
    facts = Facts()
    for name, symbol in symbols_in(module).items():
        low = 0 if symbol.min is None and not symbol.data else symbol.min
        facts.declare(name, low, symbol.max, symbol.divisor, symbol.hints, symbol.data, symbol.residue)
    for name, symbol in symbols_in(module).items():
        if symbol.limit is not None:
            facts.limit(name, symbol.limit)
    for constraint in constraints_in(module):
        facts.add(constraint.relation)
    return facts


def declare_symbols(module: ir.Module, facts: Facts) -> None:
    """Write all symbols of `facts` at the beginning, in the place of those that are there."""
    for op in list(module.body.operations):
        if op.operation.name == "disc.symbol":
            op.operation.erase()
    with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown(module.context):
        for name in facts.symbols:
            _write(SymbolOp(ir.StringAttr.get(name)), _declared(facts, name))


def write_declarations(
    module: ir.Module, facts: Facts, names: Iterable[str], sizes: Iterable[Expr], constraints: Iterable[Constraint]
) -> None:
    """Write the symbols of these names, the derived ones among the sizes, and the constraints, at the beginning.

    They take the place of the symbols that are there.
    """
    for op in list(module.body.operations):
        if op.operation.name == "disc.symbol":
            op.operation.erase()
    wanted = set(names)
    derived = sorted({str(size) for size in sizes if size.constant is None and not size.is_symbol})
    with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown(module.context):
        for name in (name for name in facts.symbols if name in wanted):
            _write(SymbolOp(ir.StringAttr.get(name)), _declared(facts, name))
        for number, text in enumerate(derived):
            is_bounded = number < MOST_BOUNDED_DIMS
            _write(DimOp(ir.StringAttr.get(text)), Bounds(*facts.range(Expr.parse(text))) if is_bounded else Bounds())
        for constraint in constraints:
            wording = Wording(constraint.origin, constraint.message, tuple(constraint.operands))
            _write(ConstraintOp(ir.StringAttr.get(str(constraint.relation))), wording)


def _declared(facts: Facts, name: str) -> Symbol:
    known = facts.symbols[name]
    low, high = facts.range(Expr.symbol(name))
    is_data, limit = name in facts.data_symbols, facts.limits.limits.get(name)
    return Symbol(low, high, known.divisor, known.residue, known.hints, is_data, limit=limit)


def _write(op: ir.OpView, record: object) -> None:
    for name, attribute in to_entries(record).items():
        op.attributes[name] = attribute
