# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX on the platform of the plugin, beside XLA's CPU. The programs are in `jax_programs.py`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.pjrt.plugin import outcomes_of, program_names, run_python

NAMES = program_names("jax_programs.py", "layout_programs.py")
outcomes = outcomes_of("tests.pjrt.jax_programs", devices=2)


@pytest.mark.parametrize("name", NAMES)
def test_on_the_platform(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == "ok", outcomes[name]


def test_every_program_is_in_the_table(outcomes: dict[str, str]) -> None:
    assert sorted(outcomes) == sorted(NAMES)


def test_a_process_ends_while_jax_lets_go_of_a_program() -> None:
    """JAX's threads hold a program a little longer than its user, until Python has begun to end."""
    source = "import jax; jax.jit(lambda x: x * 2).lower(jax.numpy.ones(3)).compile()"
    with ThreadPoolExecutor() as pool:
        started = [pool.submit(run_python, "-c", source, JAX_PLATFORMS="shlo_disc,cpu") for _ in range(2)]
    assert [run.result().returncode for run in started] == [0] * 2, started[0].result().stderr


def test_the_platform_is_not_the_default() -> None:
    """An installation without further settings keeps the default device, without a warning."""
    source = "import jax; print(jax.devices()[0].platform, jax.devices('shlo_disc')[0].platform)"
    done = run_python("-W", "error", "-c", source, JAX_PLATFORMS="")
    assert done.stdout.split() == ["cpu", "shlo_disc"], done.stderr
    assert done.stderr == ""
