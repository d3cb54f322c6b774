# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Square tiles of the memory of a block, by which values are transposed: their form, and where elements lie in them.

A tile has rows of `pieces` pieces of `lanes` elements, a piece being one access of a thread, of 16 bytes in the widest
tensor. A thread turns squares of `lanes` x `lanes` elements in its registers, so a tile is written and read by pieces.

Banks: `lanes` rows, a group, are followed by one piece that is not used. Where pieces have 16 bytes, 8 threads access
shared memory at once. Those that write have one piece each of 8 neighbouring groups, which are an odd number of pieces
apart, and those that read have neighbouring pieces of a row: each of the 8 has four banks of its own. Pieces of 8 bytes
are accessed by 16 threads at once, for which the same holds. An XOR of piece and group would need no such piece, but
the distances between a thread's own accesses would be no constants. Where elements are moved one by one, rows are one
element longer than they are. Both forms have one size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shlo_disc.lowering.frame import Frame
from shlo_disc.lowering.transposes import last_axis
from shlo_disc.lowering_gpu.lanes import ACCESS_BYTES
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.code_size import total_code_size
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation

BYTES = 48 * 1024
"""Shared memory that a kernel may declare."""


@dataclass(frozen=True)
class TileForm:
    """The sizes of a tile. in_pieces: whether it may be accessed by pieces, or by single elements alone."""

    lanes: int
    pieces: int
    in_pieces: bool = True

    @property
    def side(self) -> int:
        """Rows and columns of a tile."""
        return self.lanes * self.pieces

    @property
    def length(self) -> int:
        """The elements of a tile in shared memory, those between its rows or groups of rows included."""
        return self.side * (self.side + 1)


_FORMS = (TileForm(8, 16), TileForm(4, 16), TileForm(2, 32), TileForm(2, 16))
"""Forms from the widest pieces on. There is always room for the tiles of the last one."""


def sides_of(transposes: Sequence[ir.OpView], domain: Dims) -> Dims:
    """The sizes of the axes that tiles lie along: that which what is transposed lies along in memory, and the last."""
    return domain[last_axis(transposes[0])], domain[-1]


def tile_form(frame: Frame, domain: Dims, transposes: Sequence[ir.OpView], longest: int, has_folds: bool) -> TileForm:
    """The form of the tiles of a loop: the widest pieces that sides may be of.

    longest: the instructions that may stand in a kernel for what a thread does at once. has_folds: its elements take so
    long that all threads are needed, and pieces do not pay.
    """
    widest = max(bytes_of(element_type_of(v)) for v in frame.tensors)
    kept = sum(bytes_of(element_type_of(op.results[0])) for op in transposes)
    possible = [form for form in _FORMS if form.lanes * widest <= ACCESS_BYTES and form.length * kept <= BYTES]
    turned = total_code_size(_makers([op.operands[0] for op in transposes]))
    written = total_code_size(frame.fusion.entry_block.operations)
    sides = sides_of(transposes, domain)
    for form in possible:
        is_short = max(form.lanes**2 * turned, form.lanes * written) <= longest
        if is_short and not has_folds and all(_may_be_multiple(frame.facts, side, form.lanes) for side in sides):
            return form
    return replace(possible[-1], in_pieces=False)


def _may_be_multiple(facts: Facts, size: Expr, number: int) -> bool:
    return facts.prove(Relation.eq(size % number, 0)) is not False


def _makers(values: Sequence[ir.Value]) -> list[ir.Operation]:
    """The ops of a fusion that values come from."""
    found: dict[ir.Operation, None] = {}
    pending = list(values)
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, ir.Block) and owner not in found:
            found[owner] = None
            pending += owner.operands
    return list(found)
