# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several devices of the plugin. They are in `device_programs.py` and `device_checks.py`."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tests.pjrt.plugin import run_python

PROGRAMS = [Path(__file__).with_name(name) for name in ("device_programs.py", "device_checks.py")]


def names() -> list[str]:
    """The programs, without the import of JAX that a look at the module takes."""
    nodes = (node for path in PROGRAMS for node in ast.parse(path.read_text()).body)
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef))
    return [f.name for f in functions if any(getattr(d, "id", "") in ("case", "check") for d in f.decorator_list)]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    flags = "--xla_force_host_platform_device_count=4"
    done = run_python("-m", "tests.pjrt.device_checks", JAX_PLATFORMS="shlo_disc,cpu", XLA_FLAGS=flags)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", names())
def test_on_four_devices(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == "ok", outcomes[name]


def test_every_program_has_run(outcomes: dict[str, str]) -> None:
    assert sorted(outcomes) == sorted(names())
