# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that become one kernel, and the iteration space of that kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import export

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.fusion import is_fusion, kind_of
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import func


def fusions(function: Callable[..., Any], *shapes: str, constraints: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """(kind, iteration space) of every kernel of a float32 function."""
    scope = export.SymbolicScope(constraints)
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), jnp.float32) for s in shapes]
    program = export.export(jax.jit(function))(*specs)
    module = run_pipeline(import_stage(program, "cpu", Options(), None, None, ()), last="fuse").module
    found = []
    for op in module.body.operations:
        if isinstance(op, func.FuncOp) and is_fusion(op):
            result = op.entry_block.operations[len(op.entry_block.operations) - 1].operands[0]
            found.append((kind_of(op), ", ".join(map(str, dims_of(result)))))
    return found


def test_a_softmax_with_a_mask_is_one_kernel() -> None:
    def f(x: jax.Array, mask: jax.Array) -> jax.Array:
        return jax.nn.softmax(x / 8 + mask[:, None, None, :], axis=-1)

    assert fusions(f, "b, 12, s, s", "b, s") == [("row_reduce", "b, 12*s, s")]


def test_sizes_of_one_do_not_split_a_softmax() -> None:
    """The scores of one query a head, as in decoding."""

    def f(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.nn.softmax(x / 8 + jnp.tanh(y), axis=-1)

    assert fusions(f, "b, 12, 1, s", "b, 12, 1, s") == [("row_reduce", "12*b, s")]


def test_a_layer_norm_with_bias_and_residual_is_one_kernel() -> None:
    def f(x: jax.Array, y: jax.Array, bias: jax.Array, scale: jax.Array) -> jax.Array:
        z = x + y + bias
        mean = z.mean(-1, keepdims=True)
        variance = ((z - mean) ** 2).mean(-1, keepdims=True)
        return (z - mean) * jax.lax.rsqrt(variance + 1e-5) * scale

    assert fusions(f, "b, s, 768", "b, s, 768", "768", "768") == [("row_reduce", "b*s, 768")]


def test_elementwise_work_collapses_to_one_axis() -> None:
    assert fusions(lambda x, y: jnp.tanh(x) * y + 1, "b, s, 7", "b, s, 7") == [("loop", "7*b*s")]


def test_a_bias_keeps_the_axis_it_runs_along() -> None:
    assert fusions(lambda x, b: jax.nn.gelu(x + b), "b, s, 64", "64") == [("loop", "b*s, 64")]


def test_equal_symbols_with_swapped_roles_are_not_confused() -> None:
    """x[s, s] + x.T reads the same buffer at two indices; one kernel, but not a collapsed one."""
    assert fusions(lambda x: jnp.exp(x) + jnp.exp(x).T, "s, s")[-1] == ("loop", "s, s")


def test_dots_stay_alone_and_take_the_transpose_behind_them() -> None:
    def f(q: jax.Array, k: jax.Array) -> jax.Array:
        return jnp.einsum("bqhd,bkhd->bqhk", q, k)

    assert fusions(f, "b, s, 4, 16", "b, s, 4, 16") == [("dot", "b, s, 4, s")]


def test_two_consumers_of_one_producer_share_a_kernel() -> None:
    assert len(fusions(lambda x: (jnp.exp(x) + 1, jnp.exp(x) * 2), "n")) == 1


def test_a_cycle_through_a_dot_splits_the_group() -> None:
    """a = exp(x) feeds a dot whose result meets a again: the second add cannot join the first kernel."""

    def f(x: jax.Array, w: jax.Array) -> jax.Array:
        a = jnp.exp(x)
        return jnp.dot(a, w) + a

    assert [kind for kind, _ in fusions(f, "n, 8", "8, 8")] == ["loop", "dot", "epilogue", "gemm"]


def test_a_view_of_a_member_is_not_read_inside_the_same_kernel() -> None:
    def f(x: jax.Array) -> jax.Array:
        y = jnp.exp(x)
        return y + jnp.reshape(jnp.reshape(y, (-1,))[::-1], y.shape)

    assert [kind for kind, _ in fusions(f, "n, 4")] == ["loop", "loop", "loop"]


def test_a_column_reduction_reads_its_producer_in_place() -> None:
    assert fusions(lambda x: jnp.sum(jnp.exp(x) * 2, axis=0), "n, 64") == [("reduce", "64")]


def test_a_mean_divides_by_a_size_that_each_kernel_computes() -> None:
    assert fusions(lambda x: x - x.mean(-1, keepdims=True), "n, d") == [("row_reduce", "n, d")]


def test_a_sum_along_a_size_of_one_is_no_reduction() -> None:
    assert fusions(lambda x: jnp.sum(jnp.exp(x), axis=1), "n, 1, d") == [("loop", "d*n")]


def test_the_gradient_of_a_softmax_is_one_kernel() -> None:
    def f(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.vjp(lambda z: jax.nn.softmax(z, axis=-1), x)[1](y)[0]

    assert fusions(f, "n, d", "n, d") == [("row_reduce", "n, d")]
