# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs of the plugin are interpreted until they are busy."""

from __future__ import annotations

import json
import os

import pytest

from tests.pjrt.plugin import program_names, program_rows, run_python


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> dict[str, str]:
    ran = run_python("-m", "tests.pjrt.interpreted_programs", *program_rows(request), JAX_PLATFORMS="shlo_disc,cpu",
                     SHLO_DISC_INTERPRETED_MICROSECONDS="500")  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    found: dict[str, str] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", program_names("interpreted_programs.py"))
def test_interpreted(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == "passed"


@pytest.mark.parametrize("said", ["many", "-1", "1.5"])
def test_the_variable_is_a_number(said: str) -> None:
    ran = run_python("-c", "import jax; jax.devices()", JAX_PLATFORMS="shlo_disc",
                     SHLO_DISC_INTERPRETED_MICROSECONDS=said)  # fmt: skip
    assert ran.returncode != 0
    assert "SHLO_DISC_INTERPRETED_MICROSECONDS is a number, 0 or more" in ran.stderr


def test_nothing_is_interpreted_for_clients_that_count_programs() -> None:
    code = (
        "import jax; print(jax.jit(lambda x: x + 1)(1.0));"
        "from shlo_disc.runtime.native_module import plugin_programs; print(plugin_programs().counts['interpreted'])"
    )
    counting = ("SHLO_DISC_MAX_PROGRAMS", "3"), ("JAX_SHLO_DISC_EXPLAIN", "1"), ("SHLO_DISC_WATCH", os.devnull)
    for variables in (dict([one]) for one in (*counting, ("SHLO_DISC_INTERPRETED_MICROSECONDS", "0"))):
        environment = {"SHLO_DISC_INTERPRETED_MICROSECONDS": "500", **variables}
        ran = run_python("-c", code, JAX_PLATFORMS="shlo_disc", **environment)
        assert ran.stdout.split() == ["2.0", "0"], ran.stderr[-2000:]
