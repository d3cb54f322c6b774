# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of `simplify`, each proved for all sizes on the programs that its templates describe."""

from __future__ import annotations

import pytest

from shlo_disc.transforms.simplify.patterns import PATTERNS
from tests.proofs.prover import compare
from tests.proofs.simplify_templates import TEMPLATES
from tests.proofs.template import Template, prepared, rewritten, rule_name

ROWS = {rule_name(row): row for row in PATTERNS}


def test_every_rule_has_a_template() -> None:
    assert {t.rule for t in TEMPLATES if not t.refused} == set(ROWS)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda t: t.rule)
def test_rule(template: Template) -> None:
    with prepared(template.target):
        before, after, fired = rewritten(template, ROWS[template.rule])
        if template.refused:
            assert not fired, template.refused
            return
        assert fired
        outcome = compare(before, after, template.has_bits)
        assert outcome.kind == "proved", f"{outcome}\n{before}\n{after}"
