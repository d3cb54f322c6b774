# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refusals of the roles that `fuse` writes on recurrences and scans: a fused module with one thing changed."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import pytest
from jax import export, lax

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.driver.stage_text import stage_text
from shlo_disc.errors import CompilerError, ProgramError
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.verify import verify_fusions
from tests.unit.shape_dialect.test_dialect_verifier import refusal


def _program(x: jax.Array, w: jax.Array, h: jax.Array) -> tuple[jax.Array, ...]:
    def step(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        h = jnp.tanh(x + h @ w)
        return h, h

    last, states = lax.scan(step, h, x)
    return last, states, lax.cumsum(x, 0, reverse=True)


@functools.cache
def printed() -> str:
    """A recurrence with a stack, and a scan of suffixes."""
    scope = export.SymbolicScope()
    shapes = [export.symbolic_shape(text, scope=scope) for text in ("t, b, 8", "8, 8", "b, 8")]
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    compilation = import_stage(export.export(jax.jit(_program))(*arguments), "cpu", Options())
    run_pipeline(compilation, "fuse")
    return stage_text(compilation, "fuse")


def changed(old: str, new: str) -> str:
    assert printed().count(old) == 1, old
    return printed().replace(old, new)


ROLES = (
    "covered = array<i64: 2>, scalars = array<i64: 0>, stacks = array<i64: 2>, states = array<i64: 1>, trip = @t, "
    "windows = array<i64: 1>"
)

CHANGES = {
    "loop": (f"loops = [{{{ROLES}}}]", "", "0 loops are said of 1"),
    "no role": ("scalars = array<i64: 0>, ", "", "are not the 3 carried values"),
    "two roles": ("scalars = array<i64: 0>", "scalars = array<i64: 0, 1>", "are not the 3 carried values"),
    "scalar": ("scalars = array<i64: 0>, stacks = array<i64: 2>, states = array<i64: 1>",
               "scalars = array<i64: 1>, stacks = array<i64: 2>, states = array<i64: 0>", "a scalar has axes"),
    "covered": ("covered = array<i64: 2>", "covered = array<i64: 1>", "not of the stacks"),
    "window": ("windows = array<i64: 1>", "windows = array<i64: 3>", "windows = 3 is none of 3"),
    "rows of a window": ("windows = array<i64: 1>", "windows = array<i64: 2>", "no stack of windows of b rows"),
    "stack": ("covered = array<i64: 2>, scalars = array<i64: 0>, stacks = array<i64: 2>, states = array<i64: 1>",
              "scalars = array<i64: 0>, stacks = array<i64: 1>, states = array<i64: 2>", "the stack 1 is not updated"),
    "trip": ("trip = @t", "trip = @nowhere", "nowhere, which is no symbol"),
    "axis of a scan": ("reverse}", "axis = 3 : i64, reverse}", "axis = 3 is none of 3"),
}  # fmt: skip


def test_what_is_printed_is_not_refused() -> None:
    assert ROLES in printed()
    assert refusal(printed()) == ""


@pytest.mark.parametrize("rule", CHANGES)
def test_wrong_roles_are_refused(rule: str) -> None:
    old, new, message = CHANGES[rule]
    assert message in refusal(changed(old, new))


@pytest.mark.parametrize(
    ("old", "new"), [('"scan", {reverse}', '"scan", {}'), ("reverse}", "axis = 1 : i64, reverse}")]
)
def test_a_scan_along_another_axis_or_the_other_way_is_refused(old: str, new: str) -> None:
    with make_context(), ir.Location.unknown():
        verify_fusions(ir.Module.parse(printed()))
        with pytest.raises(CompilerError, match="are not those of a scan along"):
            verify_fusions(ir.Module.parse(changed(old, new)))


def test_rows_that_meet_are_refused_whatever_the_roles_say() -> None:
    text = printed()
    line = next(line for line in text.splitlines() if "stablehlo.tanh" in line)
    backwards = line.replace("stablehlo.tanh", "stablehlo.reverse").replace(" : ", ", dims = [0] : ", 1)
    with pytest.raises(ProgramError, match="a row needs another one"):
        import_stage(text.replace(line, backwards), "cpu", Options(), resume=True)
