# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The columns that a mask lets a row see, where the mask is data: segment ids, lengths, windows, arrays of booleans.

A mask is a boolean of the row kernel that no score is part of and that a select chooses by, or that becomes a number.
The proof is that of a causal mask (`causal.py`), with the mask in place of the comparison of a row with a column:
elements that it hides change no reduction, and their weights are exactly 0, if the row sees an element and the scores
are no larger than a magnitude. Masks may be several: what one of them hides is hidden.

Where -inf stands for hidden elements of a softmax, scores may be anything, such as sums with a bias: either the largest
element of a row is finite, and the weights of hidden ones are exactly 0, or all weights of the row are NaN.

Which columns a row sees is computed once a call, for all attentions of a mask (`column_ranges.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, GENERATORS, RESHAPES
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.fusion.causal import MAGNITUDES
from shlo_disc.transforms.fusion.masked_values import EITHER, NONE, ONE, ZERO, MaskedValue, MaskWalk, Scores
from shlo_disc.transforms.fusion.online_softmax import Scores as RowScores
from shlo_disc.transforms.fusion.online_softmax import online_softmax

VISIBLE_COLUMNS: Pattern[Masks] = Pattern("visible-columns", "columns that no row of a tile sees are not computed")

VISIBLE_SOFTMAX: Pattern[Masks] = Pattern(
    "visible-softmax", "columns that no row of a tile sees are not computed, where -inf stands for them"
)

ANY_MAGNITUDE = 1 << 62
"""Larger than scores are: what is hidden shows through none."""

MOST_MASKS = 3
"""Masks of a row kernel for which a proof is tried."""

Place = tuple[int | None, ...]
"""The axis of the scores along which each axis of a value lies; None for an axis of size 1."""


@dataclass(frozen=True)
class Mask:
    """A boolean of a row kernel: elements where it is `hides` are hidden."""

    value: ir.Value
    hides: bool


@dataclass(frozen=True)
class Masks:
    """Masks of a row kernel, the places of its values among the scores, and a bound of the scores.

    walks: for each mask, what is known of the values of the kernel where that mask hides, and where none does.
    """

    scores: Scores
    masks: tuple[Mask, ...]
    places: dict[ir.Value, Place | None]
    magnitude: int
    walks: tuple[MaskWalk, ...]


def visible_columns(scores: Scores) -> Masks | None:
    """The masks of a row kernel that hide elements from it, all of them if that can be proved."""
    places, booleans = places_of(scores), list(_booleans(scores))
    if not 0 < len(booleans) <= MOST_MASKS:
        return None
    for count in range(len(booleans), 0, -1):
        for chosen in itertools.combinations(booleans, count):
            for sides in itertools.product((False, True), repeat=count):
                found = _proved(scores, tuple(map(Mask, chosen, sides)), places)
                if found is not None:
                    return found
    return None


def _proved(scores: Scores, masks: tuple[Mask, ...], places: dict[ir.Value, Place | None]) -> Masks | None:
    for magnitude in MAGNITUDES:
        walks = tuple(_Walk(scores, magnitude, masks, hiding) for hiding in masks)
        found = VISIBLE_COLUMNS.match(lambda m: Masks(scores, m, places, magnitude, walks), masks)  # noqa: B023
        if found is not None:
            return found
    walks = tuple(_Walk(scores, None, masks, hiding) for hiding in masks)
    return VISIBLE_SOFTMAX.match(lambda m: Masks(scores, m, places, ANY_MAGNITUDE, walks), masks)


class _Walk(MaskWalk):
    """A walk over a kernel whose seen elements are those that no mask hides, and the hidden ones those of one mask."""

    def __init__(self, scores: Scores, magnitude: int | None, masks: tuple[Mask, ...], hiding: Mask):
        super().__init__(scores, magnitude)
        self.masks: dict[ir.Value, MaskedValue] = {}
        for mask in masks:
            seen, hidden = (ONE, ZERO) if not mask.hides else (ZERO, ONE)
            self.masks[mask.value] = MaskedValue(seen, hidden if mask == hiding else EITHER)
        self.known.update({value: known for value, known in self.masks.items() if value in self.known})
        self.follow()

    def is_in_place(self, value: MaskedValue) -> bool:
        """Tells that hidden elements are those of hidden columns: each value has one place."""
        return True

    def value(self, op: ir.Operation, result: ir.Value) -> MaskedValue:
        """The facts known of an op's result; moving axes does not change them."""
        if result in self.masks:
            return self.masks[result]
        if op.name == "stablehlo.transpose" or op.name in RESHAPES or op.name in BROADCASTS:
            moved = self.known[op.operands[0]]
            found = super().value(op, result) if op.name in BROADCASTS else MaskedValue()
            return MaskedValue(moved.seen, moved.hidden, top=found.top, affine=found.affine)
        return super().value(op, result)


def _booleans(scores: Scores) -> Iterator[ir.Value]:
    """The booleans of a kernel that no score is part of, and that decide about numbers."""
    block = scores.function.entry_block
    of_scores = {block.arguments[scores.argument]}
    found: dict[ir.Value, None] = {}
    for op in block.operations:
        name = op.operation.name
        if not of_scores.isdisjoint(op.operands):
            of_scores.update(op.results)
        if name in ("stablehlo.select", "stablehlo.convert") and str(element_type_of(op.operands[0])) == "i1":
            if str(element_type_of(op.results[0])) != "i1":
                found[op.operands[0]] = None
    return (value for value in found if value not in of_scores and dims_of(value))


# ---- places ---------------------------------------------------------------------------------------------------------


def places_of(scores: Scores) -> dict[ir.Value, Place | None]:
    """The place of each value of a kernel among its scores; None where it has several, or it is not known how."""
    *operations, last = (op.operation for op in scores.function.entry_block.operations)
    rank = len(dims_of(last.operands[0]))
    places: dict[ir.Value, Place | None] = {v: tuple(range(len(dims_of(v)))) for v in last.operands}
    for op in reversed(operations):
        if op.results[0] not in places or op.name in GENERATORS:
            continue
        here = places[op.results[0]]
        read = None if here is None else read_by(op, here, rank)
        found: dict[ir.Value, Place | None] = dict.fromkeys(op.operands) if read is None else {}
        for value, place in [*found.items(), *(read or [])]:
            if places.setdefault(value, place) != place:
                places[value] = None
    return places


def read_by(op: ir.Operation, here: Place, rank: int) -> list[tuple[ir.Value, Place]] | None:
    """The places of an op's operands, () of scalars; None where it is not known how they are read."""
    value = op.operands[0] if len(op.operands) else None
    if value is None:
        return None
    dims = dims_of(value)
    if op.name in ELEMENTWISE:
        return [(v, here if dims_of(v) else ()) for v in op.operands]
    if op.name in BROADCASTS:
        targets = list(integers(op.attributes["broadcast_dimensions"]))
        sizes = dims_of(op.results[0])
        if any(d != sizes[t] and d.constant != 1 for d, t in zip(dims, targets, strict=True)):
            return None
        return [(value, tuple(here[t] if d == sizes[t] else None for d, t in zip(dims, targets, strict=True)))]
    if op.name == "stablehlo.reduce" and len(op.operands) == 2:
        is_row = list(integers(op.attributes["dimensions"])) == [rank - 1] and here == tuple(range(rank - 1))
        return [(value, tuple(range(rank)))] if is_row else None
    if op.name == "stablehlo.transpose":
        moved = dict(zip(integers(op.attributes["permutation"]), here, strict=True))
        return [(value, tuple(moved[axis] for axis in range(len(dims))))]
    if op.name in RESHAPES:
        wide = [place for d, place in zip(dims_of(op.results[0]), here, strict=True) if d.constant != 1]
        same = [d for d in dims_of(op.results[0]) if d.constant != 1] == [d for d in dims if d.constant != 1]
        remaining = iter(wide)
        return [(value, tuple(None if d.constant == 1 else next(remaining) for d in dims))] if same else None
    return None


# ---- what has to hold -----------------------------------------------------------------------------------------------


@VISIBLE_COLUMNS.requires("scores have axes of rows and columns")
def _scores_have_rows(m: Masks) -> bool:
    return m.walks[0].rank >= 2


@VISIBLE_COLUMNS.requires("no reduction is changed by what is hidden")
def _reductions_skip_hidden(m: Masks) -> bool:
    return not any(walk.changed for walk in m.walks)


@VISIBLE_COLUMNS.requires("weights of hidden elements are exactly 0")
def _hidden_weights_are_zero(m: Masks) -> bool:
    return all(walk.result.hidden == ZERO for walk in m.walks)


@VISIBLE_COLUMNS.requires("each value that masks or scores are part of is read in one place")
def _values_have_one_place(m: Masks) -> bool:
    return have_one_place(m.scores, m.places, {mask.value for mask in m.masks})


def have_one_place(scores: Scores, places: dict[ir.Value, Place | None], values: set[ir.Value]) -> bool:
    """Tells whether what is made of the scores, and of other values, is read for one element of the scores each."""
    block = scores.function.entry_block
    whole = block.arguments[scores.argument]
    dependent = {whole, *values}
    for op in block.operations:
        if not dependent.isdisjoint(op.operands):
            dependent.update(op.results)
    is_whole = places.get(whole) == tuple(range(len(dims_of(whole))))
    return is_whole and all(places.get(v, ()) is not None for v in dependent)


@VISIBLE_COLUMNS.requires(
    "masks are made of integers and booleans, so that they are the same wherever they are computed"
)
def _masks_are_of_integers(m: Masks) -> bool:
    pending, seen = [mask.value for mask in m.masks], set[ir.Value]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if not isinstance(element_type_of(value), ir.IntegerType):
            return False
        op = defining_op(value)
        pending += [] if op is None else list(op.operands)
    return True


# ---- where -inf stands for what is hidden ---------------------------------------------------------------------------


@VISIBLE_SOFTMAX.requires("the kernel is a softmax of elements that are -inf where they are hidden")
def _hidden_elements_are_infinite(m: Masks) -> bool:
    softmax = online_softmax(RowScores(m.scores.function, m.scores.argument))
    return softmax is not None and all(walk.known[softmax.x].hidden == NONE for walk in m.walks)


VISIBLE_SOFTMAX.requires("scores have axes of rows and columns")(_scores_have_rows)
VISIBLE_SOFTMAX.requires("each value that masks or scores are part of is read in one place")(_values_have_one_place)
VISIBLE_SOFTMAX.requires(
    "masks are made of integers and booleans, so that they are the same wherever they are computed"
)(_masks_are_of_integers)
