# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that one walk of a row leaves for later ones in shared memory, as in FusionStitching and AStitch.

A thread goes over the same columns in every walk, so it reads what it wrote itself, and nobody waits. It has room for
`each` elements of every value that is kept; those of its columns for which there is no room are computed again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from shlo_disc.lowering.element_types import element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.kernels import op_cost
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.rows import RowAnalysis
from shlo_disc.lowering_gpu.grid import THREADS, thread
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import arith, func, ir, memref, vector

BYTES = 32 * 1024
"""The shared memory of a block for what is kept, at most."""

BLOCKS = 4
"""Blocks that have room for as much on every processor. For more of them ptxas would spill registers."""

MOST = 32
"""Elements of a value that a thread keeps, at most."""

FEWEST = 8
"""Elements of a value that a thread keeps, at least; values that would leave less room are not kept."""

_LOAD = 8
"""The cost of an element from global memory, in simple ops."""

_WORTH = 4
"""The cost from which on a value is rather kept than computed again."""

Walks = Mapping[ir.Value, set[int]]


@dataclass(frozen=True)
class Kept:
    """The buffer of each value that is kept, the walk that fills it, the buffers' types, a thread's elements of each.

    A buffer may be that of several values, one after the other.
    """

    buffers: Mapping[ir.Value, int]
    walks: Mapping[ir.Value, int]
    types: Sequence[ir.Type]

    @property
    def each(self) -> int:
        """The number of elements of each value that a thread keeps, a power of two."""
        bytes_ = sum(_bytes_in_memory(t) for t in self.types) or 1
        return min(MOST, 1 << (BYTES // (THREADS * bytes_)).bit_length() - 1)


def nothing_kept() -> Kept:
    """Each walk computes all that it needs."""
    return Kept({}, {}, [])


def worth_keeping(fusion: func.FuncOp, analysis: RowAnalysis) -> Kept:
    """Values along the row that several walks need, and that are expensive to read or compute again."""
    wanted = _expensive(fusion, analysis, _walks(fusion, analysis, ()))
    walks = {v: w for v, w in _walks(fusion, analysis, wanted).items() if v in wanted and len(w) > 1}
    buffers: dict[ir.Value, int] = {}
    types: list[ir.Type] = []
    until: list[int] = []
    for value in sorted(walks, key=lambda v: min(walks[v])):
        type_, first, last = element_of(value.type).memory(), min(walks[value]), max(walks[value])
        free = [i for i, t in enumerate(types) if t == type_ and until[i] <= first]
        if not free and sum(map(_bytes_in_memory, [*types, type_])) * FEWEST * THREADS > BYTES:
            continue
        if not free:
            free = [len(types)]
            types.append(type_)
            until.append(0)
        buffers[value], until[free[0]] = free[0], last
    return Kept(buffers, {v: min(walks[v]) for v in buffers}, types)


def _expensive(fusion: func.FuncOp, analysis: RowAnalysis, walks: Walks) -> list[ir.Value]:
    found: list[ir.Value] = []
    costs: dict[ir.Value, int] = {}

    def visit(value: ir.Value, cost: int) -> None:
        is_kept = len(walks[value]) > 1 and cost >= _WORTH and _runs_along(value, analysis)
        costs[value] = 1 if is_kept else cost
        if is_kept:
            found.append(value)

    for argument in fusion.entry_block.arguments:
        visit(argument, _LOAD if analysis.is_full(argument) else 1)
    for op in fusion.entry_block.operations:
        operands = sum(costs[v] for v in dict.fromkeys(op.operands))
        for result in op.results:
            visit(result, op_cost(op) + operands if analysis.is_full(result) else 0)
    return found


def _runs_along(value: ir.Value, analysis: RowAnalysis) -> bool:
    """Tells whether a value has one element for each row and column."""
    sizes = [d for d in (*analysis.rows, *analysis.columns) if d.constant != 1]
    return [d for d in dims_of(value) if d.constant != 1] == sizes


def _walks(fusion: func.FuncOp, analysis: RowAnalysis, kept: Collection[ir.Value]) -> Walks:
    """The walks in which each value along the row is needed, where those `kept` are computed in the first one alone."""
    needed: dict[ir.Value, set[int]] = defaultdict(set)
    for op in reversed(list(fusion.entry_block.operations)):
        name, operands = op.operation.name, list(op.operands)
        if name == "func.return":
            walks = {analysis.last}
        elif name == "stablehlo.reduce":
            walks, operands = {analysis.depth[op.results[0]] - 1}, operands[: len(op.results)]
        else:
            walks = {w for v in op.results for w in ([min(needed[v])] if v in kept and needed[v] else needed[v])}
        for operand in operands:
            if analysis.is_full(operand):
                needed[operand] |= walks
    return needed


def _bytes_in_memory(type_: ir.Type) -> int:
    return type_.width // 8  # type: ignore[attr-defined]


class Slots:
    """The shared memory of `Kept`: for each thread `each` elements of a value, and `more` behind those of all threads.

    A buffer holds the value that was last written to it. What is said in advance of the walks that need a value decides
    only how good a use of the buffers is.
    """

    def __init__(self, frame: GpuFrame, kept: Kept, each: int, more: int):
        self.kept, self.each, self.more = kept, each, more
        self.buffers = [frame.shared_memory(THREADS * (each + more), t) for t in kept.types]

    def begin_row(self) -> None:
        """Nothing is kept yet."""
        self._held: dict[int, ir.Value] = {}
        self._written: dict[int, ir.Value] = {}

    def stand(self, first: ir.Value, number: ir.Value, places: Sequence[Callable[[ir.Value], Positions]]) -> None:
        """Go to the `number`th of this thread's groups of columns, of which the first one of the block has its place
        at `first`. places: for each column where a value stands."""
        self.places, self.block = places, ir.InsertionPoint.current.block
        groups = arith.addi(arith.muli(number, index_constant(THREADS)), thread())
        self.at = arith.addi(first, arith.muli(groups, index_constant(len(places))))
        self._read: dict[ir.Value, list[ir.Value]] = {}

    def held(self) -> list[ir.Value]:
        """The values that an earlier walk has written."""
        return list(self._held.values())

    def read(self, value: ir.Value, positions: Positions) -> ir.Value | None:
        """The element of a value that is held, if the thread stands at these positions."""
        lane = next((i for i, place in enumerate(self.places) if _agree(value, positions, place(value))), None)
        if lane is None:
            return None
        if value not in self._read:
            if ir.InsertionPoint.current.block != self.block:
                return None
            self._read[value] = self._load(self.buffers[self.kept.buffers[value]])
        return from_memory(self._read[value][lane], element_of(value.type))

    def write(self, elements: Elements, walk: int) -> None:
        """Keep what this walk has computed at these columns, of the values that it is to keep."""
        for value, first in self.kept.walks.items():
            found = [elements.emitted(value, place(value)) for place in self.places] if first == walk else [None]
            known = [v for v in found if v is not None]
            if len(known) == len(found):
                number = self.kept.buffers[value]
                self._store([to_memory(v, element_of(value.type)) for v in known], self.buffers[number])
                self._written[number] = value

    def end_walk(self) -> None:
        """Make the written values readable."""
        self._held.update(self._written)
        self._written = {}

    def _load(self, buffer: ir.Value) -> list[ir.Value]:
        width, type_ = len(self.places), ir.MemRefType(buffer.type).element_type
        if width == 1:
            return [memref.load(buffer, [self.at])]
        run = vector.load(
            ir.VectorType.get([width], type_), buffer, [self.at], alignment=width * _bytes_in_memory(type_)
        )
        return [vector.extract(run, [], [lane]) for lane in range(width)]

    def _store(self, values: Sequence[ir.Value], buffer: ir.Value) -> None:
        if len(values) == 1:
            memref.store(values[0], buffer, [self.at])
            return
        type_ = ir.VectorType.get([len(values)], values[0].type)
        alignment = len(values) * _bytes_in_memory(values[0].type)
        vector.store(vector.from_elements(type_, values), buffer, [self.at], alignment=alignment)


def _agree(value: ir.Value, positions: Positions, others: Positions) -> bool:
    """Tells whether positions are the same along all axes but those of size 1."""
    return all(p == q for p, q, dim in zip(positions, others, dims_of(value), strict=True) if dim.constant != 1)
