# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check the sizes that a module states against those that its ops imply: the rules of `annotate`, asked again.

A rewrite that gives a value other sizes than its op has, or an op operands that do not fit, is found here. Sizes are
equal where that is proved from what the module declares; what is not proved is compared at admissible values of the
symbols that the fact engine finds. Whether windows lie inside is not asked: they may stand in a loop that does not run.
"""

from __future__ import annotations

from collections.abc import Iterable

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.dialect.records import Malformed
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import VALUE_RULES, size_rule_of
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.ops.propagation import DataDependentSize, Propagation
from shlo_disc.shape_dialect.ops.values import SymbolicValues
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.utils.regions import terminator_of


def verify_sizes(module: ir.Module, facts: Facts) -> None:
    """Check all functions of an annotated module. Raises Malformed, naming the op, where sizes differ.

    An op whose sizes are elements of a tensor that is not known where it stands, such as an argument of a fusion, is
    left out.
    """
    walk = _Walk(facts)
    for op in module.body.operations:
        if isinstance(op, func.FuncOp):
            walk.check_block(op.entry_block)


class _Walk:
    """One module."""

    def __init__(self, facts: Facts):
        self.facts = facts
        known = facts.copy()
        self.propagation = Propagation(known, SymbolicValues(known, VALUE_RULES), reads_data=False)

    def check_block(self, block: ir.Block) -> None:
        """Check the ops of a block, and of those in it."""
        for op in block.operations:
            nested = nested_blocks(op)
            for inner in nested:
                self.check_block(inner)
            try:
                if nested:
                    self._check_control(op, nested)
                elif op.results:
                    self._check_op(op)
            except DataDependentSize:
                pass
            except (Malformed, ProgramError) as error:
                raise Malformed(f"{op.operation.name} at {op.location}: {error}") from None
            self.propagation.values.visit(op)

    def _check_op(self, op: ir.OpView) -> None:
        rule = size_rule_of(op)
        if rule is None:
            return
        implied = rule(self.propagation, op)
        for relation, _ in self.propagation.implied:
            if relation.operator == "==" and not self._is_equal(relation.lhs, relation.rhs):
                raise Malformed(f"it needs {relation}, which is not known")
        self.propagation.implied.clear()
        for result, dims in zip(op.results, implied, strict=True):
            self._check_equal(dims, dims_of(result), "its result")

    def _check_control(self, op: ir.OpView, blocks: Iterable[ir.Block]) -> None:
        """Check that the values that go into a loop or branch, around and out of it have the sizes of its results."""
        is_loop = op.operation.name == "stablehlo.while"
        for result, operand in zip(op.results, op.operands if is_loop else (), strict=False):
            self._check_equal(dims_of(operand), dims_of(result), "an initial value")
        for number, block in enumerate(blocks):
            for argument, result in zip(block.arguments, op.results, strict=False):
                self._check_equal(dims_of(argument), dims_of(result), "a block argument")
            if not is_loop or number:
                for value, result in zip(terminator_of(block).operands, op.results, strict=True):
                    self._check_equal(dims_of(value), dims_of(result), "what a block returns")

    def _check_equal(self, implied: Dims, stated: Dims, what: str) -> None:
        if len(implied) != len(stated):
            raise Malformed(f"{what} has rank {len(stated)}, and not {len(implied)}")
        for a, b in zip(implied, stated, strict=True):
            if a != b and not self._is_equal(a, b):
                raise Malformed(f"{what} has the size {b} where it is {a}")

    def _is_equal(self, a: Expr, b: Expr) -> bool:
        """Tells whether two sizes are proved to be equal by what the module declares, or are not seen to differ."""
        proved = self.facts.prove(Relation.eq(a, b))
        return not self.facts.are_seen_to_differ(a, b) if proved is None else proved
