# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products in batches with weights of narrow integers: experts, each of which has a matrix of its own.

Rows lie on both sides of what the runtime decides at: 4 rows by ranges, 32 by registers, 128 of a block; matrices are
one, fewer than threads, and many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.lowering_cpu.backend import CpuBackend
from shlo_disc.lowering_cpu.policy import CPU_POLICY
from tests.run.dequantized_programs import f32, random
from tests.run.op_check import run_xla

ROWS = (1, 2, 5, 33, 130)
Weight = tuple[str, Callable[..., Any], tuple[np.ndarray, ...]]
"""The subscripts by which `jnp.einsum` reads x (e, m, k) and a weight, the weight, and what it is computed of."""

KN, NK = "ebk,ekn->ebn", "ebk,enk->ebn"


def by_columns(e: int, k: int, n: int, _: int) -> Weight:
    return KN, lambda q, s: f32(q) * s[:, None], (random((e, k, n), "int8"), random((e, n), "float32"))


def unscaled(e: int, k: int, n: int, _: int) -> Weight:
    return KN, f32, (random((e, k, n), "int8"),)


def by_matrix(e: int, k: int, n: int, _: int) -> Weight:
    return NK, lambda q, s: f32(q) * s[:, None, None], (random((e, n, k), "uint8"), random((e,), "float32"))


def of_shared_scales(e: int, k: int, n: int, _: int) -> Weight:
    return KN, lambda q, s: f32(q) * s, (random((e, k, n), "int8"), random((n,), "float32"))


def of_shared_zeros(e: int, k: int, n: int, _: int) -> Weight:
    weight = lambda q, z, s: (f32(q) - f32(z)) * s[:, None]  # noqa: E731
    return KN, weight, (random((e, k, n), "uint8"), random((n,), "uint8"), random((e, n), "float32"))


def of_shared_integers(e: int, k: int, n: int, _: int) -> Weight:
    """Scales tell the matrices apart."""
    return KN, lambda q, s: f32(q) * s[:, None], (random((k, n), "int8"), random((e, n), "float32"))


def of_scales_by_expert_last(e: int, k: int, n: int, _: int) -> Weight:
    return KN, lambda q, s: f32(q) * s.T[:, None], (random((e, k, n), "int8"), random((n, e), "float32"))


