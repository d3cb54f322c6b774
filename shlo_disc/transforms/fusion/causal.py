# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The columns that a causal mask hides from a row kernel, proved from the kernel's ops.

Every value of the kernel gets two ranges: that of its elements in columns up to `row + offset`, which the mask lets
through, and that of the others. If the others never change a reduction and the result is exactly 0 there, nobody has to
compute them. The proof holds while the scores are finite and no larger than a magnitude, which is for the runtime to
look at: scores of 1e12 would show through a mask that adds -1e9. An offset may be an expression of sizes, such as how
many keys are in a cache: whether it is one that lets a column of every row through is seen at run time, too.

Where rows come in pieces (`online_softmax`), nothing is taken for granted of the scores: what is hidden has to have a
bound of its own, as by a select. How far the largest element of a row is above it is looked at when the pieces that the
mask lets through are done.
"""

from __future__ import annotations

import math

from shlo_disc.shape_dialect.dialect.names import SEEN
from shlo_disc.shape_dialect.dialect.problems import MOST_REACH, Causal
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.fusion.masked_values import EITHER, ONE, ZERO, MaskedValue, MaskWalk, Scores, affine_of

CAUSAL_BOUND: Pattern[_Proof] = Pattern("causal-bound", "columns that a causal mask hides are not computed")

HIDDEN_COLUMNS: Pattern[_Proof] = Pattern("hidden-columns", "pieces of rows that a causal mask hides are not computed")

MAGNITUDES = (100_000_000, 1_000_000, 1_000)
"""Bounds of the scores for which a proof is tried; scores are seldom above 100."""


def causal_columns(scores: Scores) -> Causal | None:
    """The columns that the row kernel hides of the scores."""
    for magnitude in MAGNITUDES:
        proof = CAUSAL_BOUND.match(lambda s: _Proof.of(s, magnitude), scores)  # noqa: B023
        if proof is not None and proof.offset is not None:
            return Causal(proof.offset, proof.reach, magnitude)
    return None


def hidden_columns(scores: Scores) -> Causal | None:
    """The columns that a mask hides of the rows of a softmax, whatever the scores are. Marks the mask's comparisons."""
    proof = HIDDEN_COLUMNS.match(lambda s: _Proof.of(s, None), scores)
    if proof is None or proof.offset is None or proof.x.hidden is None:
        return None
    for op, seen in proof.masks.items():
        op.attributes[SEEN] = ir.DenseI64ArrayAttr.get(seen)
    return Causal(proof.offset, proof.reach, 0, float(proof.x.hidden.high))


class _Proof(MaskWalk):
    """A walk over a kernel whose mask compares rows with columns: those up to `row + offset` are let through.

    reach: the largest number that a position of 32 bits is part of. masks: the comparisons, with the axes of rows and
    of columns that they compare, and what they are in columns that are let through.
    """

    def __init__(self, scores: Scores, magnitude: int | None):
        super().__init__(scores, magnitude)
        self.offset: Expr | None = None
        self.reach = Expr.const(0)
        self.masks: dict[ir.Operation, tuple[int, int, int]] = {}

    @staticmethod
    def of(scores: Scores, magnitude: int | None) -> _Proof | None:
        """The walk over a kernel that compares rows with columns; None for any other."""
        proof = _Proof(scores, magnitude)
        if proof.rank < 2:
            return None
        proof.follow()
        for op in proof.operations[:-1]:
            for result in op.results:
                proof._note_reach(result, str(element_type_of(result)))
        return proof if proof.offset is not None else None

    @property
    def x(self) -> MaskedValue:
        """The facts known of the elements that a softmax is of."""
        return MaskedValue() if self.subject.x is None else self.known[self.subject.x]

    def _note_reach(self, value: ir.Value, element: str) -> None:
        """Note the reach of positions of 32 bits."""
        affine = self.known[value].affine
        if affine is None or element != "i32":
            return
        factors, constant = affine
        far = sum((abs(f) * d for f, d in zip(factors, dims_of(value), strict=True)), Expr.const(0))
        size = constant.constant
        far += Expr.maximum(constant, -constant) if size is None else abs(size)
        self.reach = Expr.maximum(self.reach, far)

    def compare(self, op: ir.Operation, left: MaskedValue, right: MaskedValue) -> MaskedValue:
        """The mask, where it compares a column with a row; any other comparison may come out either way."""
        unknown = MaskedValue(EITHER, EITHER)
        direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
        difference = affine_of("subtract", [left, right])
        if difference is None or direction not in ("LE", "LT", "GE", "GT"):
            return unknown
        factors, constant = difference
        if direction in ("GE", "GT"):
            factors, constant = tuple(-f for f in factors), -constant
        most = -constant - int(direction in ("LT", "GT"))  # true where the factors' sum is at most this
        axes = [i for i, f in enumerate(factors) if f != 0]
        if len(axes) != 2 or sorted(factors[i] for i in axes) != [-1, 1]:
            return unknown
        lets_through = factors[axes[1]] == 1
        offset = most if lets_through else -most - 1
        if self.offset not in (None, offset):
            return unknown
        self.offset = offset
        seen, hidden = (ONE, ZERO) if lets_through else (ZERO, ONE)
        self.masks[op] = (axes[0], axes[1], int(lets_through))
        return MaskedValue(seen, hidden, (axes[0], axes[1]))


# ---- what has to hold ----------------------------------------------------------------------------------------------


@CAUSAL_BOUND.requires("rows of the kernel are rows of the scores, more than one to a matrix")
def _rows_are_of_one_matrix(proof: _Proof) -> bool:
    dims, scores = dims_of(proof.scores), proof.subject.dims
    same = len(scores) >= 2 and dims[-2:] == scores[-2:]
    return same and dims[-2].constant != 1 and proof.subject.is_matrix


@CAUSAL_BOUND.requires("the mask does not hide every column of a first row")
def _first_row_sees_a_column(proof: _Proof) -> bool:
    least = None if proof.offset is None else proof.offset.constant
    return proof.offset is not None and (least is None or least >= 0)


@CAUSAL_BOUND.requires("positions that are compared do not wrap around")
def _positions_have_32_bits(proof: _Proof) -> bool:
    return (proof.reach.constant or 0) <= MOST_REACH


@CAUSAL_BOUND.requires("no reduction is changed by what is hidden")
def _reductions_skip_hidden(proof: _Proof) -> bool:
    return not proof.changed


@CAUSAL_BOUND.requires("weights of hidden columns are exactly 0")
def _hidden_weights_are_zero(proof: _Proof) -> bool:
    return proof.result.hidden == ZERO and proof.is_in_place(proof.result)


# ---- where rows come in pieces --------------------------------------------------------------------------------------

HIDDEN_COLUMNS.requires("rows of the kernel are rows of the scores, more than one to a matrix")(_rows_are_of_one_matrix)
HIDDEN_COLUMNS.requires("positions that are compared do not wrap around")(_positions_have_32_bits)


@HIDDEN_COLUMNS.requires("what is hidden is bounded, whatever the scores are")
def _hidden_is_bounded(proof: _Proof) -> bool:
    hidden = proof.x.hidden
    return hidden is not None and hidden.high < math.inf and proof.is_in_place(proof.x)
