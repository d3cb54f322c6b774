# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that an iteration of a loop, or a branch, computes from what it has read from data.

A run of a segment has words of its own for them. Each `bind` in a loop or branch stores what it reads there, and calls
a function that computes the sizes which have become known, as a plan does for a segment. Nothing is checked then: the
plan of the segment has an upper bound of each such computation, and refuses sizes for which one does not fit 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.host_llvm.builder import LlvmDialect
from shlo_disc.lowering.host_llvm.plan import SizeWriter, Words
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.limits import Limits


class NestedSizes:
    """The words of one segment. `plan` are those of its plan; `binds` the symbols of each bind so far, in order."""

    def __init__(self, limits: Limits, plan: Words, segment: int):
        self.limits = limits
        self.plan = plan
        self.segment = segment
        self.words = Words([])
        self.binds: list[Sequence[str]] = []

    def has(self, size: Expr) -> bool:
        """Tells whether a size depends on what a loop or branch reads."""
        return not size.symbols().isdisjoint(self.limits.limits)

    def place(self, size: Expr) -> int:
        """The word that holds a size. The plan computes what no part of it exceeds."""
        self.plan.place(self.limits.magnitude(size))
        return self.words.place(size)

    def bind(self, names: Sequence[str]) -> str:
        """The function that computes the sizes that are known once `names` are."""
        self.binds.append(names)
        return self._name(len(self.binds) - 1)

    def _name(self, number: int) -> str:
        return f"disc_sizes_{self.segment}_{number}"

    def functions(self, dialect: LlvmDialect) -> list[ir.Operation]:
        """The functions of all binds, once all sizes that are needed have their words."""
        order = {name: number for number, names in enumerate(self.binds) for name in names}
        own: list[list[Expr]] = [[] for _ in self.binds]
        for size in list(self.words.private):
            known = [order[name] for name in size.symbols() if name in order]
            own[max(known)].append(size)
        return [self._function(dialect, number, sizes) for number, sizes in enumerate(own)]

    def _function(self, dialect: LlvmDialect, number: int, sizes: Sequence[Expr]) -> ir.Operation:
        """`void (const int64_t *plan, int64_t *words)`."""
        function = dialect.function(self._name(number), [dialect.pointer, dialect.pointer])
        plan, words = function.arguments
        writer = SizeWriter(function, words)
        read = [Expr.symbol(name) for name in self.binds[number]]
        for name in sorted({name for size in sizes for name in size.symbols()}):
            symbol = Expr.symbol(name)
            if self.has(symbol):
                writer.load(name, words, self.words.place(symbol))
            else:
                writer.load(name, plan, self.plan.place(symbol))
        for size in sizes:
            if size not in read:
                writer.store(self.words.place(size), writer.value(size))
        function.body.return_()
        return function.op


__all__ = ["NestedSizes"]
