# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Proofs that two programs have equal results for all sizes, and counterexamples where they have not.

A proof leaves the sizes open. Where it fails, small sizes are tried one after another, folds written out: what z3 finds
then is a counterexample. What is neither proved nor refuted is unknown.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import z3

from shlo_disc.shape_dialect.mlir import ir
from tests.proofs.rules import RULES
from tests.proofs.scope import Fold, Index, Scope, Term, inside
from tests.proofs.semantics import Tensor, results_of

STEPS = 15_000_000
"""The most that z3 takes for each question of a proof, by its own count, which no other process disturbs: some 10 s."""

SECONDS = 120
"""The same by the clock, where steps are slow."""

SAMPLES = 24
"""Sizes that are tried for a counterexample."""


@dataclass(frozen=True)
class Outcome:
    """The result of a comparison: "proved", "refuted" by an example, or "unknown" and of what."""

    kind: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


def compare(before: ir.Module, after: ir.Module, has_bits: bool = False) -> Outcome:
    """Compares all elements of all results, their sizes, and what each op demands of its operands."""
    try:
        missing = unproved(*_both(before, after, Scope(has_bits=has_bits)))
    except ValueError as error:
        return Outcome("unknown", str(error))
    if missing is None:
        return Outcome("proved")
    symbols = _symbols(before, has_bits)
    for sizes in samples(symbols):
        try:
            example = counterexample(*_both(before, after, Scope(sizes, has_bits)))
        except ValueError as error:
            return Outcome("unknown", str(error))
        if example is not None:
            return Outcome("refuted", f"{example} at {sizes}")
    return Outcome("unknown", missing)


def _both(before: ir.Module, after: ir.Module, scope: Scope) -> tuple[Scope, list[Tensor], list[Tensor]]:
    given = results_of(before, scope, RULES)
    scope.is_given = False
    return scope, given, results_of(after, scope, RULES)


def _symbols(module: ir.Module, has_bits: bool) -> list[str]:
    scope = Scope(has_bits=has_bits)
    results_of(module, scope, RULES)
    return list(scope.symbols)


def samples(symbols: Sequence[str], count: int = SAMPLES) -> Iterator[dict[str, int]]:
    """Small sizes, first different ones."""
    rng = random.Random(0)
    for values in ((2, 3, 4, 5, 6), (3, 2, 5, 4, 7), (1,), (2,), (4,), (1, 2), (2, 1), (0, 2)):
        yield dict(zip(symbols, itertools.cycle(values), strict=False))
    for _ in range(count):
        yield {name: rng.randint(1, 5) for name in symbols}


def has_elements(module: ir.Module, has_bits: bool = False) -> bool:
    """Tells whether a program has a result with an element at some sizes: of none, anything would be proved."""
    for sizes in samples(_symbols(module, has_bits)):
        scope = Scope(sizes, has_bits)
        goals = []
        for number, result in enumerate(results_of(module, scope, RULES)):
            index = tuple(z3.Int(f"result {number} {axis}") for axis in range(len(result.dims)))
            with scope.under(inside(index, result.dims)):
                result.at(index)
            goals.append(inside(index, result.dims))
        solver = z3.Solver()
        solver.set(rlimit=STEPS, timeout=SECONDS * 1000)
        solver.add(*scope.assumptions, *goals)
        if solver.check() == z3.sat:
            return True
    return False


# ---- proofs ------------------------------------------------------------------------------------------------------


def _index(dims: Sequence[Term]) -> Index:
    return tuple(z3.Int(f"i{axis}") for axis in range(len(dims)))


def unproved(scope: Scope, before: Sequence[Tensor], after: Sequence[Tensor]) -> str | None:
    """The text of the first thing that is not proved; None when all is."""
    if len(before) != len(after):
        return "the number of results"
    for number, (left, right) in enumerate(zip(before, after, strict=True)):
        text = _unproved_result(scope, left, right)
        if text is not None:
            return f"result {number}: {text}"
    return None


def _unproved_result(scope: Scope, left: Tensor, right: Tensor) -> str | None:
    if left.element != right.element or len(left.dims) != len(right.dims):
        return "the type"
    index = _index(left.dims)
    with scope.under(inside(index, left.dims)):
        first = left.at(index)
        folds = list(scope.folds)
        second = right.at(index)
        others = [f for f in scope.folds if f not in folds]
        for a, b in zip(left.dims, right.dims, strict=True):
            scope.show("sizes of the results", a == b)
        lemmas = _equal_folds(scope, folds, [*others, *folds])
        here = z3.And(scope._path)
        same = [equation.children() for where, equation in lemmas if where.eq(here)]
        second = z3.substitute(second, *((b, a) for a, b in same)) if same else second
        for text, goal in scope.obligations:
            if not _holds(scope, [], goal):
                return text
        scope.obligations.clear()
        return (
            None
            if _holds(scope, [z3.Implies(*lemma) for lemma in lemmas], _within(scope, first == second))
            else "elements"
        )


