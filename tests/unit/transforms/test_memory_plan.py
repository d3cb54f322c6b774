# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The symbolic arena: at any sizes, buffers that are alive together do not overlap and lie inside the arena."""

from __future__ import annotations

import importlib
import random
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export

from shlo_disc.compiler import import_stage, run_pipeline
from shlo_disc.mlir import ir
from shlo_disc.options import Options
from shlo_disc.shape_dialect.annotate import entry_block
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.types import bytes_of, dims_of, element_type_of, product
from shlo_disc.transforms.views import root

MODELS = ["bert", "gpt2", "vit", "mlp_mixer", "transformer_train"]


def planned(program: Any) -> ir.Module:
    compilation = run_pipeline(import_stage(program, "cpu", Options(), None, None, ()), last="plan")
    module: ir.Module = compilation.module
    return module


def arena_buffers(module: ir.Module) -> list[tuple[Expr, Expr, int, int]]:
    """(offset, bytes, first call, last call) of every buffer in the arena."""
    calls = [op for op in entry_block(module).operations if op.operation.name == "func.call"]
    first: dict[ir.Value, int] = {}
    last: dict[ir.Value, int] = {}
    offsets: dict[ir.Value, Expr] = {}
    for position, call in enumerate(calls):
        for value in call.operands:
            last[root(value)] = position
        for result, entry in zip(call.results, call.attributes["disc.buffers"], strict=True):
            if ir.StringAttr(entry["space"]).value == "arena":
                offsets[result] = Expr.parse(ir.StringAttr(entry["offset"]).value)
                first[result] = position
    return [
        (offset, product(dims_of(v)) * bytes_of(element_type_of(v)), first[v], last.get(v, first[v]))
        for v, offset in offsets.items()
    ]


def check_no_overlap(module: ir.Module, sizes: dict[str, int]) -> int:
    total = Expr.parse(ir.StringAttr(module.operation.attributes["disc.arena_bytes"]).value).evaluate(sizes)
    placed = [(o.evaluate(sizes), b.evaluate(sizes), f, t) for o, b, f, t in arena_buffers(module)]
    for index, (offset, size, start, end) in enumerate(placed):
        assert offset % 64 == 0
        assert offset + size <= total
        for other_offset, other_size, other_start, other_end in placed[:index]:
            # A result may take over the buffer of an input that dies in the same call.
            alive_together = start < other_end and other_start < end
            apart = offset + size <= other_offset or other_offset + other_size <= offset
            assert apart or not alive_together
    return len(placed)


@pytest.mark.parametrize("name", MODELS)
def test_live_buffers_never_overlap(name: str) -> None:
    model = importlib.import_module(f"examples.{name}")
    module = planned(model.export(model.SMALL))
    generator = random.Random(name)
    names = [n.strip() for n in model.DIMS.split(",")]
    for _ in range(8):
        sizes = {n: generator.choice([1, 2, 3, 7, 13, 16, 17, 24]) for n in names}
        assert check_no_overlap(module, sizes) > 3


def test_a_slot_of_incomparable_tenants_is_their_maximum() -> None:
    def f(x: jax.Array, y: jax.Array) -> jax.Array:
        a = jnp.sum(jnp.dot(x, x.T), axis=0)
        b = jnp.sum(jnp.dot(y, y.T), axis=0)
        return jnp.sum(a) + jnp.sum(b)

    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(d, scope=scope), jnp.float32) for scope in
             [export.SymbolicScope()] for d in ("a, 4", "b, 4")]  # fmt: skip
    module = planned(export.export(jax.jit(f))(*specs))
    for a, b in [(1, 1), (3, 50), (50, 3), (17, 17)]:
        check_no_overlap(module, {"a": a, "b": b})


def test_a_chain_of_equal_buffers_needs_two_slots() -> None:
    def f(x: jax.Array, w: jax.Array) -> jax.Array:
        for _ in range(6):
            x = jnp.dot(x, w)
        return x

    (b,) = export.symbolic_shape("b")
    specs = jax.ShapeDtypeStruct((b, 16), jnp.float32), jax.ShapeDtypeStruct((16, 16), jnp.float32)
    module = planned(export.export(jax.jit(f))(*specs))
    assert ir.StringAttr(module.operation.attributes["disc.arena_bytes"]).value == "128*b"
