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

from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.errors import CompilerError
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.buffers import (
    BUFFERS,
    ArenaBuffer,
    ResultBuffer,
    buffers_of,
    set_arenas,
    set_buffers,
)
from shlo_disc.shape_dialect.dialect.names import VARIANT
from shlo_disc.shape_dialect.dialect.types import dim_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.variants import variants_in
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import entry_block
from shlo_disc.transforms.decisions import TURNED_OFF
from shlo_disc.transforms.memory import liveness
from shlo_disc.verify import buffers, verify_buffers


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
    entries = buffers_of(op)
    entries[number] = replace(entries[number], **changed)
    with op.context:
        set_buffers(op, entries)


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
    with pytest.raises(CompilerError, match="overwrites %0, which it reads"):
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
    """Values from outside of a loop have to outlive every iteration."""

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


def piece(x: Any, w: Any) -> Any:
    """A product with one of some matrices, and what is computed between the place of that and the product."""
    stack = jnp.sin(w)
    index = stack.sum().astype(jnp.int32) % 3
    other = jnp.cos((x + index) @ x.T)
    return other @ lax.dynamic_index_in_dim(stack, index, keepdims=False, allow_negative_indices=False), stack.max()


@pytest.mark.parametrize("maker", ["stack", "index"])
def test_a_piece_of_an_array_that_is_overwritten(maker: str) -> None:
    """The product reads the array and the scalar that says where when it runs."""
    c = planned(piece, "64, 64", "3, 64, 64")
    check(c)
    assert c.module is not None
    (cut,) = [op.operation for op in entry_block(c.module).operations if op.operation.name == "disc.piece"]
    value = root(cut.operands[0 if maker == "stack" else 1])
    reader = next(use.owner.operation for use in cut.results[0].uses)
    product = reader if reader.name == "func.call" else next(use.owner.operation for use in reader.results[0].uses)
    place = buffers_of(value.owner.operation)[list(value.owner.results).index(value)]
    set_entry(root(product.operands[0]).owner.operation, 0, offset=place.offset)
    with pytest.raises(CompilerError, match="overwritten by|which it reads|not proved to fit"):
        check(c)


def test_a_plan_that_forgets_what_pieces_are_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "read_for", lambda value: [root(value)])
    with pytest.raises(CompilerError, match="which it reads|overwritten by"):
        planned(piece, "64, 64", "3, 64, 64")


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


def nested(depth: int) -> Callable[[Any], Any]:
    """Loops within each other, each with a branch, an op before and one behind the inner loop."""

    def nest(level: int, x: Any) -> Any:
        if level == 0:
            return jnp.sin(x) * 0.5
        step = lambda i, c: lax.cond(c.sum() > 0, lambda v: v @ v, lambda v: v, nest(level - 1, c)) + x * 0.1  # noqa: E731
        return lax.fori_loop(0, 2, step, jnp.tanh(x @ x))

    return lambda x: nest(depth, x)


def visited(depth: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """The number of ops that the checker visits of `nested(depth)`, and the number that there are."""
    c = planned(nested(depth), "n, n", verify=False)
    visits = 0
    visit, collect = buffers._Walk._op, buffers._Walk._place_results

    def counted_visit(self: Any, op: ir.Operation) -> None:
        nonlocal visits
        visits += 1
        visit(self, op)

    def counted_collect(self: Any, op: ir.Operation) -> None:
        nonlocal visits
        visits += 1
        collect(self, op)

    monkeypatch.setattr(buffers._Walk, "_op", counted_visit)
    monkeypatch.setattr(buffers._Walk, "_place_results", counted_collect)
    check(c)
    monkeypatch.undo()
    assert c.module is not None
    return visits, sum(1 for block in all_blocks(entry_block(c.module)) for _ in block.operations)


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_ops_are_visited_a_bounded_number_of_times_at_any_depth(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    visits, ops = visited(depth, monkeypatch)
    assert ops <= visits <= 3 * ops


def test_a_value_from_outside_that_an_inner_loop_overwrites() -> None:
    """Each level of a nest reads what is made before all of them."""
    c = planned(nested(3), "n, n")
    outer = next(op for op in calls(c) if op.name == "stablehlo.while")
    (first, *_) = [op for op in calls(c) if isinstance(buffers_of(op)[0], ArenaBuffer)]
    inner = [op.operation for block in all_blocks(outer.regions[1].blocks[0]) for op in block.operations]
    moved = [op for op in inner if op.name == "func.call" and isinstance(buffers_of(op)[0], ArenaBuffer)]
    wrong = 0
    for op in moved:
        before = buffers_of(op)
        set_entry(op, 0, offset=buffers_of(first)[0].offset)
        if buffers_of(op) != before:
            with pytest.raises(CompilerError, match="overwritten|overwrites|not proved to fit"):
                check(c)
            wrong += 1
        with op.context:
            set_buffers(op, before)
    assert wrong > 0
    check(c)


# ---- variants within a limit of memory ------------------------------------------------------------------------------


def kept_over_products(x: Any, y: Any) -> Any:
    """Two values that are needed after three products."""
    first, second = jnp.tanh(x @ y), jnp.sin(x @ y)
    z = ((first @ y) @ y) @ y
    return z * first * second


def of_variants() -> tuple[Compilation, ir.Operation]:
    scope = export.SymbolicScope()
    arguments = [jax.ShapeDtypeStruct(export.symbolic_shape("n, n", scope=scope), jnp.float32)] * 2
    program = export.export(jax.jit(kept_over_products))(*arguments)
    options = Options(strict=True, memory_limit=100_000)
    c = run_pipeline(import_stage(program, "cpu", options), last="plan")
    assert c.module is not None
    found = variants_in(c.module)
    assert found is not None and len(found.regions) > 1
    check(c)
    return c, found


def test_a_variant_in_the_arena_of_another() -> None:
    c, op = of_variants()
    call = next(o.operation for o in op.regions[1].blocks[0].operations if BUFFERS in o.attributes)
    set_entry(call, 0, segment=1)
    with pytest.raises(CompilerError, match="not proved to fit|which is another variant's"):
        check(c)


@pytest.mark.parametrize("number", ["n", "0 - 1", "2"])
def test_a_variant_that_there_is_not(number: str) -> None:
    c, op = of_variants()
    assert len(op.regions) == 2
    with c.context:
        c.module.operation.attributes[VARIANT] = dim_attr(Expr.parse(number))  # type: ignore[union-attr]
    with pytest.raises(CompilerError, match="no branch has the number"):
        check(c)
