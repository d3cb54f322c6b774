# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index maps as terms of z3: the element that the reads of a map find, beside the element that an op has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import z3

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.index_maps import Coordinate, Entry, IndexMap, Read, Regrouped, Start
from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.proofs.prover import SAMPLES, Outcome, counterexample, samples, unproved
from tests.proofs.rules import RULES
from tests.proofs.scope import Index, Scope, Term, maximum, minimum, number
from tests.proofs.semantics import Call, Tensor, argument, dims_of, element_of, evaluate


def compare_map(module: ir.Module, reads: IndexMap) -> Outcome:
    """Compares a map with the semantics of the last op of a module, for all sizes."""
    missing = unproved(*_both(module, reads, Scope()))
    if missing is None:
        return Outcome("proved")
    scope = Scope()
    _both(module, reads, scope)
    for sizes in samples(list(scope.symbols), SAMPLES):
        example = counterexample(*_both(module, reads, Scope(sizes)))
        if example is not None:
            return Outcome("refuted", f"{example} at {sizes}")
    return Outcome("unknown", missing)


def _both(module: ir.Module, reads: IndexMap, scope: Scope) -> tuple[Scope, list[Tensor], list[Tensor]]:
    block = module.body.operations[0].regions[0].blocks[0]
    values: dict[Any, Tensor] = {a: argument(f"argument {i}", a.type, scope) for i, a in enumerate(block.arguments)}
    *ops, _ = block.operations
    for op in ops:
        evaluate(op.operation, values, scope, RULES)
    last = ops[-1].operation
    scope.is_given = False
    result = last.results[0].type
    call = Call(last, [values[v] for v in last.operands], dims_of(result, scope), element_of(result), scope)
    return scope, [values[last.results[0]]], [call.tensor(lambda index: _Reads(call).element(reads, index))]


class _Reads:
    """The evaluation of a map of an op."""

    def __init__(self, call: Call) -> None:
        self.call = call

    def element(self, reads: Sequence[Read], index: Index) -> Term:
        """The element that the first read inside of its operand finds."""
        read, *rest = reads
        value = self.call.operands[read.operand]
        place, conditions = self.place(read, index, value.dims)
        if not rest:
            self.call.scope.show("the last read has an element", z3.And(conditions))
            return self.call.element_of(value, place)
        if read.until is not None:
            axis = read.until
            size = value.dims[axis]
            inside = index[axis] < size
            later = (*index[:axis], index[axis] - size, *index[axis + 1 :])
        else:
            inside, later = z3.And(conditions), index
        with self.call.scope.under(inside):
            here = self.call.element_of(value, place)
        with self.call.scope.under(z3.Not(inside)):
            there = self.element(rest, later)
        return z3.If(inside, here, there)

    def place(self, read: Read, index: Index, dims: Sequence[Term]) -> tuple[Index, list[Term]]:
        """The position of a read, and the conditions that there is one."""
        place, conditions = [], []
        for axis, coordinate in enumerate(read.at):
            if isinstance(coordinate, Regrouped):
                place.append(self.regrouped(coordinate, index, dims))
                continue
            before = self.before_step(coordinate, index, dims[axis])
            step = self.amount(coordinate.step)
            here = before if z3.simplify(step).eq(number(1)) else before / step
            place.append(here)
            conditions.append(here * step == before)
            if axis in read.within:
                conditions += [here >= 0, here < dims[axis]]
        return tuple(place), conditions

    def before_step(self, c: Coordinate, index: Index, size: Term) -> Term:
        """The position along an axis, before it is divided."""
        position = number(0) if c.axis is None else index[c.axis]
        if c.one is not None:
            position = z3.If(self.call.scope.size(c.one) == 1, 0, position)
        if c.is_mirrored:
            position = size - 1 - position
        return position * self.amount(c.stride) - self.start(c.minus, index) + self.start(c.plus, index)

    def regrouped(self, c: Regrouped, index: Index, dims: Sequence[Term]) -> Term:
        """The position along an axis of a reshape's operand."""
        scope = self.call.scope
        part, given = tuple(index[a] for a in c.axes), [self.call.dims[a] for a in c.axes]
        where = z3.And([z3.And(i >= 0, i < n) for i, n in zip(part, given, strict=True)])
        digits = scope.digits(scope.offset(part, given), [dims[a] for a in c.group], where)
        return digits[c.group.index(c.axis)]

    def start(self, amount: Expr | Entry | Start, index: Index) -> Term:
        """An amount, or the clamped beginning of a window."""
        if not isinstance(amount, Start):
            return self.amount(amount)
        indices = self.call.operands[amount.operand]
        at = tuple(self.before_step(c, index, size) for c, size in zip(amount.at, indices.dims, strict=True))
        last = (self.amount(amount.extent) - 1) * self.amount(amount.stride)
        low = maximum(self.call.element_of(indices, at), number(0))
        return minimum(low, self.call.scope.size(amount.size) - 1 - last)

    def amount(self, amount: Expr | Entry) -> Term:
        """A number of elements."""
        if isinstance(amount, Expr):
            return self.call.scope.size(amount)
        return self.call.operands[amount.operand].at((number(amount.number),)) + amount.more


