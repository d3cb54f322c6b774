# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""jaxlib's custom calls of LAPACK become calls of the native runtime.

LAPACK reads matrices column by column. For most functions the matrices are transposed around the call; the runtime's
`potrf`, `trsm`, `gesdd` and `gesvd` take row-major matrices as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.shape_dialect.build import transpose
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.lapack import LAPACK, MATRIX, LapackFunction, LapackTensor
from shlo_disc.shape_dialect.ops.lapack_sizes import parameters_of
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.expand.library_call import library_call, workspace_of

ROW_MAJOR = frozenset({"gesdd", "gesvd", "potrf", "trsm"})
BYTES = {"s": 4, "d": 8, "c": 8, "z": 16}


def _custom_call(op: ir.OpView) -> bool:
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    function = LAPACK.get(target)
    if function is None:
        return False
    operands = list(op.operands)[: len(function.operands)]
    values = call_lapack(function, operands, [r.type for r in op.results], _parameters(op))
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    return True


def _parameters(op: ir.OpView) -> dict[str, int]:
    return {
        name: int(ir.BoolAttr(a).value if isinstance(a, ir.BoolAttr) else ir.IntegerAttr(a).value)
        for name, a in parameters_of(op).items()
        if isinstance(a, ir.BoolAttr | ir.IntegerAttr)
    }


def call_lapack(
    function: LapackFunction, operands: Sequence[ir.Value], results: Sequence[ir.Type], parameters: dict[str, int]
) -> list[ir.Value]:
    """Call a function of LAPACK on row-major values at the insertion point; its results are row-major."""
    rank = max(len(dims_of(v)) for v in operands)
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    turns = function.name not in ROW_MAJOR

    def is_turned(tensor: LapackTensor) -> bool:
        return turns and tensor.kind == MATRIX

    matrix = next(v for v, t in zip(operands, function.operands, strict=True) if t.kind == MATRIX)
    batch = product(dims_of(matrix)[: rank - 2])
    inner = [dims_of(v)[rank - 2 :] for v in operands]
    workspace = workspace_of(_entry_bytes(function, inner), batch)
    passed = [transpose(v, swapped) if is_turned(t) else v for v, t in zip(operands, function.operands, strict=True)]
    types = [_turned(r) if is_turned(t) else r for r, t in zip(results, function.results, strict=True)]
    values = library_call(f"lapack_{function.letter}{function.name}", passed, types, parameters, workspace)
    return [transpose(v, swapped) if is_turned(t) else v for v, t in zip(values, function.results, strict=True)]


def _turned(type_: ir.Type) -> ir.Type:
    dims = dims_of(type_)
    return tensor_type([*dims[:-2], dims[-1], dims[-2]], element_type_of(type_))


# ---- workspaces -----------------------------------------------------------------------------------------------------

BLOCK = 32
"""LAPACK's largest block size; with less than this many rows of workspace it would fall back to smaller blocks."""

Inner = Sequence[Dims]


def _singular(a: Dims, is_complex: bool) -> tuple[Expr, Expr, Expr]:
    least, most = Expr.minimum(*a), Expr.maximum(*a)
    blocks = BLOCK * (least + most)
    if is_complex:
        reals = 7 * least * least + 5 * least + 2 * most * least
        return least * least + 3 * least + most + blocks, reals, 8 * least
    return 4 * least * least + 7 * least + most + blocks, Expr.const(0), 8 * least


def _singular_by_qr(a: Dims, is_complex: bool) -> tuple[Expr, Expr, Expr]:
    least, most = Expr.minimum(*a), Expr.maximum(*a)
    return 5 * least + most + BLOCK * (least + most), 5 * least * int(is_complex), Expr.const(0)


def _hermitian(n: Expr, is_complex: bool) -> tuple[Expr, Expr, Expr]:
    reals = 1 + 5 * n + 2 * n * n
    elements = n * n + 2 * n if is_complex else reals + n
    return elements + BLOCK * n + 1, reals * int(is_complex), 3 + 5 * n


def _general(n: Expr, is_complex: bool) -> tuple[Expr, Expr, Expr]:
    """Room for the iterations of small bulges (11n at most) and for blocks; copies of the matrix and its vectors."""
    copies = n * n if is_complex else 3 * n * n
    return copies + (4 + BLOCK) * n, 2 * n * int(is_complex), Expr.const(0)


def _blocks(n: Expr, rest: int = 0) -> tuple[Expr, Expr, Expr]:
    return BLOCK * n + rest, Expr.const(0), Expr.const(0)


_NONE = Expr.const(0)
_TRIANGULAR_FACTOR = 65 * 64
"""Elements that reflectors take as triangular factors when they are applied block by block."""

_NEEDS: dict[str, Callable[[Inner, bool], tuple[Expr, Expr, Expr]]] = {
    "geev": lambda i, c: _general(i[0][0], c),
    "gees": lambda i, c: _general(i[0][0], c),
    "gehrd": lambda i, c: _blocks(i[0][0], _TRIANGULAR_FACTOR),
    "geqp3": lambda i, c: (2 * i[0][1] + (i[0][1] + 1) * BLOCK, 2 * i[0][1] * int(c), _NONE),
    "geqrf": lambda i, c: _blocks(i[0][1]),
    "gesdd": lambda i, c: _singular(i[0], c),
    "gesvd": lambda i, c: _singular_by_qr(i[0], c),
    "heevd": lambda i, c: _hermitian(i[0][0], c),
    "hetrd": lambda i, c: _blocks(i[0][0]),
    "orgqr": lambda i, c: _blocks(i[0][1]),
    "ormqr": lambda i, c: (2 * BLOCK * Expr.maximum(*i[2]) + _TRIANGULAR_FACTOR, _NONE, _NONE),
}
_NEEDS |= {"syevd": _NEEDS["heevd"], "sytrd": _NEEDS["hetrd"], "ungqr": _NEEDS["orgqr"], "unmqr": _NEEDS["ormqr"]}
"""Elements, reals and 32-bit integers of workspace for one entry, by the sizes of the operands' inner dimensions."""


def _entry_bytes(function: LapackFunction, inner: Inner) -> Expr:
    if function.name not in _NEEDS:
        return Expr.const(0)
    elements, reals, integers = _NEEDS[function.name](inner, function.is_complex)
    size = BYTES[function.letter]
    padding = 128  # each part starts at a multiple of 16 bytes, and LAPACK wants at least one element
    return elements * size + reals * (size // 2) + integers * 4 + padding


EXPANSIONS = [("stablehlo.custom_call", _custom_call)]
