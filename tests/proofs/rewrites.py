# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules that are proved, their templates, and those that have none."""

from __future__ import annotations

from shlo_disc.transforms import expand
from shlo_disc.transforms.simplify import patterns
from tests.proofs import expand_templates, simplify_templates
from tests.proofs.template import rule_name

STAGES = {
    "simplify": [rule_name(row) for row in patterns.PATTERNS],
    "expand": [rule_name(row) for row in (*expand.BODIES, *expand.PATTERNS)],
}
"""The names of the rules of each folder."""

ROWS = {rule_name(row): row for row in (*patterns.PATTERNS, *expand.BODIES, *expand.PATTERNS)}
"""The rules by their names."""

TEMPLATES = [*simplify_templates.TEMPLATES, *expand_templates.TEMPLATES]

UNPROVED = expand_templates.UNPROVED

PROVED = {template.rule for template in TEMPLATES if not template.refused}
