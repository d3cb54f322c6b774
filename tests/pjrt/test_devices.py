# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several devices of the plugin. They are in `device_programs.py` and `device_checks.py`."""

from __future__ import annotations

import pytest

from tests.pjrt.plugin import program_names, program_outcomes

NAMES = program_names("device_programs.py", "device_checks.py")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    return program_outcomes("tests.pjrt.device_checks", devices=4)


@pytest.mark.parametrize("name", NAMES)
def test_on_four_devices(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == "ok", outcomes[name]


def test_every_program_has_run(outcomes: dict[str, str]) -> None:
    assert sorted(outcomes) == sorted(NAMES)