def in_groups(e: int, k: int, n: int, g: int) -> Weight:
    def weight(q: Any, z: Any, s: Any) -> Any:
        return ((f32(q.reshape(e, k // g, g, n)) - f32(z)[:, :, None]) * s[:, :, None]).reshape(e, k, n)

    groups = (e, k // g, n)
    return KN, weight, (random((e, k, n), "int8"), random(groups, "int8"), random(groups, "float32"))


def in_groups_transposed(e: int, k: int, n: int, g: int) -> Weight:
    def weight(q: Any, z: Any, s: Any) -> Any:
        return ((f32(q.reshape(e, n, k // g, g)) - f32(z)[..., None]) * s[..., None]).reshape(e, n, k)

    groups = (e, n, k // g)
    return NK, weight, (random((e, n, k), "uint8"), random(groups, "uint8"), random(groups, "float32"))


def int4(e: int, k: int, n: int, g: int) -> Weight:
    def weight(q: Any, s: Any) -> Any:
        return (f32(q.reshape(e, k // g, g, n)) * s[:, :, None]).reshape(e, k, n)

    q = (random((e, k, n), "uint8") % 16 - 8).astype("int8")
    return KN, weight, (np.asarray(jnp.asarray(q, jnp.int4)), random((e, k // g, n), "float32"))


def stacked_halves(e: int, k: int, n: int, g: int) -> Weight:
    def weight(q: Any, s: Any) -> Any:
        whole = jnp.stack([q & 15, q >> 4], axis=2).reshape(e, k // g, g, n)
        return ((f32(whole) - 8.0) * s[:, :, None]).reshape(e, k, n)

    return KN, weight, (random((e, k // 2, n), "uint8"), random((e, k // g, n), "float32"))


def bitcast_halves(e: int, k: int, n: int, g: int) -> Weight:
    def weight(q: Any, s: Any) -> Any:
        whole = lax.bitcast_convert_type(q, jnp.int4).reshape(e, n, k // g, g)
        return (f32(whole) * s[..., None]).reshape(e, n, k)

    return NK, weight, (random((e, n, k // 2), "uint8"), random((e, n, k // g), "float32"))


def of_float8(e: int, k: int, n: int, _: int) -> Weight:
    q = random((e, k, n), "float32").astype(ml_dtypes.float8_e4m3fn)
    return KN, lambda q, s: f32(q) * s[:, None], (q, random((e, n), "float32"))


FORMS = (by_columns, unscaled, by_matrix, of_shared_scales, of_shared_zeros, of_shared_integers,
         of_scales_by_expert_last, in_groups, in_groups_transposed, int4, stacked_halves, bitcast_halves,
         of_float8)  # fmt: skip
SHAPES = ((1, 64, 19, 32), (3, 64, 48, 32), (8, 96, 70, 16), (40, 32, 1, 16))
"""Matrices, terms, columns, and terms of a group."""


def compiled(
    how: str,
    weight: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    k: int,
    dtype: Any = np.float32,
    rows: str = "m",
    **options: Any,
) -> Any:
    """The program of a weight, whose x is (e, m, k) of any m."""
    specs = [(", ".join(map(str, a.shape)), a.dtype.name) for a in arrays]
    args = ((f"{jax.eval_shape(weight, *arrays).shape[0]}, {rows}, {k}", np.dtype(dtype).name), *specs)
    function = lambda x, *arrays: jnp.einsum(how, x, weight(*arrays))  # noqa: E731
    return shlo_disc.compile(function, args=args, options=shlo_disc.Options(**options))


def is_fused(executable: Any) -> bool:
    return "dequantized_dot" in [kernel.name for kernel in executable.kernels]


def check(form: Weight, k: int, executable: Any, rows: Sequence[int], dtype: Any = np.float32) -> None:
    """Each matrix by sums in f64 of the same weights, and the first number of rows by XLA as well."""
    how, weight, arrays = form
    wanted = np.asarray(weight(*map(jnp.asarray, arrays))).astype(np.float64)
    wanted = wanted if how == KN else wanted.transpose(0, 2, 1)
    for m in rows:
        x = np.random.default_rng(m).standard_normal((len(wanted), m, k)).astype(dtype)
        exact, scale = (f(x.astype(np.float64)) @ f(wanted) for f in (np.asarray, np.abs))
        limit = 4 * np.sqrt(k + 1) * 2.0**-23 * scale + 1e-30
        limit = limit + (2.0**-8 * np.abs(exact) if np.dtype(dtype).itemsize == 2 else 0)
        results = [executable(x, *arrays)]
        if m == rows[0]:
            results.append(run_xla(lambda x, *a: jnp.einsum(how, x, weight(*a)), (x, *arrays)))
        for got in map(np.asarray, results):
            assert got.dtype == dtype and got.shape == exact.shape
            assert (np.abs(got.astype(np.float64) - exact) <= limit).all(), (m, got.shape)


@pytest.mark.parametrize("form", FORMS)
def test_experts(form: Callable[..., Weight]) -> None:
    for e, k, n, g in SHAPES:
        found = form(e, k, n, g)
        executable = compiled(*found, k)
        assert is_fused(executable), (e, k, n)
        check(found, k, executable, ROWS if e == 3 else (1, 5, 33))


@pytest.mark.parametrize("width", [256, 128])
@pytest.mark.parametrize("form", [by_columns, in_groups_transposed, stacked_halves])
def test_widths_of_registers(form: Callable[..., Weight], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 128 bits, the runtime has no kernels for them."""
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, vector_bits=width))
    found = form(3, 96, 71, 32)
    check(found, 96, compiled(*found, 96), (1, 4, 7, 40))


@pytest.mark.parametrize("form", [by_columns, in_groups_transposed, stacked_halves, of_float8])
def test_experts_in_bf16(form: Callable[..., Weight]) -> None:
    """Weights are rounded to bf16, as the program says."""
    for e, k, n, g in SHAPES[1:3]:
        how, weight, arrays = form(e, k, n, g)
        rounded = lambda *arrays, weight=weight: weight(*arrays).astype(jnp.bfloat16)  # noqa: E731
        found = (how, rounded, arrays)
        executable = compiled(*found, k, dtype=jnp.bfloat16)
        assert is_fused(executable), (e, k, n)
        check(found, k, executable, (1, 9, 17, 130), ml_dtypes.bfloat16)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("form", [by_columns, in_groups_transposed])
def test_long_weights(form: Callable[..., Weight], threads: int) -> None:
    """Rows by ranges, more columns than an item has, and few matrices of many columns."""
    for e, k, n, g in ((2, 1040, 130, 16), (3, 520, 70, 40), (2, 32, 4500, 16)):
        found = form(e, k, n, g)
        check(found, k, compiled(*found, k, threads=threads), (1, 4, 6, 40))


@pytest.mark.parametrize("form", [by_columns, in_groups, in_groups_transposed])
def test_any_number_of_threads_adds_alike(form: Callable[..., Weight]) -> None:
    how, weight, arrays = form(3, 2080, 130, 32)
    x = random((3, 3, 2080), "float32")
    one, *others = (np.asarray(compiled(how, weight, arrays, 2080, threads=t)(x, *arrays)) for t in (1, 2, 3, 16))
    for other in others:
        np.testing.assert_array_equal(other, one)


def test_overflow_is_as_written() -> None:
    """Products with integers overflow where those with weights do not."""
    how, weight, (q, s) = by_columns(3, 64, 48, 64)
    s = (s * np.float32(1e-3)).astype(np.float32)
    executable = compiled(how, weight, (q, s), 64)
    x = np.full((3, 2, 64), 1e37, np.float32) * np.linspace(0.1, 1.0, 64, dtype=np.float32)
    x[1, 1, 3] = np.inf
    got, expected = (
        np.asarray(f(x, q, s)) for f in (executable, jax.jit(lambda x, *a: jnp.einsum(how, x, weight(*a))))
    )
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_allclose(got[np.isfinite(expected)], expected[np.isfinite(expected)], rtol=1e-4)
    assert np.isfinite(expected[[0, 2]]).all()


def test_no_rows() -> None:
    how, weight, arrays = in_groups(3, 64, 48, 32)
    executable = compiled(how, weight, arrays, 64, rows="m - 1")
    assert np.asarray(executable(np.zeros((3, 0, 64), np.float32), *arrays)).shape == (3, 0, 48)


def test_no_weight_in_floats() -> None:
    how, weight, arrays = in_groups(4, 256, 256, 32)
    executable = compiled(how, weight, arrays, 256)
    assert executable.memory(m=1).arena_bytes < 4 * 256 * 256
    assert executable.cost_analysis(m=3)["flops"] == 2 * 3 * 4 * 256 * 256


def test_other_orders_of_axes() -> None:
    """Batches that are not the first axes, two of them, a weight on the left, and `vmap`."""

    def tokens_first(x: Any, q: Any, s: Any) -> Any:
        return jnp.einsum("bek,ekn->ben", x, f32(q) * s[:, None])

    def on_the_left(x: Any, q: Any, s: Any) -> Any:
        return lax.dot_general(f32(q) * s[:, None], x, (((1,), (2,)), ((0,), (1,))))

    def mapped(x: Any, q: Any, s: Any) -> Any:
        return jax.vmap(lambda x, q, s: x @ (f32(q) * s), in_axes=(1, 0, 0), out_axes=1)(x, q, s)

    def of_two(x: Any, q: Any, s: Any) -> Any:
        weight = (f32(q) * s[:, None]).reshape(2, 3, 40, 24)
        return jnp.einsum("bcek,cekn->bcen", x.reshape(-1, 2, 3, 40), weight)

    given = (random((7, 6, 40), "float32"), random((6, 40, 24), "int8"), random((6, 24), "float32"))
    specs = (("m, 6, 40", "float32"), ("6, 40, 24", "int8"), ("6, 24", "float32"))
    for function in (tokens_first, on_the_left, mapped, of_two):
        executable = shlo_disc.compile(function, args=specs)
        assert is_fused(executable), function
        np.testing.assert_allclose(executable(*given), run_xla(function, given), rtol=1e-4, atol=1e-2)


def test_programs_next_to_these_stay() -> None:
    """Matrices at two distances, rows of all matrices side by side, and a scale for each element."""

    def at_two_distances(x: Any, q: Any, s: Any) -> Any:
        weight = jnp.broadcast_to((f32(q[:2]) * s[:2, None])[:, None], (2, 3, 40, 24))
        return jnp.einsum("bcek,cekn->bcen", x.reshape(-1, 2, 3, 40), weight)

    def side_by_side(x: Any, q: Any, s: Any) -> Any:
        return jnp.einsum("bek,ekn->ben", x, jnp.swapaxes(f32(q.reshape(40, 6, 24)), 0, 1) * s[:, None])

    def of_each_element(x: Any, q: Any, s: Any) -> Any:
        return jnp.einsum("bek,ekn->ben", x, f32(q) * s[:, None] * jnp.arange(40.0)[:, None])

    given = (random((7, 6, 40), "float32"), random((6, 40, 24), "int8"), random((6, 24), "float32"))
    specs = (("m, 6, 40", "float32"), ("6, 40, 24", "int8"), ("6, 24", "float32"))
    for function in (at_two_distances, side_by_side, of_each_element):
        executable = shlo_disc.compile(function, args=specs)
        assert not is_fused(executable), function
        np.testing.assert_allclose(executable(*given), run_xla(function, given), rtol=1e-4, atol=1e-2)
