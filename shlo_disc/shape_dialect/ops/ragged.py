# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups of neighbouring rows, each with a matrix of its own: our custom call for `jax.lax.ragged_dot`.

`@shlo_disc.ragged_dot(lhs, rhs, group_sizes)`. By rows, lhs is (rows, terms), rhs (groups, terms, columns) and the
result (rows, columns); rows behind the last group are 0. Where `contracts` is 1, lhs is (rows, m) and rhs
(rows, columns), and the result (groups, m, columns) has the product of each group's rows. `lhs_flipped` and
`rhs_flipped`: the last two axes of the operand lie the other way round. A group whose size is negative has no rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.custom_calls import RAGGED_DOT
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import OpDef
from shlo_disc.shape_dialect.ops.element_types import FLOAT
from shlo_disc.shape_dialect.ops.lapack_sizes import parameters_of
from shlo_disc.shape_dialect.ops.propagation import Propagation
from shlo_disc.shape_dialect.ops.size_relations import SizeRelations, rank
from shlo_disc.shape_dialect.symbolic.expr import Expr

PARAMETERS = ("contracts", "lhs_flipped", "rhs_flipped")
SIZE_TYPES = ("i32", "i64", "ui32")


@dataclass(frozen=True)
class RaggedDot:
    """The axes of a product of groups: of lhs the rows and the other one, of rhs the last two, terms and columns."""

    contracts: bool
    rows: int
    other: int
    terms: int
    columns: int

    @property
    def lhs_terms(self) -> int:
        """The axis of lhs that is summed over."""
        return self.rows if self.contracts else self.other


def ragged_dot_of(op: ir.OpView) -> RaggedDot:
    """The product that a call is."""
    given = parameters_of(op)
    contracts, flips_lhs, flips_rhs = (bool(ir.IntegerAttr(given[name]).value) for name in PARAMETERS)
    last = rank(op.operands[1]) - 1
    rows, other = (1, 0) if flips_lhs else (0, 1)
    terms, columns = (last, last - 1) if flips_rhs else (last - 1, last)
    return RaggedDot(contracts, rows, other, terms, columns)


def _check(op: ir.OpView) -> str | None:
    """The reason that a call cannot be compiled; None where it can."""
    given = parameters_of(op)
    flags = [ir.IntegerAttr(given[name]).value for name in PARAMETERS if isinstance(given.get(name), ir.IntegerAttr)]
    if len(flags) != len(PARAMETERS) or not set(flags) <= {0, 1}:
        return f"a product of groups needs {', '.join(PARAMETERS)}, each 0 or 1"
    contracts = flags[0]
    types = [ir.RankedTensorType(v.type) for v in (*list(op.operands)[:3], *op.results)]
    if [t.rank for t in types] != ([2, 2, 1, 3] if contracts else [2, 3, 1, 2]):
        return "a product of groups has operands and results of another rank"
    lhs, rhs, sizes, result = (str(t.element_type) for t in types)
    if lhs != rhs or lhs not in FLOAT or result not in (lhs, "f64" if lhs == "f64" else "f32"):
        return "a product of groups multiplies floats of one type, and results in these or in f32"
    return None if sizes in SIZE_TYPES else f"the sizes of groups are {', '.join(SIZE_TYPES)}"


def _infer(p: Propagation, op: ir.OpView) -> list[Dims]:
    found = ragged_dot_of(op)
    lhs, rhs, groups = (dims_of(v) for v in list(op.operands)[:3])
    p.equal(lhs[found.lhs_terms], rhs[found.terms], op)
    if found.contracts:
        return [(groups[0], lhs[found.other], rhs[found.columns])]
    p.equal(groups[0], rhs[0], op)
    return [(lhs[found.rows], rhs[found.columns])]


def _relate(r: SizeRelations, op: ir.OpView) -> None:
    found = ragged_dot_of(op)
    lhs, rhs, groups = list(op.operands)[:3]
    result = op.results[0]
    r.same_axes(lhs, [found.lhs_terms], rhs, [found.terms])
    r.same_axes(rhs, [found.columns], result, [rank(result) - 1])
    r.same_axes(lhs, [found.other if found.contracts else found.rows], result, [rank(result) - 2])
    r.same_axes(groups, [0], result if found.contracts else rhs, [0])


def _flops(op: ir.OpView) -> Expr:
    """The arithmetic of groups that have all rows between them."""
    found = ragged_dot_of(op)
    return 2 * product(dims_of(op.operands[0])) * dims_of(op.operands[1])[found.columns]


_TYPES = FLOAT | frozenset(SIZE_TYPES)

OPS = (
    OpDef(
        f"@{RAGGED_DOT}", "library", _TYPES, frozenset(), check=_check, infer=_infer, relate=_relate, flops=_flops,
        cost=200, gpu_dtypes=_TYPES, tests="tests/run/test_ragged_dot.py",
    ),
)  # fmt: skip

__all__ = ["OPS", "PARAMETERS", "RaggedDot", "ragged_dot_of"]
