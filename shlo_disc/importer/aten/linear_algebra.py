# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factorisations, decompositions and solutions of linear equations, which LAPACK computes, of matrices of any size.

A matrix without a factorisation or an inverse has results of NaN or infinity: LAPACK's numbers for it are not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.lapack import LAPACK, MATRIX
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph
from .indexing import gather
from .loops import counted
from .ordering import ordered
from .reductions import summed
from .shapes import corner, join
from .table import translates

_ONE = Expr.const(1)
_LETTERS = {torch.float32: "s", torch.float64: "d"}


# ---- LAPACK ---------------------------------------------------------------------------------------------------------


def _lapack(t: Graph, name: str, operands: Sequence[ir.Value], results: Sequence[Dims], **letters: str) -> Any:
    """The results of a function of LAPACK, of some sizes: the custom call of it that jaxlib has."""
    kind = t.dtype_of(operands[0])
    if kind not in _LETTERS:
        instead = "" if kind.is_complex else "convert the matrix by .float()"
        raise t.refuse(f"it is computed for float32 and float64, and not for {kind}", instead)
    function = LAPACK[f"lapack_{_LETTERS[kind]}{name}_ffi"]
    rank = len(dims_of(operands[0]))
    i64 = ir.IntegerType.get_signless(64)
    numbers: dict[str, ir.Attribute] = {key: ir.IntegerAttr.get(i64, ord(n)) for key, n in letters.items()}
    attributes: dict[str, ir.Attribute] = {
        "call_target_name": ir.StringAttr.get(f"lapack_{_LETTERS[kind]}{name}_ffi"),
        "mhlo.backend_config": ir.DictAttr.get(numbers),
        "operand_layouts": _layouts([o.kind for o in function.operands], [o.rank(rank) for o in function.operands]),
        "result_layouts": _layouts([r.kind for r in function.results], [r.rank(rank) for r in function.results]),
    }
    types = [tensor_type(dims, ir.Type.parse(r.dtype)) for dims, r in zip(results, function.results, strict=True)]
    return ir.Operation.create("stablehlo.custom_call", types, list(operands), attributes).results


def _layouts(kinds: Sequence[str], ranks: Sequence[int]) -> ir.Attribute:
    """The layouts of Fortran: matrices column by column."""
    index = ir.IndexType.get()

    def order(kind: str, rank: int) -> list[int]:
        rest = [*range(rank - 1, -1, -1)]
        return [rank - 2, rank - 1, *rest[2:]] if kind == MATRIX else rest

    rows = [order(kind, rank) for kind, rank in zip(kinds, ranks, strict=True)]
    types = [ir.RankedTensorType.get([len(row)], index) for row in rows]
    return ir.ArrayAttr.get(
        [
            ir.DenseElementsAttr.get([ir.IntegerAttr.get(index, n) for n in row], type_)
            if row
            else ir.Attribute.parse("dense<> : tensor<0xindex>")
            for row, type_ in zip(rows, types, strict=True)
        ]
    )


# ---- triangles ------------------------------------------------------------------------------------------------------


def _solved(t: Graph, a: ir.Value, b: ir.Value, upper: bool, unit: bool = False, turned: bool = False,
            left: bool = True) -> ir.Value:  # fmt: skip
    """a^-1 b for a triangle of a matrix, or b a^-1; with `turned` for its transpose."""
    return t.op(
        "triangular_solve", [a, b], dims_of(b), element_type_of(b), left_side=ir.BoolAttr.get(left),
        lower=ir.BoolAttr.get(not upper), unit_diagonal=ir.BoolAttr.get(unit),
        transpose_a=ir.Attribute.parse(f"#stablehlo<transpose {'TRANSPOSE' if turned else 'NO_TRANSPOSE'}>"),
    )  # fmt: skip


def _triangle(t: Graph, x: ir.Value, upper: bool, diagonal: int = 0) -> ir.Value:
    """A matrix with zeros outside of a triangle."""
    dims, rank = dims_of(x), len(dims_of(x))
    row, column = (t.iota(dims, rank - n, torch.int64) for n in (2, 1))
    edge = build.add(row, t.constant(diagonal, torch.int64, dims))
    return t.select(t.compare("GE" if upper else "LE", column, edge), x, t.constant(0, t.dtype_of(x), dims))


def _identity(t: Graph, dims: Dims, kind: torch.dtype) -> ir.Value:
    row, column = (t.iota(dims, len(dims) - n, torch.int64) for n in (2, 1))
    return t.convert(t.compare("EQ", row, column), kind)


def _turned(t: Graph, x: ir.Value) -> ir.Value:
    rank = len(dims_of(x))
    return t.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _of_batch(t: Graph, x: ir.Value, batch: Dims, axes: int = 2) -> ir.Value:
    """Matrices broadcast to a batch."""
    return t.stretch(x, (*batch, *dims_of(x)[-axes:]))


