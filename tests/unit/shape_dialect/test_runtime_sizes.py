# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that ask whether the run has ended are told the address of the runtime, by a size that they name."""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jnp
import pytest
from jax import export

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.driver.stage_text import stage_text
from shlo_disc.options import Options

from .test_dialect_verifier import refusal


def _averages(x: jax.Array, n: jax.Array) -> jax.Array:
    first = jnp.int32(0), x
    averaged: jax.Array = jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + x), first)[1]
    return jnp.sort(averaged)


@functools.cache
def printed(stage: str) -> str:
    """A loop over data that is one kernel, and another kernel."""
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape("b, 8"), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)]
    compilation = import_stage(export.export(jax.jit(_averages))(*specs), "cpu", Options())
    run_pipeline(compilation, stage)
    return stage_text(compilation, stage)


def test_loops_over_data_ask() -> None:
    text = printed("kernels")
    assert refusal(text) == ""
    asking = [kernel for kernel in text.split("func.func private @") if "disc.runtime_size" in kernel]
    assert len(asking) == 1 and asking[0].startswith("recurrence")
    condition = asking[0][asking[0].index("scf.while") : asking[0].index("scf.condition")]
    assert re.search(r"llvm.call %\w+\(%\w+\) : !llvm.ptr, \(!llvm.ptr\) -> i64", condition)
    assert asking[0].count("llvm.call") == 1


def test_it_is_launched_with_the_runtime() -> None:
    assert printed("host").count("given = array<i64: ") == 1
    assert refusal(printed("host")) == ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"disc\.runtime_size = \d+ : i64", "disc.runtime_size = 9 : i64", "disc.runtime_size = 9 is none of"),
        (r"disc\.runtime_size = \d+ : i64", 'disc.runtime_size = "b"', "expected i64 as disc.runtime_size"),
        (r", disc\.runtime_size = \d+ : i64", "", "launched by itself, which takes []"),
        (r"given = array<i64: \d+>", "given = array<i64: 7>", "launched by itself, which takes ["),
    ],
    ids=["place", "type", "a kernel that does not ask", "another place"],
)
def test_malformed_programs(old: str, new: str, message: str) -> None:
    text, count = re.subn(old, new, printed("host"))
    assert count == 1
    assert message in refusal(text)
