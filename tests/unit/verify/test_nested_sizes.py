# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checker of sizes that loops and branches read: right programs pass, and each way of breaking one is found."""

from __future__ import annotations

from typing import Any

import pytest
from jax import lax

import shlo_disc.numpy as snp
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.errors import CompilerError
from shlo_disc.importer.program import read
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.buffers import arenas_of, buffers_of, set_arenas, set_buffers
from shlo_disc.shape_dialect.dialect.declarations import facts_of
from shlo_disc.shape_dialect.dialect.types import dim_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import entry_block
from shlo_disc.verify import verify_nested_sizes


def halved(x: Any) -> Any:
    def step(number: Any, x: Any) -> Any:
        at = snp.flatnonzero(x > number)
        return x.at[at].set(x[at] / 2)

    return lax.fori_loop(0, 3, step, x)


@pytest.fixture
def planned() -> Compilation:
    program = read(halved, args=[(("n",), "float32")])
    return run_pipeline(import_stage(program, "cpu", Options(strict=True)), last="plan")


def check(c: Compilation) -> None:
    assert c.module is not None
    verify_nested_sizes(c.module, facts_of(c.module), entry_block(c.module))


def body_of(c: Compilation) -> ir.Block:
    """The body of the loop."""
    assert c.module is not None
    (loop,) = (op for op in entry_block(c.module).operations if op.operation.name == "stablehlo.while")
    body: ir.Block = nested_blocks(loop)[1]
    return body


def one(block: ir.Block, name: str) -> ir.Operation:
    return next(op.operation for op in block.operations if op.operation.name == name)


def test_a_plan_of_the_planner_passes(planned: Compilation) -> None:
    check(planned)


def test_a_size_that_is_needed_before_it_is_read(planned: Compilation) -> None:
    body = body_of(planned)
    one(body, "disc.bind").move_before(body.operations[len(body.operations) - 1].operation)
    with pytest.raises(CompilerError, match="needs n0, which is not known there"):
        check(planned)


def test_a_size_that_is_read_outside_of_the_loop(planned: Compilation) -> None:
    body = body_of(planned)
    one(body, "disc.bind").move_before(body.owner)
    with pytest.raises(CompilerError, match="n0 is read outside of a loop or branch"):
        check(planned)


def test_a_size_that_is_read_twice(planned: Compilation) -> None:
    bind = one(body_of(planned), "disc.bind")
    bind.clone(ip=ir.InsertionPoint(bind))
    with pytest.raises(CompilerError, match="n0 is read twice"):
        check(planned)


def test_a_limit_that_is_less_than_the_mask(planned: Compilation) -> None:
    assert planned.module is not None
    symbol = next(op for op in planned.module.body.operations if "limit" in op.attributes)
    with planned.context:
        symbol.attributes["limit"] = dim_attr(Expr.parse("n - 1"))
    with pytest.raises(CompilerError, match="the limit of n0 is n - 1, and the mask has n elements"):
        check(planned)


def test_an_arena_of_the_size(planned: Compilation) -> None:
    assert planned.module is not None
    module = planned.module.operation
    with planned.context:
        set_arenas(module, [size + Expr.symbol("n0") for size in arenas_of(module)])
    with pytest.raises(CompilerError, match="the bytes or the arithmetic of a call"):
        check(planned)


def test_a_buffer_at_an_offset_that_depends_on_the_size(planned: Compilation) -> None:
    calls = [op for op in body_of(planned).operations if op.operation.name == "func.call"]
    call = next(op for op in calls if any(hasattr(buffer, "offset") for buffer in buffers_of(op)))
    (buffer, *others) = buffers_of(call)
    with planned.context:
        set_buffers(call, [type(buffer)(buffer.offset + Expr.symbol("n0"), buffer.bytes), *others])
    with pytest.raises(CompilerError, match="its buffer depends on a size"):
        check(planned)
