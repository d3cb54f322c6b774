# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of `simplify` and `expand`, each proved for all sizes on the programs that its templates describe."""

from __future__ import annotations

import pytest

from tests.proofs.prover import compare, has_elements
from tests.proofs.rewrites import PROVED, ROWS, TEMPLATES, UNPROVED
from tests.proofs.template import Template, prepared, rewritten


def test_every_rule_is_proved_or_has_a_reason() -> None:
    assert set(ROWS) == PROVED | set(UNPROVED)
    assert not PROVED & set(UNPROVED)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda t: t.rule)
def test_rule(template: Template) -> None:
    with prepared(template.target):
        before, after, fired = rewritten(template, ROWS[template.rule])
        if template.refused:
            assert not fired, template.refused
            return
        assert fired
        assert has_elements(before, template.has_bits), "no sizes are admissible"
        outcome = compare(before, after, template.has_bits)
        assert outcome.kind == "proved", f"{outcome}\n{before}\n{after}"
