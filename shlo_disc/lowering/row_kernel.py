# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row kernels: chains of reductions along rows (softmax, layer norm) with everything around them, one row at a time.

A row is walked once per reduction depth: the first walk computes the reductions that need only inputs, the next those
that need the first ones, the last writes the outputs (FusionStitching's block composition). How a row is walked, and
what of it is combined in the end, is the target's: vectors and their lanes, or the threads of a block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from shlo_disc.lowering.elements import Elements, Positions, uniform
from shlo_disc.lowering.frame import Frame
from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.long_sums import LongSums
from shlo_disc.lowering.reduction import Combiner, start_values
from shlo_disc.lowering.rows import RowAnalysis
from shlo_disc.shape_dialect.mlir import ir

Values = list[ir.Value]
Body = Callable[[Positions, Values, ir.Value | None], Values]
"""From the columns, what is carried, and the mask of the lanes that there are: what is carried on."""

Output = tuple[ir.Value, ir.Value]
"""A result, and its buffer."""

Computed = tuple[ir.Value, Positions, ir.Value, ir.Value]
"""Element(s) of a result, where they stand, the result, and its buffer."""


class RowKernel(ABC):
    """Emits the work on one row after another."""

    def __init__(self, frame: Frame, analysis: RowAnalysis, elements: Elements):
        self.frame = frame
        self.analysis = analysis
        self.elements = elements
        self.depth = 0
        """Reduction depth of the current walk."""

    def row(self, linear: ir.Value) -> None:
        """One row."""
        with self.elements.scope():
            self.at(uniform(delinearize(linear, self.analysis.rows, self.frame.size_of)))

    def at(self, rows: Positions) -> None:
        """The row at a position, or a row a lane."""
        with self.elements.scope():
            self.rows = rows
            for depth in sorted(self.analysis.reduces):
                self.depth = depth
                self._reduce_walk(self.analysis.reduces[depth])
            self.depth = self.analysis.last
            self.write_walk()
        self.elements.bound.clear()
        self.elements.cached.clear()

    # ---- what a target does its way ---------------------------------------------------------------------------------

    @abstractmethod
    def walk(self, carried: Values, body: Body, fold: Callable[[Values], Values] | None, in_order: bool) -> Values:
        """Go over the columns. `fold` what is carried between blocks of a long row. in_order: a combination may depend
        on the order of its operands."""

    @abstractmethod
    def across(self, combiner: Combiner, found: Values) -> Values:
        """The combination of what the lanes, or threads, of a walk have found."""

    @abstractmethod
    def write_walk(self) -> None:
        """Write the outputs, by `compute` and `store`."""

    def of_parts(
        self, combiners: Sequence[Combiner], starts: Sequence[Values], totals: Sequence[Values]
    ) -> Sequence[Values]:
        """The values that all parts of a row make, from those of this part. A row is one part here."""
        return totals

    def long_sums(self, combiners: Sequence[Combiner]) -> LongSums:
        """The summation of many elements."""
        return LongSums(combiners, may_be_long=False)

    # ---- walks ------------------------------------------------------------------------------------------------------

    def _reduce_walk(self, reduces: Sequence[ir.OpView]) -> None:
        elements = self.elements
        combiners = [Combiner(op, elements.elementwise) for op in reduces]
        inits = [[elements.at(v, ()) for v in list(op.operands)[len(op.results) :]] for op in reduces]
        starts = [start_values(c, i, elements.width) for c, i in zip(combiners, inits, strict=True)]
        sums = self.long_sums(combiners)

        def body(columns: Positions, values: Values, mask: ir.Value | None) -> Values:
            result: Values = []
            for op, combiner, (own, long) in zip(reduces, combiners, sums.split(values), strict=True):
                inputs = list(op.operands)[: len(op.results)]
                read = [elements.splat(elements.at(v, self.place(v, columns))) for v in inputs]
                combined = combiner.combine(own, read)
                if mask is not None:
                    combined = [elements.select(mask, c, o) for c, o in zip(combined, own, strict=True)]
                result += [*combined, *long]
            return result

        fold, in_order = sums.fold if sums.any else None, not all(c.is_reorderable for c in combiners)
        carried = self.walk(sums.start([values for values, _ in starts]), body, fold, in_order)
        totals = [self.across(c, found) for c, found in zip(combiners, sums.finish(carried), strict=True)]
        whole = self.of_parts(combiners, [values for values, _ in starts], totals)
        for op, combiner, init, (_, pending), total in zip(reduces, combiners, inits, starts, whole, strict=True):
            if pending:
                total = combiner.combine(init, total)
            elements.bound.update(zip(op.results, combiner.rounded(total), strict=True))

    def outputs(self, is_full: bool) -> list[Output]:
        """The outputs that run along the row, or those of one value a row, with their buffers."""
        pairs = zip(self.frame.outputs, self.frame.output_buffers, strict=True)
        return [(value, buffer) for value, buffer in pairs if self.analysis.is_full(value) == is_full]

    def compute(self, outputs: Sequence[Output], columns: Positions) -> list[Computed]:
        """Outputs at some columns: all of them before any is written, as one may take over an input's buffer."""
        places = [self.place(value, columns) for value, _ in outputs]
        return [
            (self.elements.at(value, place), place, value, buffer)
            for (value, buffer), place in zip(outputs, places, strict=True)
        ]

    def store(self, computed: Sequence[Computed], streaming: bool = False) -> None:
        """Write outputs."""
        for value, place, output, buffer in computed:
            self.frame.store(buffer, value, place, output, self.elements, streaming)

    def place(self, value: ir.Value, columns: Positions) -> Positions:
        """The position of a value's element in this row at some columns."""
        return self.analysis.places(value, self.rows, columns)
