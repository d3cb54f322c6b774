# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bounds of slices, where an op tells more of them than the values that they have in the samples.

A few samples that are near to each other say little of what is divided: of 9, 10 and 11 a quarter is 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.size_relations import reshape_groups
from shlo_disc.shape_dialect.symbolic.expr import Expr, Symbol

from .paddings import OpNumbers

_PARTS = (2, 3, 4)
_LEAST_PART = 4
"""Smaller numbers are too often a part of a size by chance."""


def choose_bounds(numbers: OpNumbers) -> None:
    """Choose expressions of the bounds of a slice that are fixed in all samples, along axes where something hints."""
    names = ("limit_indices", "start_indices", "strides")
    rows = zip(numbers.operand_numbers(0), *map(numbers.attribute_numbers, names), strict=True)
    for size, limit, start, step in rows:
        whole = numbers.known(size)
        _choose_part(numbers, whole, limit)
        _choose_part(numbers, whole, start)
        _choose_end(numbers, size, limit, step)
        _choose_start(numbers, size, limit, start)


def choose_prefixes(numbers: OpNumbers, used: Sequence[int]) -> None:
    """Choose expressions of sizes with which an operand is used, that are the same in all samples."""
    for number in used:
        _choose_part(numbers, numbers.origin(number), number)


def _choose_part(numbers: OpNumbers, whole: Expr | None, bound: int) -> None:
    """A bound that is the same in all samples, and a half or so of a size that is not."""
    values = numbers.values(bound)
    if whole is None or whole.constant is not None or len(set(values)) > 1 or values[0] < _LEAST_PART:
        return
    sizes = numbers.evaluate(whole)
    if numbers.known(bound) is None and sizes is not None and len(set(sizes)) > 1:
        parts = (whole // k for k in _PARTS)
        part = next((part for part in parts if numbers.evaluate(part) == values), None)
        if part is not None:
            numbers.set(bound, part)


def _choose_end(numbers: OpNumbers, size: int, limit: int, step: int) -> None:
    """The end of a slice with a stride of a value whose size is an expression, that is fixed in the samples.

    It counts from the end of the value where it is less than a stride away: nobody strides over what is left out.
    """
    known = numbers.known(size)
    if known is None or known.constant is not None or numbers.known(limit) is not None:
        return
    if any(len(set(numbers.values(n))) > 1 for n in (size, limit, step)):
        return
    (whole, *_), (end, *_), (stride, *_) = map(numbers.values, (size, limit, step))
    if whole - stride < end < whole:
        numbers.set(limit, known - (whole - end))


def _choose_start(numbers: OpNumbers, size: int, limit: int, start: int) -> None:
    """A start that is fixed in the samples, where the end follows from no size: then both are symbols."""
    end = numbers.choose(limit)
    is_part = numbers.known(size) != end
    if is_part and numbers.is_given(end) and numbers.known(start) is None and len(set(numbers.values(start))) == 1:
        numbers.give(start)


def choose_chunks(op: ir.OpView, numbers: OpNumbers) -> None:
    """Choose expressions of prefixes that a reshape cuts into equal parts: all whole ones that there are, if it is so.

    What is left has to be smaller than a part in each sample. It may be nothing in all of them, if that is chance.
    """
    used, results = numbers.operand_numbers(0), numbers.result_numbers()
    for group, axes in reshape_groups(*(ir.RankedTensorType(v.type).shape for v in (op.operands[0], op.results[0]))):
        if len(group) == 1 and len(axes) > 1:
            parts = [numbers.values(results[axis]) for axis in reversed(axes)]
            _choose_multiple(numbers, used[group[0]], [part[0] for part in parts if len(set(part)) == 1])


def _choose_multiple(numbers: OpNumbers, used: int, parts: list[int]) -> None:
    whole, values = numbers.origin(used), numbers.values(used)
    if whole is None or whole.constant is not None:
        return
    is_fixed = len(set(values)) == 1  # then all parts are, and one of them is none at other sizes
    candidates = [part for part in (parts if is_fixed else [numbers.divisor(used)]) if part > 1]
    if numbers.evaluate(whole) == values:
        if not _may_leave(whole, candidates):
            return
        numbers.contest(used)
    if numbers.known(used) is not None:
        return
    found = numbers.find(values)
    bases = [whole] if found is None or not _may_leave(found.expression, candidates) else [whole, found.expression]
    multiples = (base // part * part for base in bases for part in candidates)
    multiple = next((e for e in multiples if numbers.evaluate(e) == values), None)
    if multiple is not None:
        numbers.set(used, multiple)


def _may_leave(size: Expr, parts: Sequence[int]) -> bool:
    """Tells whether a size is rounded, so that no caller sees to it that it is a multiple, and is one of no part."""
    is_rounded = any(not isinstance(atom, Symbol) for atom in size.atoms())
    return is_rounded and bool(parts) and not any(size // part * part == size for part in parts)


__all__ = ["choose_bounds", "choose_chunks", "choose_prefixes"]
