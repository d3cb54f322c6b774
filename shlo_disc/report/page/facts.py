# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The facts known of the sizes, the decisions that they allowed, and what would allow more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from shlo_disc.driver.compilation import Compilation, made
from shlo_disc.driver.compiler import run_pipeline
from shlo_disc.errors import ProgramError
from shlo_disc.lowering.launches import launches_in
from shlo_disc.report.page.document import Missing, Rule, Symbol
from shlo_disc.report.page.places import place_text, shown
from shlo_disc.shape_dialect.dialect.declarations import symbols_in
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.transforms.decisions import PATTERNS, Record, recording

MOST_PLACES = 60
"""Places that a rule names, each of what it has done and has not."""

MOST_MISSING = 200

MOST_NAMES = 4
"""Symbols of a relation that simpler ones are looked for."""


def symbols_of(c: Compilation) -> Iterator[Symbol]:
    """The symbols, with their bounds."""
    sources = {source.name: source for source in c.signature.symbols}
    for name, symbol in symbols_in(made(c.module)).items():
        low = "" if symbol.min is None else f"{symbol.min} <= "
        high = "" if symbol.max is None else f" <= {symbol.max}"
        more = [f"{symbol.residue} modulo {symbol.divisor}"] if symbol.divisor > 1 else []
        more += [f"likely {', '.join(map(str, symbol.hints))}"] if symbol.hints else []
        source = sources.get(name)
        if symbol.data:
            more.append("read from data")
        elif source is not None:
            path = c.signature.arguments[source.argument].path
            more.append(f"from dimension {source.dim} of {path}")
        yield Symbol(name, f"{low}{name}{high}", "; ".join(more))


def before_fusion(c: Compilation) -> Compilation:
    """A compiled program as it was after `simplify`, to be fused and planned once more."""
    text = c.snapshots["simplify"].get_asm(enable_debug_info=True)
    with c.context:
        module = ir.Module.parse(text, c.context)
    options = replace(c.options, verify=False)  # what comes of it is thrown away
    again = Compilation(options, c.target, c.context, c.signature, module, cpu=c.cpu, stage="simplify")
    again.read_declarations()
    return again


def record_of(c: Compilation) -> Record:
    """The decisions and refusals in fusing and planning a compiled program: both stages run once more and recorded."""
    with recording() as record:
        run_pipeline(before_fusion(c), "plan")
    return record


def rules_of(record: Record) -> Iterator[Rule]:
    """The patterns that were tried, those that were taken most often first."""
    taken = Counter(decision.pattern for decision in record.made)
    refused = Counter((r.pattern, r.condition) for r in record.refusals)
    tried = {*taken, *(pattern for pattern, _ in refused)}
    made, not_made = _made(record), _refused(record)
    for name in sorted(tried, key=lambda n: (-taken[n], n)):
        pattern = PATTERNS.get(name)
        conditions = [] if pattern is None else [(k.text, refused[name, k.name]) for k in pattern.conditions]
        text = "" if pattern is None else pattern.text
        yield Rule(name, text, taken[name], tuple(conditions), made.get(name, ()), not_made.get(name, ()))


def _made(record: Record) -> dict[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    """For each pattern, where it was taken and by which relations; those that needed some first."""
    found: dict[str, dict[tuple[str, tuple[str, ...]], None]] = {}
    for decision, proofs in zip(record.made, record.proofs, strict=True):
        entry = place_text(decision.place), tuple(dict.fromkeys(map(str, proofs)))
        found.setdefault(decision.pattern, {})[entry] = None
    return {name: tuple(sorted(of, key=lambda entry: not entry[1]))[:MOST_PLACES] for name, of in found.items()}


def _refused(record: Record) -> dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]]:
    """For each pattern, the conditions that refused it, where, and what was missing; the most frequent first."""
    found: dict[str, Counter[tuple[str, str, tuple[str, ...]]]] = {}
    for refusal in record.refusals:
        entry = refusal.condition, place_text(refusal.place), tuple(map(str, refusal.missing))
        found.setdefault(refusal.pattern, Counter())[entry] += 1
    texts = {(pattern.name, k.name): k.text for pattern in PATTERNS.values() for k in pattern.conditions}
    return {
        name: tuple(
            (texts[name, condition], place, missing) for (condition, place, missing), _ in of.most_common(MOST_PLACES)
        )
        for name, of in found.items()
    }


def missing_of(c: Compilation, record: Record) -> list[Missing]:
    """Relations that were not proved, what they would decide, and where; those that would help most often first."""
    found: dict[Relation, tuple[dict[str, None], dict[str, None]]] = {}
    for relation, decides, where in _lacking(c, record):
        if relation.symbols():
            all_decides, places = found.setdefault(relation, ({}, {}))
            all_decides[decides] = places[where] = None
    ordered = sorted(((r, *told) for r, told in found.items()), key=lambda item: -len(item[2]))
    return [
        Missing(str(relation), tuple(decides), tuple(places), _constraint(c.facts, relation))
        for relation, decides, places in ordered[:MOST_MISSING]
    ]


def _lacking(c: Compilation, record: Record) -> Iterator[tuple[Relation, str, str]]:
    """A relation, what it decides, and where: kernels without guards, fusions, memory that serves two cases."""
    for launched in launches_in(c.snapshots["host"]):
        for guard in launched.guards:
            decides = f'the kernel is always "{guard.variant}", never "{guard.otherwise}"'
            yield from ((r, decides, launched.fusion) for r in guard.conditions if not guard.of_size)
    for refusal in record.refusals:
        decides = f"{refusal.pattern}: {PATTERNS[refusal.pattern].text}"
        yield from ((relation, decides, place_text(refusal.place)) for relation in refusal.missing)
    for decision, relations in zip(record.made, record.open, strict=True):
        decides = f"{decision.pattern} serves one case, not both"
        yield from ((relation, decides, place_text(decision.place)) for relation in relations)


def _constraint(facts: Facts, relation: Relation) -> str:
    """The constraint to state on the sizes: that one symbol is at least, or more than, another where that is enough.

    "" where it contradicts the sizes' constraints, or is of data.
    """
    names = sorted(relation.symbols())
    if set(names) & set(facts.data_symbols) or facts.prove(relation) is False:
        return ""
    pairs = [(Expr.symbol(a), Expr.symbol(b)) for a, b in permutations(names, 2)] if len(names) <= MOST_NAMES else []
    simple = (compare(a, b) for compare in (Relation.ge, Relation.gt) for a, b in pairs)
    return str(next((promise for promise in simple if _is_enough(facts, promise, relation)), relation))


def _is_enough(facts: Facts, promise: Relation, relation: Relation) -> bool:
    """Tells whether a relation is proved once another one is known."""
    more = facts.copy()
    try:
        more.add(promise)
    except ProgramError:  # no sizes satisfy it
        return False
    return more.prove(relation) is True


def constraints_of(c: Compilation) -> Sequence[tuple[str, str]]:
    """The relations that every call has to satisfy, and what requires them."""
    return [(str(constraint.relation), shown(constraint.origin)) for constraint in c.constraints]
