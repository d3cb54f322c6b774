# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sizes of the results of LAPACK's functions, and the parameters of custom calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.lapack import LAPACK, MATRIX, VECTOR
from shlo_disc.shape_dialect.ops.propagation import Propagation
from shlo_disc.shape_dialect.symbolic.expr import Expr

SHAPE_OPERANDS = "indices_of_shape_operands"
"""The attribute of a custom call that tells which of its operands are the sizes of its results."""

Matrices = Sequence[Dims]
"""The last two sizes of every operand that is a matrix, the last one of every vector, () for numbers."""


def _least(sizes: Dims) -> Expr:
    return Expr.minimum(*sizes)


def _singular(mode: str, a: Dims) -> list[Dims]:
    rows, columns = a
    least = _least(a)
    if mode == "A":
        return [a, (least,), (rows, rows), (columns, columns), ()]
    return [a, (least,), (rows, least), (least, columns), ()]


_INNER: dict[str, Callable[[Matrices], list[Dims]]] = {
    "geqp3": lambda m: [m[0], m[1], (_least(m[0]),)],
    "geqrf": lambda m: [m[0], (_least(m[0]),)],
    "gehrd": lambda m: [m[0], (m[0][0] - 1,), ()],
    "getrf": lambda m: [m[0], (_least(m[0]),), ()],
    "gtsv": lambda m: [m[0], m[1], m[2], m[3], ()],
    "heevd": lambda m: [m[0], m[0][:1], ()],
    "hetrd": lambda m: [m[0], m[0][:1], (m[0][0] - 1,), (m[0][0] - 1,), ()],
    "orgqr": lambda m: [m[0]],
    "ormqr": lambda m: [m[2]],
    "potrf": lambda m: [m[0], ()],
    "trsm": lambda m: [m[1]],
}
_INNER |= {"syevd": _INNER["heevd"], "sytrd": _INNER["hetrd"], "ungqr": _INNER["orgqr"], "unmqr": _INNER["ormqr"]}

_SQUARE = {"gees", "geev", "gehrd", "heevd", "hetrd", "potrf", "syevd", "sytrd", "trsm"}
"""Functions whose first operand is square."""


def lapack_sizes(p: Propagation, op: ir.OpView) -> list[Dims]:
    """The sizes of a call of LAPACK: a program that states others is wrong, for the function writes these."""
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    function = LAPACK[target]
    rank = max(len(dims_of(v)) for v in op.operands)
    operands = [dims_of(v) for v in list(op.operands)[: len(function.operands)]]
    batch = operands[[t.kind for t in function.operands].index(MATRIX)][: rank - 2]
    for dims in operands:
        for a, b in zip(dims, batch, strict=False):
            p.equal(a, b, op)
    inner = [dims[rank - 2 :] for dims in operands]
    _require(p, op, function.name, inner)
    if function.name in ("gesdd", "gesvd"):
        results = _singular(letter_of(op, "mode"), inner[0])
        if letter_of(op, "mode") == "N":
            results[2:4] = _unwritten(p, op, results[2:4])
    elif function.name in ("gees", "geev"):
        order = inner[0]
        results = [{MATRIX: order, VECTOR: order[:1]}.get(t.kind, ()) for t in function.results]
    else:
        results = _INNER[function.name](inner)
    return [(*batch, *dims) for dims in results]


def _unwritten(p: Propagation, op: ir.OpView, otherwise: list[Dims]) -> list[Dims]:
    """The inner sizes of the singular vectors that nobody asked for: whatever the program states."""
    shapes = shape_operands(op)
    if shapes:
        return [p.sizes(op.operands[i])[-2:] for i in shapes[2:4]]
    results = list(op.results)[2:4]
    is_static = all(ir.RankedTensorType(r.type).has_static_shape for r in results)
    return [dims_of(r)[-2:] for r in results] if is_static else otherwise


def _require(p: Propagation, op: ir.OpView, name: str, inner: Matrices) -> None:
    """Require the relations that LAPACK expects of its operands' sizes."""
    if name in _SQUARE:
        p.equal(inner[0][0], inner[0][1], op)
    if name == "trsm":
        p.equal(inner[0][0], inner[1][0 if letter_of(op, "side") == "L" else 1], op)
    elif name == "geqp3":
        p.equal(inner[0][1], inner[1][0], op)
    elif name in ("orgqr", "ungqr"):
        rows, columns = inner[0]
        p.fits([columns, inner[1][0]], [rows, columns], op)
    elif name in ("ormqr", "unmqr"):
        (order, count), taus, c = inner[0], inner[1], inner[2]
        left = integer_of(op, "left")
        p.equal(order, c[0 if left else 1], op)
        p.equal(count, taus[0], op)
        p.fits([count], [order], op)
    elif name == "gtsv":
        for other in inner:
            p.equal(inner[1][0], other[0], op)


def parameters_of(op: ir.OpView) -> dict[str, ir.Attribute]:
    """The attributes that a custom call passes to its function."""
    for key in ("mhlo.backend_config", "backend_config"):
        if key in op.attributes and isinstance(op.attributes[key], ir.DictAttr):
            return entries(op.attributes[key])
    return {}


def entries(dictionary: ir.Attribute) -> dict[str, ir.Attribute]:
    """The entries of a dictionary attribute."""
    found = ir.DictAttr(dictionary)
    return {found[i].name: found[i].attr for i in range(len(found))}


def integer_of(op: ir.OpView, name: str) -> int:
    """An integer or boolean parameter of a custom call."""
    attribute = parameters_of(op)[name]
    return int(ir.BoolAttr(attribute).value if isinstance(attribute, ir.BoolAttr) else ir.IntegerAttr(attribute).value)


def letter_of(op: ir.OpView, name: str) -> str:
    """A parameter that is one of LAPACK's letters."""
    return chr(integer_of(op, name))


def shape_operands(op: ir.OpView) -> list[int]:
    """The numbers of a custom call's operands that hold the sizes of its results, one for each."""
    if SHAPE_OPERANDS not in op.attributes:
        return []
    found = ir.DenseIntElementsAttr(op.attributes[SHAPE_OPERANDS])
    return [found[i] for i in range(len(found))]
