# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checker of memory plans: right plans pass, and each way of breaking one is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export, lax

from shlo_disc.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.errors import CompilerError
from shlo_disc.mlir import ir
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.buffers import (
    BUFFERS,
    ArenaBuffer,
    ResultBuffer,
    buffers_of,
    set_arenas,
    set_buffers,
)
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import entry_block
from shlo_disc.transforms.decisions import TURNED_OFF
from shlo_disc.verify import verify_buffers


def planned(function: Callable[..., Any], *specs: str, verify: bool = True) -> Compilation:
    scope = export.SymbolicScope()
    arguments = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), jnp.float32) for s in specs]
    program = export.export(jax.jit(function))(*arguments)
    return run_pipeline(import_stage(program, "cpu", Options(verify=verify, strict=True)), last="plan")


def check(c: Compilation) -> None:
    assert c.module is not None
    verify_buffers(c.module, c.facts, entry_block(c.module))


def calls(c: Compilation) -> list[ir.Operation]:
    assert c.module is not None
    return [op.operation for op in entry_block(c.module).operations if BUFFERS in op.attributes]


def set_entry(op: ir.Operation, number: int, **changed: Any) -> None:
    """Change fields of the buffer of one result."""
    buffers = buffers_of(op)
    buffers[number] = replace(buffers[number], **changed)
    with op.context:
        set_buffers(op, buffers)


def chain(x: Any, y: Any) -> Any:
    """Three kernels in a row, whose first result is read again by the last one."""
    a = jnp.sin(x).sum(0)
    b = jnp.cos(y * a).sum(0)
    return jnp.tanh(x + a - b)


def loop(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda i, c: (c[1], c[0] + x.sum(0)), (x, x * 2))[0]


def branch(x: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda v: v.sum(0) * v, lambda v: v - v.sum(0), x * 3)


def without_elements(x: Any) -> Any:
    """The halves that a scan of two elements is made of have none, and lie anywhere."""
    y = x.sum() + jnp.ones((2, 2))
    return jax.vjp(lambda v: lax.cumprod(v, 0), y)[1](y)[0]


@pytest.mark.parametrize("function", [chain, loop, branch, without_elements])
def test_right_plans_pass(function: Callable[..., Any]) -> None:
    check(planned(function, *(["n, n"] * function.__code__.co_argcount)))


def test_a_value_that_is_overwritten_before_it_is_read_again() -> None:
    c = planned(chain, "n, n", "n, n")
    first, second, *_ = calls(c)
    set_entry(second, 0, offset=buffers_of(first)[0].offset)
    with pytest.raises(CompilerError, match="overwrites %0, which it reads|where that is overwritten by func.call"):
        check(c)


def test_a_buffer_that_reaches_into_the_next_one() -> None:
    c = planned(chain, "n, n", "n, n")
    set_entry(calls(c)[0], 0, offset=Expr.parse("4*n"))
    with pytest.raises(CompilerError, match="not proved to fit"):
        check(c)


def test_an_arena_that_is_too_small() -> None:
    c = planned(chain, "n, n", "n, n")
    assert c.module is not None
    with c.context:
        set_arenas(c.module.operation, [Expr.const(64)])
    with pytest.raises(CompilerError, match="not proved to fit"):
        check(c)


def test_a_result_in_the_place_of_another_one() -> None:
    def two(x: Any) -> Any:
        return x.sum(0), x.sum(1)

    c = planned(two, "n, n")
    for op in calls(c):
        for number, buffer in enumerate(buffers_of(op)):
            if isinstance(buffer, ResultBuffer):
                set_entry(op, number, index=1)
    with pytest.raises(CompilerError, match="lies in result 1|two of its results lie in|overwritten by"):
        check(c)


def test_a_loop_whose_second_iteration_reads_what_the_first_has_overwritten() -> None:
    """What is from outside of a loop has to outlive every iteration."""

    def scaled(x: Any) -> Any:
        s = jnp.sin(x).sum(0)
        return lax.fori_loop(0, 4, lambda i, c: jnp.tanh(c @ x) * s, x)

    c = planned(scaled, "n, n")
    outside = calls(c)[0]
    offset = buffers_of(outside)[0].offset
    (loop_op,) = [op for op in calls(c) if op.name == "stablehlo.while"]
    body = loop_op.regions[1].blocks[0]
    inside = [op.operation for op in body.operations if BUFFERS in op.attributes]
    moved = [op for op in inside if isinstance(buffers_of(op)[0], ArenaBuffer)]
    set_entry(moved[0], 0, offset=offset)
    with pytest.raises(CompilerError, match="overwritten by|which it reads|not proved to fit"):
        check(c)


BROKEN = {
    "in-place.spreads-along-columns": (
        lambda x: ((d := (n := (x * x).sum(1))[:, None] + n[None, :] - x @ x.T), d.max(1) - d.max()),
        ["n, k"],
    ),
    "epilogue-in-place.only-reader": (lambda x: jnp.tanh((v := jnp.sin(x)) @ v + v) @ x, ["n, n"]),
}


@pytest.mark.parametrize("condition", BROKEN)
def test_what_a_planner_without_one_of_its_conditions_does_is_found(condition: str) -> None:
    function, specs = BROKEN[condition]
    check(planned(function, *specs))
    TURNED_OFF.add(condition)
    try:
        with pytest.raises(CompilerError, match="which it reads|overwritten by"):
            planned(function, *specs)
    finally:
        TURNED_OFF.discard(condition)
