# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that sizes which are read from data inside of loops and branches are used only where they are known.

Such a size has a value from its `disc.bind` to the end of the block, and another one when the block runs again. So
each is read by one op, in a block of a loop or branch, and no op needs it anywhere else: no type, attribute or shape
outside of the block, nor a kernel that is called there. In what a call allocates, no such size may stand at all: it has
the limit of the size, which has to be at least the length of the mask whose true elements the size counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.buffers import ARENAS, BUFFERS, ArenaBuffer, arenas_of, buffers_of
from shlo_disc.shape_dialect.dialect.names import FLOPS
from shlo_disc.shape_dialect.dialect.records import read_size
from shlo_disc.shape_dialect.dialect.types import dims_of, dims_of_attr
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.utils.locations import source_line
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.shape_dialect.utils.windows import window_sizes

_BLOCKS = ("stablehlo.while", "stablehlo.if", "stablehlo.case")


def verify_nested_sizes(module: ir.Module, facts: Facts, entry: ir.Block) -> None:
    """Check a fused or planned module whose entry function has the block `entry`. Raises CompilerError."""
    if facts.limits.limits:
        walk = _Walk(module, facts)
        walk.check(entry, frozenset(), is_nested=False)
        walk.check_limits()


class _Walk:
    """One module. `read` are the symbols that a bind has read, anywhere."""

    def __init__(self, module: ir.Module, facts: Facts):
        self.facts = facts
        self.limited = frozenset(facts.limits.limits)
        self.functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        self.read: set[str] = set()
        attributes = module.operation.attributes
        outside = [read_size(attributes[FLOPS])] if FLOPS in attributes else []
        outside += arenas_of(module.operation) if ARENAS in attributes else ()
        if any(self._unknown(size, frozenset()) for size in outside):
            raise CompilerError("the bytes or the arithmetic of a call are of sizes that a loop or branch reads")

    def check(self, block: ir.Block, known: frozenset[str], is_nested: bool) -> None:
        for op in block.operations:
            for size in self._sizes(op):
                unknown = self._unknown(size, known)
                if unknown:
                    self._fail(op, f"it needs {sorted(unknown)[0]}, which is not known there")
            if any(self._unknown(size, frozenset()) for size in _planned(op)):
                self._fail(op, "its buffer depends on a size that a loop or branch reads")
            if op.operation.name in _BLOCKS:
                for region in op.regions:
                    self.check(region.blocks[0], known, is_nested=True)
            elif op.operation.name == "disc.bind":
                known |= self._bound(op, is_nested)

    def check_limits(self) -> None:
        for function in self.functions.values():
            for op in function.entry_block.operations:
                if op.operation.name == "disc.nonzero":
                    self._check_limit(op)

    def _check_limit(self, op: ir.OpView) -> None:
        (count,), (length,) = dims_of(op.results[0]), dims_of(op.operands[0])
        limit = self.facts.limits.limits.get(str(count))
        if limit is not None and self.facts.prove(Relation.ge(limit, length)) is not True:
            self._fail(op, f"the limit of {count} is {limit}, and the mask has {length} elements")

    def _bound(self, op: ir.OpView, is_nested: bool) -> set[str]:
        names = {name for size in dims_of_attr(op.attributes["symbols"]) for name in size.symbols()}
        if names & self.read:
            self._fail(op, f"{sorted(names & self.read)[0]} is read twice")
        if (names <= self.limited) != is_nested:
            where = "inside" if is_nested else "outside"
            self._fail(op, f"{', '.join(sorted(names))} is read {where} of a loop or branch")
        self.read |= names
        return names

    def _unknown(self, size: Expr, known: frozenset[str]) -> frozenset[str]:
        return (size.symbols() & self.limited) - known

    def _sizes(self, op: ir.OpView) -> Iterator[Expr]:
        """The sizes that an op needs by itself; a call of a fusion needs all of those in it."""
        for result in op.results:
            yield from dims_of(result)
        yield from window_sizes(op)
        if op.operation.name == "disc.shape":
            yield from dims_of_attr(op.attributes["dims"])
        elif op.operation.name == "func.call":
            for inner in self.functions[callee_of(op)].entry_block.operations:
                yield from self._sizes(inner)

    def _fail(self, op: ir.OpView, text: str) -> None:
        raise CompilerError(f"the sizes of {op.operation.name} at {source_line(op.location)} are wrong: {text}")


def _planned(op: ir.OpView) -> Iterator[Expr]:
    """The offsets and bytes of the buffers of an op, where they are assigned."""
    for buffer in buffers_of(op) if BUFFERS in op.attributes else ():
        if isinstance(buffer, ArenaBuffer):
            yield from (buffer.offset, buffer.bytes)


__all__ = ["verify_nested_sizes"]
