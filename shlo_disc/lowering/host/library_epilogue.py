# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Epilogues that a library of matrix products does itself: a bias a column, or rounding to the sides' element type.

cuBLASLt adds a vector, of the type of its result, to each row. Where that type is that of the sums, there is one number
that may come out. Nothing else is taken: NVIDIA does not say in which precision a narrower bias is added and how often
the sum is rounded, what its ReLU makes of NaN, which StableHLO's maximum keeps, nor which approximation its GELU is.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.dialect.fusion import Epilogue, fusion_of
from shlo_disc.shape_dialect.dialect.host import LibraryEpilogue
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import terminator_of

_ELEMENTS = ("f32", "f16", "bf16")
"""Element types of sides whose sums are f32."""


def library_epilogue(loop: func.FuncOp, problem: MatrixProduct, buffers: Sequence[int]) -> LibraryEpilogue | None:
    """The library epilogue that may replace a loop after a product by rows. `buffers`: its inputs, then its results."""
    what = fusion_of(loop)
    outputs = list(terminator_of(loop.entry_block).operands)
    if not isinstance(what, Epilogue) or len(outputs) != 1 or problem.element not in _ELEMENTS:
        return None
    arguments = list(loop.entry_block.arguments)
    sums, value = arguments[what.sums], outputs[0]
    if _element(sums) != "f32" or _element(value) not in ("f32", problem.element):
        return None
    rounded = _element(value) != "f32"
    if rounded:
        is_all = _operand(value, "stablehlo.convert") == sums
        return LibraryEpilogue(buffers[-1], rounded=True) if is_all else None
    bias = _bias(value, sums, problem)
    return None if bias is None else LibraryEpilogue(buffers[-1], buffers[arguments.index(bias)])


def _bias(value: ir.Value, sums: ir.Value, problem: MatrixProduct) -> ir.Value | None:
    """The argument that is added to the sums, an element a column."""
    op = defining_op(value)
    if op is None or op.name != "stablehlo.add" or sums not in list(op.operands):
        return None
    first, second = op.operands
    spread = second if first == sums else first
    broadcast = defining_op(spread)
    if broadcast is None or broadcast.name not in BROADCASTS:
        return None
    bias = broadcast.operands[0]
    last = len(dims_of(spread)) - 1
    is_row = dims_of(bias) == (problem.n.size,) and dims_of(spread)[-1] == problem.n.size
    along_rows = list(integers(broadcast.attributes["broadcast_dimensions"])) == [last]
    return bias if is_row and along_rows and isinstance(bias.owner, ir.Block) else None


def _operand(value: ir.Value, name: str) -> ir.Value | None:
    op = defining_op(value)
    return op.operands[0] if op is not None and op.name == name else None


def _element(value: ir.Value) -> str:
    return str(element_type_of(value))
