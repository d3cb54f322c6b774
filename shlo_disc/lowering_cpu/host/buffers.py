# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the buffers of a host program lie at run time.

`disc_run` has a table of buffers: the arguments, the results, the constants, packed forms of right-hand sides, the
table of symbols, and the segments' arenas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shlo_disc.dtypes import BY_MLIR
from shlo_disc.errors import CompilerError
from shlo_disc.lowering_cpu.gemm_format import FORMATS
from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.host import Packed, call_of
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Expr


@dataclass(frozen=True)
class Place:
    """An entry of the table, or a part of the arena of a segment, from an offset in bytes on."""

    index: int
    is_arena: bool = False
    offset: Expr = ZERO


class BufferTable:
    """The table of a program. `arguments` and `results` are counts, `constants` the names of the constants.

    packs: what the artifact's header says of each packed form.
    """

    def __init__(self, arguments: int, results: int, constants: list[str], ops: list[ir.Operation]):
        self.arenas = arguments + results
        self.constants = {name: self.arenas + number for number, name in enumerate(constants)}
        self.packs: list[dict[str, Any]] = []
        for op in ops:
            if op.name == "disc_host.packed" and self._pack(op) not in self.packs:
                self.packs.append(self._pack(op))
        self.first_pack = self.arenas + len(constants)

    @property
    def symbols(self) -> int:
        """The entry that is the table of symbols, before those of the arenas."""
        return self.first_pack + len(self.packs)

    def place(self, buffer: ir.Value) -> Place:
        """Where a buffer of one of the program's functions lies."""
        owner = buffer.owner
        if isinstance(owner, ir.Block):
            number = ir.BlockArgument(buffer).arg_number
            return Place(number) if number < self.arenas else Place(number - self.arenas, is_arena=True)
        if owner.name == "disc_host.constant":
            return Place(self.constants[call_of(owner).name])
        if owner.name == "disc_host.packed":
            return Place(self.first_pack + self.packs.index(self._pack(owner)))
        base = self.place(owner.operands[0])
        return Place(base.index, is_arena=True, offset=size_of(owner.operands[1])) if base.is_arena else base

    def _pack(self, op: ir.Operation) -> dict[str, Any]:
        form: Packed = call_of(op)
        return {
            "buffer": self.place(op.operands[0]).index,
            "dtype": BY_MLIR[form.element].name,
            "format": FORMATS.index(form.tile.format),
            "k": form.k,
            "n": form.n,
            "k_stride": form.k_stride,
            "n_stride": form.n_stride,
            "columns": form.tile.columns,
        }


def size_of(index: ir.Value) -> Expr:
    """The size that an index of a host program is."""
    owner = index.owner
    if isinstance(owner, ir.Block):
        raise CompilerError("host: a size is an argument")
    if owner.name == "disc_host.size":
        size: Expr = call_of(owner).value
        return size
    return Expr.const(ir.IntegerAttr(owner.attributes["value"]).value)