def _within(scope: Scope, goal: Term) -> Term:
    return z3.Implies(z3.And(scope._path), goal)


def _holds(scope: Scope, more: Sequence[Term], goal: Term) -> bool:
    if z3.is_true(z3.simplify(goal, som=True)) or _is_identity(goal):
        return True
    solver = z3.Solver()
    solver.set(rlimit=STEPS, timeout=SECONDS * 1000)
    solver.add(*scope.assumptions, *more, z3.Not(goal))
    return bool(solver.check() == z3.unsat)


def _is_identity(goal: Term) -> bool:
    """Tells whether a goal is an equation of two numbers, behind a condition, whose difference is 0 as a polynomial."""
    conclusion = goal.arg(1) if z3.is_implies(goal) else goal
    if not z3.is_eq(conclusion) or not z3.is_arith(conclusion.arg(0)):
        return False
    difference = z3.simplify(conclusion.arg(0) - conclusion.arg(1), som=True)
    return bool(z3.is_int_value(difference) or z3.is_rational_value(difference)) and str(difference) == "0"


def _equal_folds(scope: Scope, ours: Sequence[Fold], theirs: Sequence[Fold]) -> list[tuple[Term, Term]]:
    """Equations of folds, inner ones first, each behind the condition under which it holds."""
    lemmas: list[tuple[Term, Term]] = []
    for b in theirs:
        for a in ours:
            if a is not b and a.kind == b.kind and len(a.bounds) == len(b.bounds):
                known = [z3.Implies(*lemma) for lemma in lemmas]
                where = a.path if a.path.eq(b.path) else z3.And(a.path, b.path)
                if _are_equal(scope, a, b, where, known):
                    lemmas.append((where, a.stands == b.stands))
                    break
    return lemmas


def _are_equal(scope: Scope, a: Fold, b: Fold, where: Term, lemmas: Sequence[Term]) -> bool:
    """Tells whether two folds are proved to be equal where a condition holds.

    Their bodies are, under an order of the variables that gives both the same bounds.
    """
    orders = [tuple(range(len(a.bounds)))]
    if not a.kind.startswith("ordered"):
        orders = list(itertools.permutations(orders[0]))
    if len(a.body) != len(b.body) or len(a.more) != len(b.more):
        return False
    for order in orders:
        pairs = [(v, a.variables[i]) for v, i in zip(b.variables, order, strict=True)]
        same = [a.bounds[i] == bound for i, bound in zip(order, b.bounds, strict=True)]
        same += [x == y for x, y in zip(a.more, b.more, strict=True)]
        if not all(_holds(scope, lemmas, z3.Implies(where, condition)) for condition in same):
            continue
        moved = [z3.substitute(t, *pairs) for t in (*scope.assumptions, *lemmas)] if pairs else []
        body = [x == (z3.substitute(y, *pairs) if pairs else y) for x, y in zip(a.body, b.body, strict=True)]
        goal = z3.Implies(z3.And(where, inside(a.variables, a.bounds)), z3.And(body))
        if _holds(scope, [*lemmas, *moved], goal):
            return True
    return False


# ---- counterexamples -----------------------------------------------------------------------------------------------


def counterexample(scope: Scope, before: Sequence[Tensor], after: Sequence[Tensor]) -> str | None:
    """The first difference at known sizes; None where z3 finds nothing, or where StableHLO rejects the sizes."""
    if len(before) != len(after):
        return "the number of results"
    for number, (left, right) in enumerate(zip(before, after, strict=True)):
        if left.element != right.element or len(left.dims) != len(right.dims):
            return "the types"
        index = _index(left.dims)
        with scope.under(inside(index, left.dims)):
            first = left.at(index)
            second = right.at(index)
            for a, b in zip(left.dims, right.dims, strict=True):
                scope.show("sizes of the results", a == b)
            goals = [*scope.obligations, ("elements", _within(scope, first == second))]
        scope.obligations.clear()
        for text, goal in goals:
            model = _model(scope, goal)
            if model is not None:
                place = [model.eval(i, model_completion=True) for i in index]
                return f"result {number}, {text}, at {place}"
    return None


def _model(scope: Scope, goal: Term) -> z3.ModelRef | None:
    if z3.is_true(z3.simplify(goal)):
        return None
    solver = z3.Solver()
    solver.set(rlimit=STEPS, timeout=SECONDS * 1000)
    solver.add(*scope.assumptions, z3.Not(goal))
    return solver.model() if solver.check() == z3.sat else None
