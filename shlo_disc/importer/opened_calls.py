# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The size of a program once its calls are opened: functions that call each other twice double it each time."""

from __future__ import annotations

from collections import Counter

from shlo_disc.errors import ProgramError, Unsupported, UnsupportedError
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.locations import source_line

MOST_OPERATIONS = 4_000_000
"""Some thousand times as many as a deep model has."""

_CALLED = {"func.call": "callee", "stablehlo.composite": "decomposition"}


def check_opened_calls(module: ir.Module, entry: str) -> None:
    """Raise ProgramError when the function `entry` and all that it calls are too many operations.

    Raises UnsupportedError when one of them calls itself, directly or through others.
    """
    total = _Sizes(module).of(entry)
    if total > MOST_OPERATIONS:
        raise ProgramError(
            f"the program has {total:.2g} operations once its calls are opened; {MOST_OPERATIONS} is the most"
        )


class _Sizes:
    """The sizes of functions, in operations."""

    def __init__(self, module: ir.Module):
        self._own: dict[str, int] = {}
        self._calls: dict[str, Counter[str]] = {}
        self._sizes: dict[str, int] = {}
        self._places: dict[tuple[str, str], str] = {}
        for function in module.body.operations:
            if function.operation.name == "func.func":
                self._count(function.operation)

    def of(self, name: str) -> int:
        """The size of a function with what it calls; one that is not there has none."""
        pending = [name]
        while pending:
            calls = self._calls.get(pending[-1], Counter[str]())
            called = next((c for c in calls if c not in self._sizes), None)
            if called is None:
                current = pending.pop()
                self._sizes[current] = self._own.get(current, 0) + sum(self._sizes[c] * n for c, n in calls.items())
            elif called in pending:
                raise UnsupportedError([_recursion(self._places[pending[-1], called])])
            else:
                pending.append(called)
        return self._sizes[name]

    def _count(self, function: ir.Operation) -> None:
        name = ir.StringAttr(function.attributes["sym_name"]).value
        calls: Counter[str] = Counter()
        own = 0

        def visit(op: ir.Operation) -> ir.WalkResult:
            nonlocal own
            own += 1
            if op.name in _CALLED and _CALLED[op.name] in op.attributes:
                called = ir.FlatSymbolRefAttr(op.attributes[_CALLED[op.name]]).value
                calls[called] += 1
                self._places.setdefault((name, called), source_line(op.location))
            return ir.WalkResult.ADVANCE

        function.walk(visit)
        self._own[name], self._calls[name] = own, calls


def _recursion(where: str) -> Unsupported:
    return Unsupported("func.call", "", where, "recursion has no lowering", "write a loop")
