# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Advice on shapes that an operation does not take together, by the text of JAX's error."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Atom, Expr, Max, Min
from shlo_disc.shape_dialect.symbolic.facts_relation import Relation

from .comparisons import is_sensible, written

_CONCATENATED = re.compile(r"concatenating along dimension (\d+) for shapes (.*)")
_OF_SHAPES = re.compile(
    r"for broadcasting|to have the same shape|must have (?:the same|equal)|different leading axis sizes"
    r"|inconsistent size|Incompatible reduction dimensions|shapes that differ in dimensions|clamp requires"
)
"""Texts of JAX's errors about sizes that have to be equal."""
_SHAPE_START = re.compile(r"(?<![\w)\]])\(|\w\[")
_SIZES = re.compile(
    r"(?:axis sizes: |core dimension '\w+': |ax[ei]s (?:\(.*?\) )?had size )(.*?)(?:\.?$|\.\s| on |: axis|, e\.g\.)",
    re.MULTILINE,
)
"""Sizes in errors that name no whole shapes, or beside them the sizes that differ."""
_MOST_CUTS = 6
"""The number of bounds in two sizes up to which all their outcomes are tried."""

Pair = tuple[str, str]
"""Two sizes that have to be equal."""


class Cut(NamedTuple):
    """Sizes of which one is cut at the end of an array, and the relations under which they are equal."""

    one: str
    other: str
    relations: Sequence[Relation]


def cut_in(message: str) -> Cut | None:
    """The sizes in an error's text that are equal under a constraint, for a slice does not reach beyond an array.

    So it is with `x + table[:n]`, which has min(20, n) rows if the table has 20. None for other errors.
    """
    if _OF_SHAPES.search(message) is None or "min(" not in message and "max(" not in message:
        return None
    for one, other in dict.fromkeys(_pairs(message)):
        try:
            relations = _relations(Expr.parse(one), Expr.parse(other))
        except ProgramError:
            continue
        if relations:
            return Cut(one, other, relations)
    return None


def _pairs(message: str) -> Iterator[Pair]:
    """Pairs of unequal sizes in an error's text, those at the same place of two shapes first."""
    shapes = _all_sizes(message)
    for one, other in itertools.combinations(shapes, 2):
        yield from (pair for pair in zip(reversed(one), reversed(other), strict=False) if pair[0] != pair[1])
    sizes = dict.fromkeys(size for shape in shapes for size in shape)
    yield from itertools.combinations(sizes, 2)


def _all_sizes(message: str) -> list[tuple[str, ...]]:
    """The sizes of each shape in an error's text, or the sizes that have to be equal as shapes of one size."""
    if found := [size for each in _SIZES.finditer(message) for size in _parts(each[1].replace(" vs ", ", "))]:
        return [(size,) for size in found]
    return [tuple(_parts(inner)) for shape in _all_shapes(message) for inner in _inner(shape)]


def _inner(shape: str) -> Iterator[str]:
    """The shapes in a list of them, or the shape itself."""
    text = shape.strip()
    yield from _all_shapes(text) if text.startswith("(") else [shape]


def _all_shapes(text: str) -> Iterator[str]:
    """The texts of shapes, such as (n, 4), [(n, 4), (4,)] and float32[n,4]."""
    position = 0
    while found := _SHAPE_START.search(text, position):
        position = found.end()
        depth = 1
        for i in range(position, len(text)):
            depth += (text[i] in "([") - (text[i] in ")]")
            if depth == 0:
                yield text[position:i]
                break


def on_cut(cut: Cut) -> str:
    """The fault of sizes that are equal under a constraint, and what to write."""
    stated = ", ".join(f'"{written(relation)}"' for relation in cut.relations)
    holds = " and ".join(written(relation) for relation in cut.relations)
    stated += "," if len(cut.relations) == 1 else ""
    return (
        f"JAX cannot tell that {cut.one} and {cut.other} are equal for all sizes while it traces, for a slice is no "
        f"longer than the array that it is taken of. They are equal where {holds}: state constraints=({stated}) in "
        "shlo_disc.compile or shlo_disc.jit, and calls with other sizes are refused"
    )


def names_shapes(message: str) -> bool:
    """Tells whether an error is about shapes that do not go together."""
    return _OF_SHAPES.search(message) is not None


def on_mismatch(message: str) -> str:
    """Advice where two sizes may be meant to be equal, of which one has a name; "" elsewhere."""
    for pair in _unequal_pairs(message):
        names = sorted({size for size in pair if size.isidentifier()})
        numbers = sorted({size for size in pair if size.isdecimal()})
        if len(names) > 1:
            one, other = names
            return (
                f"where {one} and {other} are equal, give both one name in args= or dynamic=, or state "
                f'constraints=("{one} == {other}",)'
            )
        if names and numbers:
            return f"where {names[0]} is always {numbers[0]}, write that number in its place in args= or dynamic="
    return ""


def _unequal_pairs(message: str) -> Iterator[Pair]:
    """The sizes at the same place of two shapes that are not equal, and of which none is 1."""
    found = _CONCATENATED.search(message)
    shapes = [tuple(reversed(shape)) for shape in _all_sizes(found[2] if found else message)]
    skipped = len(shapes[0]) - 1 - int(found[1]) if found and shapes else None
    for one, other in itertools.combinations(shapes, 2):
        for axis, pair in enumerate(zip(one, other, strict=False)):
            if axis != skipped and pair[0] != pair[1] and "1" not in pair:
                yield pair


def _parts(shape: str) -> Iterator[str]:
    """The sizes of a shape; functions in them have commas, too."""
    part = ""
    for piece in shape.split(","):
        part += ("," if part else "") + piece
        if part.count("(") == part.count(")"):
            if part.strip():
                yield part.strip()
            part = ""


def _relations(one: Expr, other: Expr) -> Sequence[Relation]:
    """Relations between the operands of min and max under which two sizes are equal; () where none are known."""
    cuts = list(dict.fromkeys(cut for size in (one, other) for cut in _cuts(size)))
    if not cuts or len(cuts) > _MOST_CUTS:
        return ()
    for kept in itertools.product((0, 1), repeat=len(cuts)):
        if _outcome(one, chosen := dict(zip(cuts, kept, strict=True))) == _outcome(other, chosen):
            relations = [_relation(cut, choice, chosen) for cut, choice in chosen.items()]
            relations = list({written(r): r for r in relations if r.symbols()}.values())
            if all(is_sensible(relation) for relation in relations):
                return relations
    return ()


def _cuts(size: Expr) -> Iterator[Atom]:
    """Each min and max of two sizes."""
    for atom in size.atoms():
        for operand in atom.operands:
            yield from _cuts(operand)
        if isinstance(atom, Min | Max) and len(atom.operands) == 2:
            yield atom


def _outcome(size: Expr, chosen: Mapping[Atom, int]) -> Expr:
    """A size with the chosen operand of each min and max."""

    def replaced(atom: Atom) -> Expr:
        if atom in chosen:
            return _outcome(atom.operands[chosen[atom]], chosen)
        return atom.rebuild(tuple(_outcome(operand, chosen) for operand in atom.operands))

    return size.map_atoms(replaced)


def _relation(cut: Atom, choice: int, chosen: Mapping[Atom, int]) -> Relation:
    """The condition of a choice."""
    taken, left = (_outcome(cut.operands[i], chosen) for i in (choice, 1 - choice))
    return Relation.le(taken, left) if isinstance(cut, Min) else Relation.ge(taken, left)


__all__ = ["Cut", "cut_in", "names_shapes", "on_cut", "on_mismatch"]
