# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong rules are refuted: a proof that could not fail would say nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from shlo_disc.transforms.simplify.patterns import PATTERNS
from tests.proofs import simplify_templates
from tests.proofs.mutants import mutants
from tests.proofs.prover import compare
from tests.proofs.template import Row, Template, prepared, rewritten, rule_name

ROWS = {rule_name(row): row for row in PATTERNS}
TEMPLATES = simplify_templates.TEMPLATES


def verdict(row: Row, templates: list[Template]) -> str:
    """The fate of a wrong rule: "refuted", "fails", "silent" where it does not fire, "equal" or "unknown"."""
    seen = Counter[str]()
    for template in templates:
        seen[_outcome(row, template)] += 1
        if seen["refuted"]:
            break
    return next((kind for kind in ("refuted", "unknown", "fails", "proved") if seen[kind]), "silent")


def _outcome(row: Row, template: Template) -> str:
    with prepared(template.target):
        try:
            before, after, fired = rewritten(template, row, times=2)
            if not fired:
                return "silent"
            return compare(before, after, template.has_bits).kind
        except Exception:
            return "fails"


def verdicts(name: str) -> Iterator[tuple[str, str]]:
    """All wrong forms of a rule, and what becomes of them."""
    op, pattern = ROWS[name]
    templates = [t for t in TEMPLATES if t.rule == name]
    for text, wrong in mutants(pattern):
        yield text, verdict((op, wrong), templates)