# ---- wrong maps ----------------------------------------------------------------------------------------------------


def wrong_maps(reads: IndexMap, rank: int) -> list[tuple[str, IndexMap]]:
    """Maps with one thing changed: an axis, a stride, a start, a step, a direction, what may lie outside."""
    found: list[tuple[str, IndexMap]] = []
    for number_, read in enumerate(reads):

        def with_(other: Read, number_: int = number_) -> IndexMap:
            return (*reads[:number_], other, *reads[number_ + 1 :])

        for axis, c in enumerate(read.at):
            for text, other in _wrong_coordinates(c, rank):
                found.append((text, with_(read._replace(at=(*read.at[:axis], other, *read.at[axis + 1 :])))))
        for axis in read.within:
            left = tuple(a for a in read.within if a != axis)
            found.append((f"axis {axis} always inside", with_(read._replace(within=left))))
        if read.until is not None and len(reads) > 1:
            found.append(("not until", with_(read._replace(until=(read.until + 1) % rank))))
    if len(reads) > 1:
        found.append(("the other order", reads[::-1]))
    return found


def _with(c: Coordinate, name: str, amount: Any) -> Coordinate:
    return replace(c, **{name: amount})


def _wrong_coordinates(c: Coordinate | Regrouped, rank: int) -> list[tuple[str, Coordinate | Regrouped]]:
    if isinstance(c, Regrouped):
        found: list[tuple[str, Coordinate | Regrouped]] = [("axes turned round", c._replace(axes=c.axes[::-1]))]
        if len(c.group) > 1:
            other = c.group[(c.group.index(c.axis) + 1) % len(c.group)]
            found.append(("another axis of the group", c._replace(axis=other)))
        return found
    one = Expr.const(1)
    changed: list[tuple[str, Coordinate | Regrouped]] = [
        ("mirrored", replace(c, is_mirrored=not c.is_mirrored)),
        ("nothing", Coordinate()),
    ]
    if c.axis is not None:
        changed.append(("another axis", replace(c, axis=(c.axis + 1) % rank)))
    for f in fields(c):
        amount = getattr(c, f.name)
        if isinstance(amount, Expr) and f.name != "one":
            changed.append((f"{f.name} + 1", _with(c, f.name, amount + one)))
        if isinstance(amount, Entry):
            changed.append((f"{f.name} + 1", _with(c, f.name, amount._replace(more=amount.more + 1))))
        if isinstance(amount, Start):
            changed.append((f"{f.name} of a longer window", _with(c, f.name, amount._replace(size=amount.size + one))))
            changed.append((f"{f.name} unclamped", _with(c, f.name, Expr.const(0))))
    if c.one is not None:
        changed.append(("never broadcast", replace(c, one=None)))
    return changed
