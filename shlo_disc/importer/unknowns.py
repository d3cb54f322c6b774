# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sizes of a static program that a caller may choose: those that ops neither fix nor compute."""

from __future__ import annotations

from collections.abc import Iterable

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.size_relations import Size, SizeRelations, extent, rank


class Unknowns(SizeRelations):
    """Classes of equal sizes. A caller chooses the arguments' sizes; all others must follow from these."""

    def __init__(self, block: ir.Block):
        self._arguments = [
            Size(v, axis) for v in block.arguments for axis in range(rank(v)) if extent(Size(v, axis)) > 1
        ]
        self._positions = {value: i for i, op in enumerate(block.operations) for value in op.results}
        self._parents: dict[Size, Size] = {}
        self._fixed: set[Size] = set()
        self._computed: list[tuple[Size, list[Size]]] = []
        self._determined: set[Size] = set()

    def root(self, size: Size) -> Size:
        """The representative of the class."""
        path = []
        while (parent := self._parents.get(size, size)) != size:
            path.append(size)
            size = parent
        for passed in path:
            self._parents[passed] = size
        return size

    def same(self, a: Size, b: Size) -> None:
        """The two are equal in every instance; two different numbers, one of them a broadcast 1, are not related."""
        if extent(a) != extent(b):
            self._fix(a)
            self._fix(b)
            return
        a, b = self.root(a), self.root(b)
        if a != b:
            self._parents[a] = b
            if a in self._fixed:
                self._fixed.add(b)

    def computed(self, result: Size, sources: Iterable[Size]) -> None:
        self._computed.append((result, [s for s in sources if extent(s) > 1]))

    def fix(self, value: ir.Value, axes: Iterable[int] | None = None) -> None:
        for axis in range(rank(value)) if axes is None else axes:
            self._fix(Size(value, axis))

    def _fix(self, size: Size) -> None:
        self._fixed.add(self.root(size))

    def is_fixed(self, size: Size) -> bool:
        """Tells whether the size is a number: fixed, or of a class that no argument and no computation determines."""
        return extent(size) <= 1 or self.root(size) in self._fixed or self.root(size) not in self._determined

    def propagate(self) -> None:
        """Fix what follows: a computed size of fixed sources, and the sources of a fixed one."""
        self._determined = {self.root(s) for s in [*self._arguments, *(result for result, _ in self._computed)]}
        before = -1
        while len(self._fixed) > before:
            before = len(self._fixed)
            for result, sources in self._computed:
                if self.is_fixed(result):
                    for source in sources:
                        self._fix(source)
                elif all(self.is_fixed(source) for source in sources):
                    self._fix(result)

    def fix_unavailable(self, stated: Iterable[tuple[int, Size]]) -> None:
        """Fix each size that no value has where it is stated: before the operation of the block at a position."""
        for position, size in stated:
            if not self.is_fixed(size) and self.source(position, size) is None:
                self._fix(size)
        self.propagate()

    def source(self, position: int, size: Size) -> Size | None:
        """The same size of an argument, or of a result before the block's operation at `position`."""
        root = self.root(size)
        results = (r for r, _ in self._computed if self._positions.get(r.value, position) < position)
        return next((s for s in [*self._arguments, *results] if self.root(s) == root), None)
