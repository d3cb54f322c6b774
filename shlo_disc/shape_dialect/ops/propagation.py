# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The context of a shape rule: the facts, the symbolic values, and a place for the relations that an op implies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from shlo_disc.errors import ProgramError, Unsupported, UnsupportedError
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.data_sizes import data_elements
from shlo_disc.shape_dialect.ops.values import SymbolicValues
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.utils.locations import source_line


class DataDependentSize(Exception):
    """A size depends on the elements of a tensor that cannot be read while the program runs."""


@dataclass
class Propagation:
    """The state of one walk: the facts, the symbolic values, and the relations that ops imply, with their origin.

    `reads_data`: whether an element of a shape operand that is data may become a symbol. `skipped`: expressions of
    which one is at least 0 where the code that is walked through does not run. `is_nested`: whether that code is a
    block of a loop or branch, whose sizes from data have limits.
    """

    facts: Facts
    values: SymbolicValues
    implied: list[tuple[Relation, str]] = field(default_factory=list)
    reads_data: bool = True
    skipped: tuple[Expr, ...] = ()
    is_nested: bool = False

    def equal(self, a: Expr, b: Expr, op: ir.OpView) -> None:
        """Record that a valid program has a == b here. Raises ProgramError when that can never hold."""
        if a == b:
            return
        self.require(Relation.eq(a, b), op, f"the sizes {a} and {b} must be equal and never are")

    def require(self, relation: Relation, op: ir.OpView, otherwise: str = "") -> None:
        """Record that a valid program has this relation here. Raises ProgramError when it can never hold."""
        proved = self.facts.prove(relation)
        if proved is True:
            return
        where = f"{op.operation.name} at {source_line(op.location)}"
        if proved is False:
            raise ProgramError(f"{where}: {otherwise or f'{relation} must hold and never does'}")
        self.check_is_planned(relation, op)
        self.facts.add(relation)
        self.implied.append((relation, where))

    def check_is_planned(self, relation: Relation, op: ir.OpView) -> None:
        """Raises UnsupportedError when a relation is of sizes that are read inside of a loop or branch: no plan of a
        call refuses them."""
        if not self.is_nested or relation.symbols().isdisjoint(self.facts.limits.limits):
            return
        reason = f"it needs {relation}, which is not checked inside of the loop or branch that reads the size from data"
        advice = "put the code into a jax.lax.cond on jnp.asarray(size), or select by a mask"
        raise UnsupportedError([Unsupported(op.operation.name, "", source_line(op.location), reason, advice)])

    def fits(self, parts: Iterable[Expr], wholes: Iterable[Expr], op: ir.OpView) -> None:
        """Record that every window is no larger than what it lies in, wherever the op runs."""
        for part, whole in zip(parts, wholes, strict=True):
            fits = Relation.ge(whole, part)
            if self.skipped and self.facts.prove(fits) is not True:
                fits = Relation.ge(Expr.maximum(whole - part, *self.skipped), 0)
            self.require(fits, op)

    def sizes(self, value: ir.Value) -> Dims:
        """The elements of a shape operand; data among them get symbols. Raises DataDependentSize when they cannot."""
        elements = data_elements(value, self.values) if self.reads_data else self.values.get(value)
        if elements is None:
            raise DataDependentSize
        return elements


SizeRule = Callable[[Propagation, ir.OpView], list[Dims]]
"""The sizes of all results of an op."""


def same_shape_of(positions: Sequence[int]) -> SizeRule:
    """A rule: the operands at `positions`, or all, and every result have one shape."""

    def rule(p: Propagation, op: ir.OpView) -> list[Dims]:
        chosen = [dims_of(op.operands[i]) for i in (positions or range(len(op.operands)))]
        for other in chosen[1:]:
            for a, b in zip(chosen[0], other, strict=True):
                p.equal(a, b, op)
        dims = tuple(min(column, key=lambda e: e.constant is None) for column in zip(*chosen, strict=True))
        return [dims for _ in op.results]

    return rule


same_shape = same_shape_of(())
"""The rule of an op whose operands and results have one shape."""


def same_operands(_: Propagation, op: ir.OpView) -> list[Dims]:
    """The rule of an op whose results have the shapes of its operands."""
    return [dims_of(v) for v, _ in zip(op.operands, op.results, strict=False)]
