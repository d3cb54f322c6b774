# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that return before their runs end. Those of JAX are in `async_programs.py`."""

from __future__ import annotations

import pytest

from tests.pjrt.plugin import outcomes_of, program_names, run_python

NAMES = program_names("async_programs.py")
outcomes = outcomes_of("tests.pjrt.async_programs", devices=4)


@pytest.mark.parametrize("name", NAMES)
def test_calls_of_jax(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == "ok", outcomes[name]


def test_every_program_is_in_the_table(outcomes: dict[str, str]) -> None:
    assert sorted(outcomes) == sorted(NAMES)


LONG = """
import jax, jax.numpy as jnp
from jax import lax

program = jax.jit(lambda x: lax.fori_loop(0, 2_000_000, lambda _, c: lax.optimization_barrier(-c), x))
x = program(jnp.zeros(8)).block_until_ready()
"""


def test_a_process_ends_with_runs_in_flight() -> None:
    for last in ("y = [program(x) for _ in range(3)]", "program(x); raise SystemExit(0)"):
        done = run_python("-c", LONG + last, JAX_PLATFORMS="shlo_disc,cpu")
        assert (done.returncode, done.stderr) == (0, "")


SYNCHRONOUS = (
    """
import jax

jax.config.update("jax_cpu_enable_async_dispatch", False)
"""
    + LONG
    + """
def fail(_):
    raise ValueError("not this one")

assert program(x).is_ready()
try:
    jax.jit(lambda x: jax.pure_callback(fail, x, x))(x)
except jax.errors.JaxRuntimeError as error:
    assert "not this one" in str(error)
else:
    raise AssertionError("there is no error")
"""
)


def test_calls_can_be_synchronous() -> None:
    done = run_python("-c", SYNCHRONOUS, JAX_PLATFORMS="shlo_disc,cpu")
    assert done.returncode == 0, done.stderr
