# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop-carried values are looked at a few times for each loop, at any depth."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export, lax

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.transforms.control_flow import carried


def nested(depth: int, x: jax.Array) -> jax.Array:
    if not depth:
        return jnp.sin(x)
    return lax.fori_loop(0, 2, lambda _, value: nested(depth - 1, value) + x, x)


@pytest.mark.parametrize("depth", [2, 8])
def test_each_loop_is_looked_at_a_few_times(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    plain = carried._needed

    def counting(loop: Any) -> set[int]:
        nonlocal seen
        seen += 1
        return plain(loop)

    monkeypatch.setattr(carried, "_needed", counting)
    program = export.export(jax.jit(lambda x: nested(depth, x)))(jax.ShapeDtypeStruct((4,), jnp.float32))
    run_pipeline(import_stage(program, "cpu", Options()), last="simplify")
    assert depth <= seen <= 4 * depth
