# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fact engine against enumeration and against z3, on random facts and random questions.

The oracle evaluates its own expression trees with NumPy, so that `Expr` is under test as well. A symbol without a
maximum is enumerated up to a limit only: a wrong proof still shows as a counterexample, but a statement that holds up
to the limit may be false beyond it; the share of proved statements is exact for bounded symbols, too low for others.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation

_LIMIT = 9
_COMPARE = {
    "==": np.equal,
    "!=": np.not_equal,
    ">=": np.greater_equal,
    "<=": np.less_equal,
    ">": np.greater,
    "<": np.less,
}

Tree = tuple


def random_tree(rng: random.Random, names: list[str], depth: int) -> Tree:
    """An expression tree: ("const", k), ("symbol", name) or (operator, left, right)."""
    if depth == 0 or rng.random() < 0.15:
        return ("const", rng.choice((0, 1, 2, 3, 4, -1, 6))) if rng.random() < 0.25 else ("symbol", rng.choice(names))
    operator = rng.choice(("+", "+", "+", "-", "-", "*", "*", "scale", "//", "%", "max", "min", "//", "%"))
    left = random_tree(rng, names, depth - 1)
    if operator == "scale":
        return ("*", ("const", rng.choice((2, 3, 4, -1, -2))), left)
    if operator in ("//", "%") and rng.random() < 0.8:
        return (operator, left, ("const", rng.choice((2, 2, 3, 4, 8, -2))))
    return (operator, left, random_tree(rng, names, depth - 1))


def build(tree: Tree) -> Expr:
    """The expression under test."""
    if tree[0] == "const":
        return Expr.const(tree[1])
    if tree[0] == "symbol":
        return Expr.symbol(tree[1])
    a, b = build(tree[1]), build(tree[2])
    operations = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "//": lambda: a // b,
        "%": lambda: a % b,
        "max": lambda: Expr.maximum(a, b),
        "min": lambda: Expr.minimum(a, b),
    }
    return operations[tree[0]]()


