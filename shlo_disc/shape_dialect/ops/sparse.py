# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with sparse matrices: the custom call of `jax.experimental.sparse.BCSR` on CPUs.

`@cpu_csr_sparse_dense_ffi(data, row_starts, columns, rhs)`: the stored elements of row r are those from row_starts[r]
up to row_starts[r + 1], what lies behind is padding; rhs is a vector or a matrix.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.custom_calls import CSR_PRODUCT
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import OpDef
from shlo_disc.shape_dialect.ops.element_types import COMPLEX
from shlo_disc.shape_dialect.ops.propagation import Propagation
from shlo_disc.shape_dialect.symbolic.expr import Expr

_INDICES = frozenset({"i32", "i64"})
_TYPES = frozenset({"f32", "f64"}) | COMPLEX | _INDICES


def _check(op: ir.OpView) -> str | None:
    """The reason that a call cannot be compiled; None where it can."""
    if len(op.operands) < 4 or len(op.results) != 1:
        return "a product with a sparse matrix has four operands and a result"
    types = [ir.RankedTensorType(v.type) for v in (*list(op.operands)[:4], op.results[0])]
    data, starts, columns, rhs, result = types
    if [t.rank for t in types[:3]] != [1, 1, 1] or rhs.rank not in (1, 2) or result.rank != rhs.rank:
        return "a product with a sparse matrix has operands of another rank"
    if len({str(t.element_type) for t in (data, rhs, result)}) != 1 or str(data.element_type) not in _TYPES:
        return "a product with a sparse matrix multiplies elements of one type"
    if starts.element_type != columns.element_type or str(starts.element_type) not in _INDICES:
        return "the rows and columns of a sparse matrix are i32, or i64"
    return None


def _infer(p: Propagation, op: ir.OpView) -> list[Dims]:
    data, starts, columns, rhs = (dims_of(v) for v in list(op.operands)[:4])
    p.equal(data[0], columns[0], op)
    return [(starts[0] - 1, *rhs[1:])]


def _flops(op: ir.OpView) -> Expr:
    return 2 * product((*dims_of(op.operands[0]), *dims_of(op.operands[3])[1:]))


OPS = (
    OpDef(
        f"@{CSR_PRODUCT}", "expand", _TYPES, frozenset(), check=_check, infer=_infer, flops=_flops, gpu_dtypes=_TYPES,
        tests="tests/run/test_sparse.py",
    ),
)  # fmt: skip

__all__ = ["OPS"]
