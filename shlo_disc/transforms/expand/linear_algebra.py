# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cholesky` and `triangular_solve` become calls of LAPACK and BLAS."""

from __future__ import annotations

import math

from shlo_disc.shape_dialect.build import broadcast, compare, constant, convert, iota, select
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.lapack import ELEMENTS, LAPACK, LapackFunction
from shlo_disc.transforms.expand.lapack import call_lapack

_LETTERS = {dtype: letter for letter, dtype in ELEMENTS.items()}


def _function(name: str, element: ir.Type) -> LapackFunction:
    return LAPACK[f"lapack_{_LETTERS[str(element)]}{name}_ffi"]


def _computed(element: ir.Type) -> ir.Type:
    """The element type in which LAPACK computes: halves are widened."""
    return element if str(element) in _LETTERS else ir.F32Type.get()


def _cholesky(op: ir.OpView) -> bool:
    """The factor with zeros in its other triangle; all NaN where the matrix is not positive definite, as in XLA."""
    lower = "lower" in op.attributes and ir.BoolAttr(op.attributes["lower"]).value
    own = element_type_of(op.results[0])
    operand = convert(op.operands[0], _computed(own))
    dims, rank = dims_of(operand), len(dims_of(operand))
    integer = ir.IntegerType.get_signless(32)
    function = _function("potrf", element_type_of(operand))
    types = [operand.type, tensor_type(dims[:-2], integer)]
    factor, info = call_lapack(function, [operand], types, {"uplo": ord("L" if lower else "U")})
    rows, columns = iota(dims, integer, rank - 2), iota(dims, integer, rank - 1)
    element = element_type_of(factor)
    factor = select(compare("GE" if lower else "LE", rows, columns), factor, constant(0.0, element, dims))
    failed = broadcast(compare("NE", info, constant(0, integer, dims[:-2])), dims, range(rank - 2))
    result = select(failed, constant(math.nan, element, dims), factor)
    op.results[0].replace_all_uses_with(convert(result, own))
    return True


_TRANSPOSE = {"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}


def _triangular_solve(op: ir.OpView) -> bool:
    own = element_type_of(op.results[0])
    a, b = (convert(v, _computed(own)) for v in op.operands)
    flags = {name: ir.BoolAttr(op.attributes[name]).value for name in ("left_side", "lower", "unit_diagonal")}
    kind = str(op.attributes["transpose_a"]).split()[-1].rstrip(">")
    parameters = {
        "side": ord("L" if flags["left_side"] else "R"),
        "uplo": ord("L" if flags["lower"] else "U"),
        "trans_x": ord(_TRANSPOSE[kind]),
        "diag": ord("U" if flags["unit_diagonal"] else "N"),
    }
    (result,) = call_lapack(_function("trsm", element_type_of(a)), [a, b], [b.type], parameters)
    op.results[0].replace_all_uses_with(convert(result, own))
    return True


EXPANSIONS = [("stablehlo.cholesky", _cholesky), ("stablehlo.triangular_solve", _triangular_solve)]
