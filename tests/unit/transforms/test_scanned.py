# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GEMMs that leave a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export, lax

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.utils.regions import entry_block


def products(function: Callable[..., Any], *shapes: str) -> tuple[int, int]:
    """The numbers of GEMMs of a float32 function that are outside and inside of its loop."""
    scope = export.SymbolicScope()
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), jnp.float32) for s in shapes]
    program = export.export(jax.jit(function))(*specs)
    module = run_pipeline(import_stage(program, "cpu", Options(), None, None, ()), last="simplify").module
    outer = list(entry_block(module).operations)
    inner = [op for loop in outer for block in nested_blocks(loop) for op in block.operations]
    counts = [sum(op.operation.name == "stablehlo.dot_general" for op in ops) for ops in (outer, inner)]
    return counts[0], counts[1]


def scan(step: Callable[..., Any], x: jax.Array, width: int, **options: Any) -> Any:
    return lax.scan(step, jnp.zeros((x.shape[1], width), x.dtype), x, **options)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", ["t", "7"])
def test_the_product_of_an_input_leaves_and_that_of_a_state_stays(length: str, reverse: bool) -> None:
    def cell(x: jax.Array, w: jax.Array, u: jax.Array) -> Any:
        return scan(lambda h, row: (jnp.tanh(row @ w + h @ u), h), x, 8, reverse=reverse)

    assert products(cell, f"{length}, b, 4", "4, 8", "8, 8") == (1, 1)


def test_what_lies_between_the_slice_and_the_product_moves_along() -> None:
    def cell(x: jax.Array, w: jax.Array, v: jax.Array, bias: jax.Array) -> Any:
        return scan(lambda h, row: (h + jax.nn.relu((row * 2 + bias) @ w) @ v, None), x, 6)

    assert products(cell, "t, b, 4", "4, 8", "8, 6", "4") == (2, 0)


def test_a_product_with_what_the_loop_carries_stays() -> None:
    def cell(x: jax.Array, w: jax.Array) -> Any:
        return scan(lambda h, row: ((row * h) @ w, row @ h.T), x, 4)

    assert products(cell, "t, b, 4", "4, 4") == (0, 2)


def test_a_loop_that_looks_at_few_slices_computes_no_others() -> None:
    def first_five(x: jax.Array, w: jax.Array) -> jax.Array:
        def body(i: jax.Array, h: jax.Array) -> jax.Array:
            return h + lax.dynamic_index_in_dim(x, i, keepdims=False) @ w

        return lax.fori_loop(0, 5, body, jnp.zeros((x.shape[1], 4), x.dtype))

    assert products(first_five, "t, b, 4", "4, 4") == (0, 1)


def test_products_that_are_much_larger_than_what_is_scanned_stay() -> None:
    def cell(x: jax.Array, w: jax.Array) -> Any:
        return scan(lambda h, row: (h + (row @ w).sum(-1, keepdims=True), None), x, 1)

    assert products(cell, "t, b, 4", "4, 4096") == (0, 1)


def test_what_is_repeated_a_hundred_times_stays() -> None:
    def cell(x: jax.Array, w: jax.Array) -> Any:
        step = lambda h, row: (h + jnp.broadcast_to(row, (100, 4)) @ w, None)  # noqa: E731
        return lax.scan(step, jnp.zeros((100, 4), x.dtype), x)

    assert products(cell, "t, 4", "4, 4") == (0, 1)
