# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, factorisations and transforms of matrices."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product, storage_type
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops import fft, ragged, sparse
from shlo_disc.shape_dialect.ops.definition import define
from shlo_disc.shape_dialect.ops.element_types import ALL, COMPLEX, FLOAT, NARROW_FLOAT
from shlo_disc.shape_dialect.ops.propagation import Propagation
from shlo_disc.shape_dialect.ops.size_relations import SizeRelations, one_shape, rank
from shlo_disc.shape_dialect.symbolic.expr import Expr

_FACTORED = FLOAT | NARROW_FLOAT | COMPLEX
_TESTS = "tests/run/test_ops_linalg.py"
_OLD = "tests/run/test_ops_old.py"


def _infer_dot_general(p: Propagation, op: ir.OpView) -> list[Dims]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs, rhs = dims_of(op.operands[0]), dims_of(op.operands[1])
    lhs_batch, rhs_batch = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    lhs_contracting, rhs_contracting = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    for i, j in [*zip(lhs_batch, rhs_batch, strict=True), *zip(lhs_contracting, rhs_contracting, strict=True)]:
        p.equal(lhs[i], rhs[j], op)
    lhs_free = [lhs[i] for i in range(len(lhs)) if i not in {*lhs_batch, *lhs_contracting}]
    rhs_free = [rhs[j] for j in range(len(rhs)) if j not in {*rhs_batch, *rhs_contracting}]
    return [(*(lhs[i] for i in lhs_batch), *lhs_free, *rhs_free)]


def _relate_dot_general(r: SizeRelations, op: ir.OpView) -> None:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    (lhs, rhs), result = op.operands, op.results[0]
    batch = (list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions))
    contracting = (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions))
    r.same_axes(lhs, batch[0], rhs, batch[1])
    r.same_axes(lhs, contracting[0], rhs, contracting[1])
    lhs_free = [i for i in range(rank(lhs)) if i not in (*batch[0], *contracting[0])]
    rhs_free = [i for i in range(rank(rhs)) if i not in (*batch[1], *contracting[1])]
    r.same_axes(lhs, [*batch[0], *lhs_free], result, range(len(batch[0]) + len(lhs_free)))
    r.same_axes(rhs, rhs_free, result, range(rank(result) - len(rhs_free), rank(result)))


def _flops_of_dot_general(op: ir.OpView) -> Expr:
    axes = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"]).lhs_contracting_dimensions
    left = dims_of(op.operands[0])
    return 2 * product(dims_of(op.results[0])) * product(left[a] for a in axes)


def _infer_dot(p: Propagation, op: ir.OpView) -> list[Dims]:
    lhs, rhs = (dims_of(v) for v in op.operands)
    p.equal(lhs[-1], rhs[0], op)
    return [lhs[:-1] + rhs[1:]]


def _infer_einsum(p: Propagation, op: ir.OpView) -> list[Dims]:
    """A letter is one size wherever it stands."""
    *terms, result = ir.StringAttr(op.attributes["einsum_config"]).value.replace("->", ",").split(",")
    sizes: dict[str, Expr] = {}
    for term, operand in zip(terms, op.operands, strict=True):
        for letter, size in zip(term, dims_of(operand), strict=True):
            p.equal(sizes.setdefault(letter, size), size, op)
    return [tuple(sizes[letter] for letter in result)]


def _infer_cholesky(p: Propagation, op: ir.OpView) -> list[Dims]:
    dims = dims_of(op.operands[0])
    p.equal(dims[-2], dims[-1], op)
    return [dims]


def _infer_triangular_solve(p: Propagation, op: ir.OpView) -> list[Dims]:
    a, b = (dims_of(v) for v in op.operands)
    p.equal(a[-2], a[-1], op)
    left = ir.BoolAttr(op.attributes["left_side"]).value
    p.equal(a[-1], b[-2 if left else -1], op)
    for i, j in zip(a[:-2], b[:-2], strict=True):
        p.equal(i, j, op)
    return [b]


def _relate_triangular_solve(r: SizeRelations, op: ir.OpView) -> None:
    a, b = op.operands
    last = rank(a) - 1
    side = last - 1 if ir.BoolAttr(op.attributes["left_side"]).value else last
    r.same_shape([b, op.results[0]])
    r.same_axes(a, [*range(last - 1), last - 1, last], b, [*range(last - 1), side, side])


def check_operand_kinds(op: ir.OpView) -> str | None:
    """The operands of a product are both floats, both integers or both complex."""
    lhs, rhs = (ir.RankedTensorType(v.type).element_type for v in list(op.operands)[:2])
    by_floats = any(storage_type(element) != element for element in (lhs, rhs))  # quantized
    is_one_kind = any(isinstance(lhs, k) and isinstance(rhs, k) for k in (ir.FloatType, ir.IntegerType, ir.ComplexType))
    return None if by_floats or is_one_kind else f"operands of different kinds ({lhs} and {rhs}) have no lowering"


def _check_einsum(op: ir.OpView) -> str | None:
    """One letter a dimension, each once in an operand."""
    config = ir.StringAttr(op.attributes["einsum_config"]).value
    terms = config.replace("->", ",").split(",")
    ranks = [ir.RankedTensorType(v.type).rank for v in [*op.operands, *op.results]]
    plain = all(t.isalpha() and len(set(t)) == len(t) or not t for t in terms)
    fits = [len(t) for t in terms] == ranks and set(terms[-1]) <= set("".join(terms[:-1]))
    return None if plain and fits else f"an einsum of {config!r} has no lowering"


OPS = (
    *define(
        "dot", "dot_general", ALL, check=check_operand_kinds, infer=_infer_dot_general, relate=_relate_dot_general,
        flops=_flops_of_dot_general, cost=200, tests="tests/run/test_ops_dot.py",
    ),
    *define("expand", "dot", ALL, infer=_infer_dot, tests=_OLD),
    *define("expand", "einsum unary_einsum", ALL, check=_check_einsum, infer=_infer_einsum, tests=_OLD),
    *define(
        "library", "cholesky", _FACTORED, gpu=_FACTORED, infer=_infer_cholesky, relate=one_shape, tests=_TESTS
    ),
    *define(
        "library", "triangular_solve", _FACTORED, gpu=_FACTORED, infer=_infer_triangular_solve,
        relate=_relate_triangular_solve, tests=_TESTS,
    ),
    *fft.OPS,
    *ragged.OPS,
    *sparse.OPS,
)  # fmt: skip

__all__ = ["OPS", "check_operand_kinds"]
