# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows that are all the prefixes of an axis, or all its suffixes: one pass over it, not a window an element."""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.fusion import Scan
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.dialect.window import Window
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.windows import window_of
from shlo_disc.transforms.decisions import Pattern


@dataclass(frozen=True)
class Cumulative:
    """Windows over an operand of sizes `dims` that reach along one `axis` only."""

    window: Window
    dims: Dims
    axis: int

    @property
    def padding(self) -> tuple[Expr, Expr]:
        """The number of elements before the axis and behind it."""
        return self.window.low[self.axis], self.window.high[self.axis]

    @property
    def is_forward(self) -> bool:
        """Tells whether the windows are prefixes; else they are suffixes."""
        return self.padding[1] == Expr.const(0)


CUMULATIVE: Pattern[Cumulative] = Pattern("cumulative", "windows that grow by an element are one pass over their axis")


@CUMULATIVE.requires("a window is as long as the axis")
def _spans_the_axis(found: Cumulative) -> bool:
    return found.window.size[found.axis] == found.dims[found.axis]


@CUMULATIVE.requires("windows follow each other by one element")
def _moves_by_one(found: Cumulative) -> bool:
    return found.window.stride[found.axis].constant == 1


@CUMULATIVE.requires("nothing stands between the elements, and none is left out")
def _is_dense(found: Cumulative) -> bool:
    return found.window.base_dilation[found.axis].constant == found.window.dilation[found.axis].constant == 1


@CUMULATIVE.requires("the padding is one less than the axis on one side, and nothing on the other")
def _is_padded_on_one_side(found: Cumulative) -> bool:
    rest, nothing = found.dims[found.axis] - 1, Expr.const(0)
    return found.padding in ((rest, nothing), (nothing, rest))


def cumulative(op: ir.OpView) -> Cumulative | None:
    """The pass over an axis that a `reduce_window` is; None where it is something else."""
    return CUMULATIVE.match(_along_one_axis, op)


def described(op: ir.OpView) -> Scan:
    """The description, for later stages, of a `reduce_window` that is a scan. Raises CompilerError of any other."""
    found = cumulative(op)
    if found is None:
        raise CompilerError("fuse: a fusion of kind scan has windows that are neither prefixes nor suffixes")
    return Scan(axis=found.axis, reverse=not found.is_forward)


def _along_one_axis(op: ir.OpView) -> Cumulative | None:
    window, dims = window_of(op), dims_of(op.operands[0])
    axes = [axis for axis in range(len(dims)) if not window.is_trivial(axis)]
    return Cumulative(window, dims, axes[0]) if len(axes) == 1 else None
