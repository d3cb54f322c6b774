# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that become an attention, and the proofs about their masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.fusion import Attention, fusion_of, is_fusion, kind_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.utils.regions import entry_block

NEVER = np.float32(-np.inf)


def fused(
    function: Callable[..., Any], *shapes: str, dtype: Any = jnp.float32
) -> tuple[list[str], list[tuple[str, int]]]:
    """The kinds of the kernels that are called, and the causal masks that were proved: offset and magnitude."""
    scope = export.SymbolicScope()
    with jax.enable_x64(True):
        specs = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), dtype) for s in shapes]
        program = export.export(jax.jit(function))(*specs)
        module = run_pipeline(import_stage(program, "cpu", Options(), None, None, ()), last="fuse").module
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    calls = [op for op in entry_block(module).operations if op.operation.name == "func.call"]
    kinds = [kind_of(functions[ir.FlatSymbolRefAttr(c.attributes["callee"]).value]) for c in calls]
    fusions = [fusion_of(f) for f in functions.values() if is_fusion(f)]
    masks = [f.problem.causal for f in fusions if isinstance(f, Attention) and f.problem and f.problem.causal]
    return kinds, [(str(m.offset), m.magnitude) for m in masks]


def attend(mask: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]) -> Callable[..., jax.Array]:
    """Attention whose scores `mask(scores, row, column)` changes."""

    def f(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        scores = jnp.einsum("bqd,bkd->bqk", query, key) * query.dtype.type(0.125)
        row, column = jnp.arange(scores.shape[1])[:, None], jnp.arange(scores.shape[2])[None, :]
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(mask(scores, row, column), axis=-1), value)

    return f


SHAPES = ("b, q, 64", "b, k, 64", "b, k, 64")

PROVED = {
    "adds": (lambda s, r, c: s + jnp.where(c <= r, np.float32(0), np.float32(-1e9)), 0, 100_000_000),
    "adds less": (lambda s, r, c: s + jnp.where(c <= r, np.float32(0), np.float32(-1e4)), 0, 1_000),
    "selects": (lambda s, r, c: jnp.where(c <= r, s, NEVER), 0, 100_000_000),
    "selects the others": (lambda s, r, c: jnp.where(c > r, NEVER, s), 0, 100_000_000),
    "sees more": (lambda s, r, c: jnp.where(c <= r + 5, s, NEVER), 5, 100_000_000),
    "sees more, strictly": (lambda s, r, c: jnp.where(c - 5 < r, s, NEVER), 4, 100_000_000),
    "from the other side": (lambda s, r, c: jnp.where(r >= c, s, NEVER), 0, 100_000_000),
}


@pytest.mark.parametrize("name", PROVED)
def test_causal_masks_are_recognised(name: str) -> None:
    mask, offset, magnitude = PROVED[name]
    assert fused(attend(mask), *SHAPES) == (["attention"], [(str(offset), magnitude)])


def test_a_causal_mask_of_double_precision() -> None:
    assert fused(attend(lambda s, r, c: jnp.where(c <= r, s, -jnp.inf)), *SHAPES, dtype=jnp.float64)[1]


NOT_PROVED = {
    "no mask": lambda s, r, c: s,
    "hides too little": lambda s, r, c: s + jnp.where(c <= r, np.float32(0), np.float32(-50)),
    "hides the column itself": lambda s, r, c: jnp.where(c < r, s, NEVER),
    "hides earlier columns": lambda s, r, c: jnp.where(c >= r, s, NEVER),
    "a window": lambda s, r, c: jnp.where((c <= r) & (c > r - 8), s, NEVER),
    "two masks": lambda s, r, c: jnp.where(c <= r, s, jnp.where(c <= r + 2, s - 1, NEVER)),
    "steeper": lambda s, r, c: jnp.where(c <= 2 * r, s, NEVER),
    "hides one column": lambda s, r, c: jnp.where(c == r, NEVER, s),
    "lifts hidden columns": lambda s, r, c: jnp.where(c <= r, s, np.float32(1e9)),
}


@pytest.mark.parametrize("name", NOT_PROVED)
def test_other_masks_are_not(name: str) -> None:
    kinds, masks = fused(attend(NOT_PROVED[name]), *SHAPES)
    assert kinds[-1] == "attention" and masks == []


def test_a_bias_from_memory_may_undo_a_mask() -> None:
    def f(query: jax.Array, key: jax.Array, value: jax.Array, bias: jax.Array) -> jax.Array:
        return attend(lambda s, r, c: jnp.where(c <= r, s, np.float32(-1e9)) + bias)(query, key, value)

    assert fused(f, *SHAPES, "q, k") == (["attention"], [])


def test_a_mask_that_is_read_elsewhere_too_stays() -> None:
    def f(query: jax.Array, key: jax.Array, value: jax.Array) -> Any:
        place = jnp.arange(query.shape[1])
        bias = jnp.where(place[None, :] <= place[:, None], np.float32(0), NEVER)
        return attend(lambda s, r, c: s + bias)(query, key, value), bias

    kinds, masks = fused(f, "b, s, 64", "b, s, 64", "b, s, 64")
    assert "attention" in kinds and "loop" in kinds and masks == [("0", 100_000_000)]


def test_an_attention_in_a_loop() -> None:
    def f(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 3, lambda _, x: attend(lambda s, r, c: s)(x, key, value), query)

    scope = export.SymbolicScope()
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape("b, s, 8", scope=scope), jnp.float32)] * 3
    program = export.export(jax.jit(f))(*specs)
    module = run_pipeline(import_stage(program, "cpu", Options(), None, None, ()), last="fuse").module
    assert "call @attention_0" in str(module)
