# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SHLO_DISC_MAX_PROGRAMS, the client's option of that name, and what JAX_SHLO_DISC_EXPLAIN says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pypjrt import errors

from tests.pjrt.plugin import library, run_python
from tests.pjrt.streams import artifact
from tests.pjrt.test_loader import made

SOURCE = Path(__file__).with_name("max_programs.py")


def line_of(text: str) -> str:
    """`max_programs.py:12`, the first line that has a text."""
    lines = SOURCE.read_text().splitlines()
    return f"{SOURCE}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def outcomes(**environment: str) -> dict[str, Any]:
    done = run_python("-m", "tests.pjrt.max_programs", JAX_PLATFORMS="shlo_disc,cpu", **environment)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def limited() -> dict[str, Any]:
    return outcomes(SHLO_DISC_MAX_PROGRAMS="2", JAX_SHLO_DISC_EXPLAIN="1")


def test_a_general_function_has_two_programs(limited: dict[str, Any]) -> None:
    assert limited["general"] == [""] * 4


def test_what_jax_runs_by_itself_is_not_limited(limited: dict[str, Any]) -> None:
    assert limited["eager"] == ["(3,)", "(4,)", "(5,)", "(6,)"]


def test_a_function_that_is_traced_differently(limited: dict[str, Any]) -> None:
    first, second, third, fourth = limited["unrolled"]
    assert (first, second) == ("", "") and "FAILED_PRECONDITION" in third and fourth
    assert f"'unrolled' ({line_of('def unrolled')})" in third and "x: f32[5] after x: f32[3]; x: f32[4]" in third
    assert line_of("x = x * 2") in third and "Remedy: where Python decides by sizes" in third


def test_a_value_without_an_expression(limited: dict[str, Any]) -> None:
    """Two samples are a line, which the third is not on."""
    first, second, third, _ = limited["no_expression"]
    assert (first, second) == ("", "")
    assert "is 12, where the symbolic program has 11" in third and line_of("jnp.zeros(LENGTHS") in third
    assert "Remedy: compute the value from sizes" in third


def test_an_argument_that_changes_later(limited: dict[str, Any]) -> None:
    first, second, third = limited["other_axis"]
    assert (first, second) == ("", "")
    assert "axis 1 of argument 0" in third and "is 6, where the symbolic program has 4" in third
    assert "Remedy: one more compile makes a symbol of it" in third


def test_each_program_too_many_is_explained(limited: dict[str, Any]) -> None:
    (told,) = [line for line in limited["told"] if "'unrolled'" in line]
    assert told.startswith("compiled for one shape only: the function 'unrolled'") and "x: f32[4]" in told


@pytest.mark.slow
def test_without_a_limit_the_reason_is_told() -> None:
    found = outcomes(JAX_SHLO_DISC_EXPLAIN="1")
    assert not any(any(found[name]) for name in ("general", "unrolled", "no_expression", "strided", "other_axis"))
    told = [line for line in found["told"] if "'strided'" in line][0]
    assert "window_strides of stablehlo.convolution changes" in told and line_of("conv_general_dilated(") in told
    assert len([line for line in found["told"] if "'unrolled'" in line]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("said", ["two", "-1", "1.5"])
def test_the_variable_is_a_number(said: str) -> None:
    done = run_python("-c", "import jax; jax.devices()", JAX_PLATFORMS="shlo_disc", SHLO_DISC_MAX_PROGRAMS=said)
    assert done.returncode and "SHLO_DISC_MAX_PROGRAMS is a number, 0 or more" in done.stderr


def test_the_option_of_a_client() -> None:
    def unrolled(x: Any) -> Any:
        for _ in range(x.shape[0]):
            x = x * 2
        return x

    limited, free = (made(library(), trusts_programs=1, max_programs=most) for most in (1, 0))
    programs = [artifact(unrolled, (np.ones(size, np.float32),)) for size in (3, 4)]
    limited.compile(programs[0])
    with pytest.raises(errors.FailedPrecondition, match="more than 1 programs"):
        limited.compile(programs[1])
    free.compile(programs[1])
    for opened in (limited, free):
        opened.close()
    with pytest.raises(errors.InvalidArgument, match="max_programs"):
        made(library(), max_programs=-1)
