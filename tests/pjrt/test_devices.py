# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several devices of the plugin. `device_checks.py` names their files."""

from __future__ import annotations

import pytest

from tests.pjrt.plugin import outcomes_of, program_names

NAMES = program_names(
    "device_programs.py", "unreduced_programs.py", "custom_partitioning_programs.py", "device_checks.py"
)
outcomes = outcomes_of("tests.pjrt.device_checks", devices=4)


@pytest.mark.parametrize("name", NAMES)
def test_on_four_devices(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == "ok", outcomes[name]


def test_every_program_is_in_the_table(outcomes: dict[str, str]) -> None:
    assert sorted(outcomes) == sorted(NAMES)