def evaluate(tree: Tree, env: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(values, whether defined) at all points."""
    some = next(iter(env.values()))
    if tree[0] == "const":
        return np.full_like(some, tree[1]), np.ones(some.shape, bool)
    if tree[0] == "symbol":
        return env[tree[1]], np.ones(some.shape, bool)
    a, a_defined = evaluate(tree[1], env)
    b, b_defined = evaluate(tree[2], env)
    defined = a_defined & b_defined
    if tree[0] in ("//", "%"):
        defined = defined & (b != 0)
        b = np.where(b == 0, 1, b)
    operation = {"+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.mod}
    operation |= {"max": np.maximum, "min": np.minimum}
    return operation[tree[0]](a, b), defined


@dataclass
class Tally:
    """Counts over many cases; `wrong` holds a description of each unsound answer."""

    cases: int = 0
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def share(self, kind: str) -> str:
        proved, total = self.counts[f"{kind} proved"], self.counts[f"{kind} total"]
        return f"{kind}: {proved}/{total} = {proved / max(1, total):.3f}"


@dataclass
class World:
    """Random facts together with all their admissible points."""

    facts: Facts
    env: dict[str, np.ndarray]
    bounded: bool
    text: str


def random_world(rng: random.Random, tally: Tally) -> World | None:
    """Random declarations and relations; None when no point is left."""
    names = ["a", "b", "c"][: rng.choice((1, 2, 2, 3))]
    facts, axes, text = Facts(), [], []
    bounded = rng.random() < 0.5
    for name in names:
        low = rng.choice((-3, 0, 0, 1, 1, 2))
        high = low + rng.randint(0, 7) if bounded or rng.random() < 0.3 else None
        divisor = rng.choice((1, 1, 1, 2, 3, 4))
        values = [v for v in range(low, (_LIMIT if high is None else high) + 1) if v % divisor == 0]
        if not values:
            return None
        facts.declare(name, low, high, divisor)
        axes.append(np.array(values, np.int64))
        text.append(f"{name} in [{low}, {high}] by {divisor}")
    grid = np.meshgrid(*axes, indexing="ij")
    env = {name: axis.ravel() for name, axis in zip(names, grid, strict=True)}
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        operator = rng.choice(("==", ">=", "<=", "<", ">", ">=", "!="))
        left, right = (random_tree(rng, names, rng.choice((0, 1, 1, 2))) for _ in range(2))
        (x, x_defined), (y, y_defined) = evaluate(left, env), evaluate(right, env)
        admissible = _COMPARE[operator](x, y) & x_defined & y_defined
        relation = Relation(operator, build(left), build(right))
        text.append(f"{left} {operator} {right} [{relation}]")
        try:
            facts.add(relation)
        except ProgramError:
            if admissible.any():
                tally.wrong.append(f"contradiction claimed for {text}")
            return None
        env = {name: values[admissible] for name, values in env.items()}
        if not admissible.any():
            tally.counts["contradictions missed"] += bounded
            return None
    return World(facts, env, bounded, "; ".join(text))


def check_relation(rng: random.Random, world: World, tally: Tally) -> None:
    names = list(world.env)
    left = random_tree(rng, names, rng.choice((1, 2, 2, 3)))
    if rng.random() < 0.5:
        other = random_tree(rng, names, rng.choice((0, 1, 2)))
        right: Tree = (rng.choice(("+", "-", "max", "min")), left, other)
        if rng.random() < 0.5:
            left = random_tree(rng, names, 1)
    else:
        right = random_tree(rng, names, rng.choice((0, 1, 2)))
    operator = rng.choice(("==", "!=", ">=", "<=", ">", "<", ">=", "<="))
    (x, x_defined), (y, y_defined) = evaluate(left, world.env), evaluate(right, world.env)
    holds = _COMPARE[operator](x, y)[x_defined & y_defined]
    relation = Relation(operator, build(left), build(right))
    answer = world.facts.prove(relation)
    if (answer is True and not holds.all()) or (answer is False and holds.any()):
        tally.wrong.append(f"{relation} is {answer}: {left} {operator} {right} under {world.text}")
    if holds.size and (holds.all() or not holds.any()):
        kind = "bounded" if world.bounded else "unbounded"
        tally.counts[f"{kind} total"] += 1
        tally.counts[f"{kind} proved"] += answer is not None
        if relation.lhs.constant is None or relation.rhs.constant is None:
            tally.counts[f"{kind} {operator} total"] += 1
            tally.counts[f"{kind} {operator} proved"] += answer is not None


def check_expression(rng: random.Random, world: World, tally: Tally) -> None:
    tree = random_tree(rng, list(world.env), rng.choice((1, 2, 3)))
    e = build(tree)
    values, defined = evaluate(tree, world.env)
    points = [int(i) for i in np.flatnonzero(defined)]
    values = values[defined]
    low, high = world.facts.range(e)
    if values.size and ((low is not None and values.min() < low) or (high is not None and values.max() > high)):
        tally.wrong.append(f"range of {e} is {(low, high)}: {tree} under {world.text}")
    if values.size and world.bounded:
        tally.counts["range total"] += 2
        tally.counts["range proved"] += int(low == values.min()) + int(high == values.max())
    k = rng.choice((2, 3, 4, 6, 8))
    divides = world.facts.divides(k, e)
    if divides and (values % k).any():
        tally.wrong.append(f"{k} divides {e}: {tree} under {world.text}")
    if values.size and not (values % k).any():
        tally.counts["divides total"] += 1
        tally.counts["divides proved"] += divides
    forms = {"canonical": world.facts.canonical(e), "simplify": world.facts.simplify(e), "expr": e}
    for i in rng.sample(range(len(points)), min(12, len(points))):
        env = {name: int(axis[points[i]]) for name, axis in world.env.items()}
        for name, form in forms.items():
            if form.evaluate(env) != values[i]:
                tally.wrong.append(f"{name} of {e} is {form}: {tree} at {env} under {world.text}")
                return


def run(seed: int, cases: int, seconds: float = 1e9) -> Tally:
    """At least `cases` random checks, or fewer when the time is over."""
    rng, tally, deadline = random.Random(seed), Tally(), time.monotonic() + seconds
    while tally.cases < cases and time.monotonic() < deadline:
        world = random_world(rng, tally)
        if world is None:
            continue
        for _ in range(6):
            check_relation(rng, world, tally)
        for _ in range(2):
            check_expression(rng, world, tally)
        tally.cases += 8
    return tally


def report(tally: Tally) -> str:
    kinds = sorted({name.rsplit(" ", 1)[0] for name in tally.counts if name.endswith(" total")})
    missed = tally.counts["contradictions missed"]
    return f"cases {tally.cases}, wrong {len(tally.wrong)}, contradictions missed {missed}\n" + "\n".join(
        tally.share(kind) for kind in kinds
    )


def test_random_sample() -> None:
    tally = run(seed=1, cases=6_000)
    assert not tally.wrong, "\n".join(tally.wrong[:5])
    assert tally.counts["bounded proved"] > 0.5 * tally.counts["bounded total"]


@pytest.mark.slow
def test_random_many() -> None:
    tally = run(seed=2, cases=200_000)
    print(report(tally))
    assert tally.cases >= 200_000
    assert not tally.wrong, "\n".join(tally.wrong[:5])


def to_z3(z3: Any, tree: Tree) -> Any:
    """The tree for z3. Its div and mod are Python's for the positive constant divisors that are used here."""
    if tree[0] == "const":
        return z3.IntVal(tree[1])
    if tree[0] == "symbol":
        return z3.Int(tree[1])
    a, b = to_z3(z3, tree[1]), to_z3(z3, tree[2])
    if tree[0] in ("max", "min"):
        return z3.If(a >= b if tree[0] == "max" else a <= b, a, b)
    return {"+": a + b, "-": a - b, "*": a * b, "//": a / b, "%": a % b}[tree[0]]


def z3_relation(z3: Any, operator: str, left: Tree, right: Tree) -> Any:
    a, b = to_z3(z3, left), to_z3(z3, right)
    return {"==": a == b, "!=": a != b, ">=": a >= b, "<=": a <= b, ">": a > b, "<": a < b}[operator]


def total_tree(rng: random.Random, names: list[str], depth: int) -> Tree:
    """A tree that is defined everywhere: only positive constant divisors."""

    def repair(tree: Tree) -> Tree:
        if tree[0] in ("const", "symbol"):
            return tree
        left, right = repair(tree[1]), repair(tree[2])
        return (tree[0], left, ("const", rng.choice((2, 3, 4, 8))) if tree[0] in ("//", "%") else right)

    return repair(random_tree(rng, names, depth))


def run_z3(seed: int, cases: int) -> Tally:
    """Random questions over unbounded integers; a statement that z3 proves or refutes counts for the strength."""
    z3 = pytest.importorskip("z3")
    rng, tally, names = random.Random(seed), Tally(), ["a", "b", "c"]
    while tally.cases < cases:
        facts, solver = Facts(), z3.Solver()
        solver.set("timeout", 150)
        text = []
        for name in names:
            low = rng.choice((None, -2, 0, 1, 1))
            divisor = rng.choice((1, 1, 2, 4))
            facts.declare(name, low, None, divisor)
            solver.add(z3.Int(name) % divisor == 0, *([] if low is None else [z3.Int(name) >= low]))
            text.append(f"{name} >= {low} by {divisor}")
        consistent = True
        for _ in range(rng.choice((0, 1, 2, 3))):
            operator = rng.choice(("==", ">=", "<=", ">=", "!="))
            left, right = total_tree(rng, names, rng.choice((0, 1, 2))), total_tree(rng, names, rng.choice((0, 1)))
            relation = Relation(operator, build(left), build(right))
            text.append(str(relation))
            solver.add(z3_relation(z3, operator, left, right))
            try:
                facts.add(relation)
            except ProgramError:
                consistent = False
                break
        satisfiable = solver.check()
        if not consistent and satisfiable == z3.sat:
            tally.wrong.append(f"contradiction claimed for {text}")
        if not consistent or satisfiable != z3.sat:
            tally.counts["z3 contradictions missed"] += consistent and satisfiable == z3.unsat
            continue
        for _ in range(6):
            _ask_z3(z3, rng, names, facts, solver, text, tally)
    return tally


def _ask_z3(
    z3: Any, rng: random.Random, names: list[str], facts: Facts, solver: Any, text: list[str], tally: Tally
) -> None:
    operator = rng.choice(("==", "!=", ">=", "<=", ">=", "<"))
    left, right = total_tree(rng, names, rng.choice((1, 2, 3))), total_tree(rng, names, rng.choice((0, 1, 2)))
    if rng.random() < 0.4:
        right = (rng.choice(("+", "-", "max", "min")), left, right)
    relation = Relation(operator, build(left), build(right))
    answer = facts.prove(relation)
    statement = z3_relation(z3, operator, left, right)
    tally.cases += 1
    for value, goal in ((True, z3.Not(statement)), (False, statement)):
        solver.push()
        solver.add(goal)
        outcome = solver.check()
        solver.pop()
        if answer is value and outcome == z3.sat:
            tally.wrong.append(f"{relation} is {answer} under {text}")
        if outcome == z3.unsat and relation.lhs - relation.rhs != 0:
            tally.counts["z3 total"] += 1
            tally.counts["z3 proved"] += answer is value


def test_z3_sample() -> None:
    tally = run_z3(seed=1, cases=500)
    assert not tally.wrong, "\n".join(tally.wrong[:5])
    assert tally.counts["z3 proved"] > 0.5 * tally.counts["z3 total"]


@pytest.mark.slow
def test_z3_many() -> None:
    tally = run_z3(seed=2, cases=30_000)
    print(report(tally), "z3 contradictions missed", tally.counts["z3 contradictions missed"])
    assert not tally.wrong, "\n".join(tally.wrong[:5])
