# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The locations of a host program's buffers at run time.

`disc_run` has a table of buffers: the arguments, the results, the constants, packed forms of right-hand sides, the
table of symbols, and the segments' arenas.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.host import Packed, call_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Expr


@dataclass(frozen=True)
class BufferSlice:
    """An entry of the table, or a part of the arena of a segment, from an offset in bytes on."""

    index: int
    is_arena: bool = False
    offset: Expr = ZERO


class BufferTable:
    """The table of a program. `arguments` and `results` are counts, `constants` the names of the constants."""

    def __init__(self, arguments: int, results: int, constants: list[str], ops: list[ir.Operation]):
        self.arenas = arguments + results
        self.constants = {name: self.arenas + number for number, name in enumerate(constants)}
        self.first_pack = self.arenas + len(constants)
        packed = dict.fromkeys(self._packed(op) for op in ops if op.name == "disc_host.packed")
        self._packs = {form: self.first_pack + number for number, form in enumerate(packed)}

    @property
    def packs(self) -> list[tuple[int, Packed]]:
        """The buffer that each packed form is of, and how it is packed."""
        return list(self._packs)

    @property
    def symbols(self) -> int:
        """The entry that is the table of symbols, before those of the arenas."""
        return self.first_pack + len(self._packs)

    def place(self, buffer: ir.Value) -> BufferSlice:
        """The location of a buffer of one of the program's functions; of a part, that of the buffer that it is of."""
        owner = buffer.owner
        if isinstance(owner, ir.Block):
            number = ir.BlockArgument(buffer).arg_number
            return BufferSlice(number) if number < self.arenas else BufferSlice(number - self.arenas, is_arena=True)
        if owner.name == "disc_host.constant":
            return BufferSlice(self.constants[call_of(owner).name])
        if owner.name == "disc_host.packed":
            return BufferSlice(self._packs[self._packed(owner)])
        base = self.place(owner.operands[0])
        if owner.name == "disc_host.part":
            return base
        return BufferSlice(base.index, is_arena=True, offset=size_of(owner.operands[1])) if base.is_arena else base

    def _packed(self, op: ir.Operation) -> tuple[int, Packed]:
        """The buffer that is packed, and how."""
        return self.place(op.operands[0]).index, call_of(op)


def size_of(index: ir.Value) -> Expr:
    """The size that an index of a host program is."""
    owner = index.owner
    if isinstance(owner, ir.Block):
        raise CompilerError("host: a size is an argument")
    if owner.name == "disc_host.size":
        size: Expr = call_of(owner).value
        return size
    return Expr.const(ir.IntegerAttr(owner.attributes["value"]).value)