@translates("linalg_solve_triangular")
def solve_triangular(t: Graph, a: ir.Value, b: ir.Value, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> ir.Value:  # fmt: skip
    """The solution of equations of a triangular matrix, from the left or right."""
    batch = t.dims[:-2]
    return _solved(t, _of_batch(t, a, batch), _of_batch(t, b, batch), upper, unitriangular, left=left)


@translates("triangular_solve")
def triangular_solve(t: Graph, b: ir.Value, a: ir.Value, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> tuple[ir.Value, ir.Value]:  # fmt: skip
    """The solution of equations of a triangular matrix, and the matrix."""
    batch = t.dims[:-2]
    own = _of_batch(t, a, batch)
    return _solved(t, own, _of_batch(t, b, batch), upper, unitriangular, transpose), own


# ---- Cholesky -------------------------------------------------------------------------------------------------------


@translates("linalg_cholesky_ex")
def cholesky_and_info(t: Graph, a: ir.Value, upper: bool = False, _: bool = False) -> tuple[ir.Value, ir.Value]:
    """The Cholesky factor, NaN where the matrix is not positive definite, and LAPACK's number of that."""
    dims = dims_of(a)
    factor, info = _lapack(t, "potrf", [a], [dims, dims[:-2]], uplo="U" if upper else "L")
    failed = t.broadcast(t.compare("NE", info, t.constant(0, torch.int32, dims[:-2])), dims, range(len(dims) - 2))
    nan = t.constant(float("nan"), t.dtype_of(a), dims)
    return t.select(failed, nan, _triangle(t, factor, upper)), info


@translates("cholesky")
def cholesky(t: Graph, a: ir.Value, upper: bool = False) -> ir.Value:
    """The Cholesky factor, NaN where the matrix is not positive definite."""
    return cholesky_and_info(t, a, upper)[0]


@translates("cholesky_solve")
def cholesky_solve(t: Graph, b: ir.Value, factor: ir.Value, upper: bool = False) -> ir.Value:
    """The solution of equations of a matrix, by its Cholesky factor."""
    batch = t.dims[:-2]
    a = _of_batch(t, factor, batch)
    first = _solved(t, a, _of_batch(t, b, batch), upper, turned=upper)
    return _solved(t, a, first, upper, turned=not upper)


@translates("cholesky_inverse")
def cholesky_inverse(t: Graph, factor: ir.Value, upper: bool = False) -> ir.Value:
    """The inverse of a matrix, by its Cholesky factor."""
    return cholesky_solve(t, _identity(t, dims_of(factor), t.dtype_of(factor)), factor, upper)


# ---- LU -------------------------------------------------------------------------------------------------------------


def _lu(t: Graph, a: ir.Value) -> Any:
    """L and U in one matrix, the row that each was swapped with, counted from 1 (i32), and LAPACK's number (i32)."""
    dims = dims_of(a)
    return _lapack(t, "getrf", [a], [dims, (*dims[:-2], Expr.minimum(*dims[-2:])), dims[:-2]])


def _order(t: Graph, pivots: ir.Value, rows: Expr) -> ir.Value:
    """The row that stands at each place after the swaps (i64)."""
    batch, count = dims_of(pivots)[:-1], dims_of(pivots)[-1]
    dims, one = (*batch, rows), (*batch, _ONE)
    place = t.iota(dims, len(batch), torch.int64)
    swaps = build.subtract(t.convert(pivots, torch.int64), t.constant(1, torch.int64, dims_of(pivots)))

    def swap(number: ir.Value, order: ir.Value) -> list[ir.Value]:
        first = t.broadcast(number, one, ())
        second = gather(t, swaps, -1, first)
        values = [
            t.broadcast(t.reshape(gather(t, order, -1, i), batch), dims, range(len(batch))) for i in (first, second)
        ]
        places = [t.broadcast(t.reshape(i, batch), dims, range(len(batch))) for i in (first, second)]
        found = t.select(t.compare("EQ", place, places[1]), values[0], order)
        return [t.select(t.compare("EQ", place, places[0]), values[1], found)]

    return counted(t, lambda: t.size(count, torch.int64), [place], swap)[0]


def _reordered(t: Graph, b: ir.Value, order: ir.Value) -> ir.Value:
    """The rows of matrices in an order."""
    dims = dims_of(b)
    return gather(t, b, len(dims) - 2, t.broadcast(order, dims, range(len(dims) - 1)))


def _lu_solved(t: Graph, lu: ir.Value, pivots: ir.Value, b: ir.Value, adjoint: bool) -> ir.Value:
    """The solution of equations of a matrix, or its transpose, that was factored into L and U."""
    order = _order(t, pivots, dims_of(lu)[-2])
    if not adjoint:
        return _solved(t, lu, _solved(t, lu, _reordered(t, b, order), upper=False, unit=True), upper=True)
    first = _solved(t, lu, b, upper=True, turned=True)
    found = _solved(t, lu, first, upper=False, unit=True, turned=True)
    return _reordered(t, found, ordered(t, order, len(dims_of(order)) - 1, False)[1])


@translates("linalg_lu_solve")
def lu_solve(
    t: Graph, lu: ir.Value, pivots: ir.Value, b: ir.Value, left: bool = True, adjoint: bool = False
) -> ir.Value:
    """The solution of equations of a matrix, or of its transpose, by its factors L and U."""
    batch = t.dims[:-2]
    own = _of_batch(t, lu, batch), _of_batch(t, pivots, batch, 1), _of_batch(t, b, batch)
    if left:
        return _lu_solved(t, *own, adjoint)
    return _turned(t, _lu_solved(t, own[0], own[1], _turned(t, own[2]), not adjoint))


@translates("linalg_lu_factor_ex")
def lu_factor(t: Graph, a: ir.Value, pivot: bool = True, _: bool = False) -> tuple[ir.Value, ...]:
    """L and U in one matrix, the row that each was swapped with, counted from 1, and LAPACK's number."""
    if not pivot:
        raise t.refuse("factors without swaps of rows have no translation", "leave pivot=False out")
    return tuple(_lu(t, a))


@translates("linalg_lu")
def lu(t: Graph, a: ir.Value, pivot: bool = True) -> tuple[ir.Value, ...]:
    """A matrix that reorders rows, and the factors L and U."""
    both, pivots, _ = lu_factor(t, a, pivot)
    return lu_unpacked(t, both, pivots)


@translates("lu_unpack")
def lu_unpacked(
    t: Graph, both: ir.Value, pivots: ir.Value, has_data: bool = True, has_pivots: bool = True
) -> tuple[ir.Value, ...]:
    """The matrix that reorders rows, L and U of the factors in one matrix."""
    found = [t.constant(0, t.dtype, out.dims) for out in t.outs]
    if has_pivots:
        order, rank = _order(t, pivots, dims_of(both)[-2]), len(t.dims)
        row = t.iota(t.dims, rank - 2, torch.int64)
        wanted = t.broadcast(order, t.dims, [*range(rank - 2), rank - 1])
        found[0] = t.convert(t.compare("EQ", row, wanted), t.dtype)
    if has_data:
        lower = _triangle(t, corner(t, both, t.outs[1].dims), False, -1)
        found[1] = build.add(lower, _identity(t, dims_of(lower), t.dtype))
        found[2] = _triangle(t, corner(t, both, t.outs[2].dims), True)
    return tuple(found)


def _is_turned(t: Graph) -> bool:
    """Tells whether PyTorch factors the transpose of the op's matrix, which its gradients take into account."""
    value = t.node.args[0].meta["val"]
    return bool(value.is_contiguous())


def _factored(t: Graph, a: ir.Value) -> Any:
    return _lu(t, _turned(t, a) if _is_turned(t) else a)


@translates("_linalg_solve_ex")
def solve(t: Graph, a: ir.Value, b: ir.Value, left: bool = True, _: bool = False) -> tuple[ir.Value, ...]:
    """The solution of linear equations, from the left or right, the factors of the matrix, and LAPACK's number."""
    batch = t.outs[1].dims[:-2]
    both, pivots, info = _factored(t, _of_batch(t, a, batch))
    is_vector = len(t.dims) == len(batch) + 1
    wide = t.reshape(t.stretch(b, t.dims), (*t.dims, _ONE)) if is_vector else _of_batch(t, b, batch)
    if left:
        found = _lu_solved(t, both, pivots, wide, _is_turned(t))
    else:
        found = _turned(t, _lu_solved(t, both, pivots, _turned(t, wide), not _is_turned(t)))
    return t.reshape(found, t.dims), both, pivots, info


@translates("linalg_inv_ex")
def inverse(t: Graph, a: ir.Value, _: bool = False) -> tuple[ir.Value, ir.Value]:
    """The inverse of a matrix, and LAPACK's number."""
    both, pivots, info = _lu(t, a)
    return _lu_solved(t, both, pivots, _identity(t, t.dims, t.dtype), False), info


def _diagonal(t: Graph, x: ir.Value) -> ir.Value:
    """The diagonal of square matrices."""
    dims, kind = dims_of(x), t.dtype_of(x)
    own = t.select(t.convert(_identity(t, dims, torch.uint8), torch.bool), x, t.constant(0, kind, dims))
    return summed(t, own, [len(dims) - 1])


def _parity(t: Graph, pivots: ir.Value, kind: torch.dtype) -> ir.Value:
    """1 for an even number of swaps of rows, else -1."""
    dims = dims_of(pivots)
    own = build.add(t.iota(dims, len(dims) - 1, torch.int64), t.constant(1, torch.int64, dims))
    swapped = t.convert(t.compare("NE", t.convert(pivots, torch.int64), own), torch.int64)
    count = summed(t, swapped, [len(dims) - 1])
    odd = t.convert(build.remainder(count, t.constant(2, torch.int64, dims[:-1])), kind)
    two, one = (t.constant(n, kind, dims[:-1]) for n in (2, 1))
    return build.subtract(one, build.multiply(two, odd))


def _multiplied(t: Graph, x: ir.Value) -> ir.Value:
    axis = len(dims_of(x)) - 1
    return t.reduce([x], [t.constant(1, t.dtype_of(x))], [axis], "multiply")[0]


@translates("_linalg_det")
def determinant(t: Graph, a: ir.Value) -> tuple[ir.Value, ...]:
    """The determinant, and the factors of the matrix."""
    both, pivots, _ = _factored(t, a)
    found = build.multiply(_multiplied(t, _diagonal(t, both)), _parity(t, pivots, t.dtype))
    return found, both, pivots


@translates("_linalg_slogdet")
def sign_and_logarithm(t: Graph, a: ir.Value) -> tuple[ir.Value, ...]:
    """The sign of the determinant, the logarithm of its magnitude, and the factors of the matrix."""
    both, pivots, _ = _factored(t, a)
    diagonal = _diagonal(t, both)
    sign = build.multiply(_multiplied(t, build.sign(diagonal)), _parity(t, pivots, t.dtype))
    logarithm = summed(t, build.log(build.abs(diagonal)), [len(dims_of(diagonal)) - 1])
    return sign, logarithm, both, pivots


# ---- QR, eigenvalues, singular values -------------------------------------------------------------------------------


@translates("linalg_qr")
def qr(t: Graph, a: ir.Value, mode: str = "reduced") -> tuple[ir.Value, ir.Value]:
    """Q and R."""
    dims = dims_of(a)
    rows, columns = dims[-2:]
    both, factors = _lapack(t, "geqrf", [a], [dims, (*dims[:-2], Expr.minimum(rows, columns))])
    upper = t.outs[1].dims
    if mode == "r":
        return t.constant(0, t.dtype, t.dims), _triangle(t, corner(t, both, upper), True)
    wide = both
    if mode == "complete":
        more = (*dims[:-1], rows)
        whole = (*dims[:-1], columns + rows)
        wide = join(t, [both, t.constant(0, t.dtype, more)], len(dims) - 1, whole)
    (q,) = _lapack(t, "orgqr", [corner(t, wide, t.dims), factors], [t.dims])
    return q, _triangle(t, corner(t, both, upper), True)


@translates("_linalg_eigh")
def eigh(t: Graph, a: ir.Value, uplo: str = "L", vectors: bool = True) -> tuple[ir.Value, ir.Value]:
    """The eigenvalues of a symmetric matrix in order, and its eigenvectors."""
    dims = dims_of(a)
    mode = "V" if vectors else "N"
    own, values, _ = _lapack(t, "syevd", [a], [dims, dims[:-1], dims[:-2]], mode=mode, uplo=uplo.upper())
    return values, own if vectors else t.constant(0, t.dtype, t.outs[1].dims)


@translates("linalg_eig", takes_complex=True)
def eig(t: Graph, a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The eigenvalues of a matrix and its right eigenvectors, which are complex numbers."""
    dims = dims_of(a)
    results = [dims[:-1], dims[:-1], dims, dims, dims[:-2]]
    real, imaginary, _, vectors, _ = _lapack(t, "geev", [a], results, compute_left="N", compute_right="V")
    return t.op("complex", [real, imaginary], t.dims, t.element(t.dtype)), vectors


@translates("_linalg_svd")
def svd(t: Graph, a: ir.Value, full: bool = False, vectors: bool = True, _: Any = None) -> tuple[ir.Value, ...]:
    """U, the singular values in order, and V transposed."""
    dims = dims_of(a)
    batch, (rows, columns) = dims[:-2], dims[-2:]
    least = Expr.minimum(rows, columns)
    mode = "N" if not vectors else "A" if full else "S"
    sides = [(rows, rows), (columns, columns)] if mode == "A" else [(rows, least), (least, columns)]
    results = [dims, (*batch, least), *((*batch, *side) for side in sides), batch]
    _, values, left, right, _ = _lapack(t, "gesdd", [a], results, mode=mode)
    if not vectors:
        left, right = (t.constant(0, t.dtype, t.outs[i].dims) for i in (0, 2))
    return left, values, right
