# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of narrow integers that a product and an embedding share: neither needs all of them as floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from tests.run.dequantized_programs import f32, random
from tests.run.op_check import run_xla
from tests.run.test_dequantized_tables import nf4

ENTRIES, WIDTH, GROUP = 96, 32, 16
Arrays = tuple[np.ndarray, ...]


def by_rows() -> tuple[Callable[..., Any], Arrays]:
    arrays = random((ENTRIES, WIDTH), "int8"), random((ENTRIES,), "float32")
    return lambda q, s: f32(q) * s[:, None], arrays


def by_columns() -> tuple[Callable[..., Any], Arrays]:
    return lambda q, s: f32(q) * s, (random((ENTRIES, WIDTH), "int8"), random((WIDTH,), "float32"))


def by_one_less_a_zero_point() -> tuple[Callable[..., Any], Arrays]:
    return lambda q, z: (f32(q) - f32(z)) * 0.125, (random((ENTRIES, WIDTH), "uint8"), random((1, WIDTH), "uint8"))


def in_groups() -> tuple[Callable[..., Any], Arrays]:
    def weight(q: Any, s: Any) -> Any:
        return (f32(q).reshape(ENTRIES, -1, GROUP) * s[..., None]).reshape(ENTRIES, WIDTH)

    return weight, (random((ENTRIES, WIDTH), "int8"), random((ENTRIES, WIDTH // GROUP), "float32"))


def of_pairs() -> tuple[Callable[..., Any], Arrays]:
    def weight(q: Any, s: Any) -> Any:
        whole = f32(jnp.stack([q & 15, q >> 4], -1).reshape(ENTRIES, -1, GROUP)) - 8
        return (whole * s[..., None]).reshape(ENTRIES, WIDTH)

    return weight, (random((ENTRIES, WIDTH // 2), "uint8"), random((ENTRIES, WIDTH // GROUP), "float32"))


def biased() -> tuple[Callable[..., Any], Arrays]:
    scales, biases = random((ENTRIES,), "float32"), random((ENTRIES,), "float32", 1)
    return lambda q, s, b: f32(q) * s[:, None] + b[:, None], (random((ENTRIES, WIDTH), "int8"), scales, biases)


FORMS = (by_rows, by_columns, by_one_less_a_zero_point, in_groups, of_pairs, biased)


def clipped(w: Any, ids: Any) -> Any:
    return jnp.take(w, ids, axis=0, mode="clip")


def filled(w: Any, ids: Any) -> Any:
    return jnp.nan_to_num(jnp.take(w, ids, axis=0), nan=-7.0)


def indexed(w: Any, ids: Any) -> Any:
    return w[ids]


def compiled(function: Callable[..., Any], ids: str, arrays: Arrays) -> Any:
    specs = [(", ".join(map(str, a.shape)), a.dtype.name) for a in arrays]
    return shlo_disc.compile(function, args=((ids, "int32"), *specs))


@pytest.mark.parametrize("take", [indexed, clipped, filled])
@pytest.mark.parametrize("form", FORMS)
def test_tied_embeddings(form: Callable[[], tuple[Callable[..., Any], Arrays]], take: Callable[..., Any]) -> None:
    weight, arrays = form()

    def function(ids: Any, *arrays: Any) -> Any:
        w = weight(*arrays)
        rows = take(w, ids)
        return rows, jnp.tanh(rows) @ w.T

    for spec, shapes in (("m", ((1,), (5,), (40,))), ("b, m", ((2, 3), (1, 1)))):
        executable = compiled(function, spec, arrays)
        assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
        for shape in shapes:
            ids = np.random.default_rng(len(shape)).integers(-ENTRIES - 3, ENTRIES + 3, shape).astype(np.int32)
            got, want = executable(ids, *arrays), run_xla(function, (ids, *arrays))
            np.testing.assert_allclose(got[0], want[0], rtol=1e-6, atol=1e-5)
            np.testing.assert_allclose(got[1], want[1], rtol=1e-4, atol=1e-4 * np.abs(want[1]).max())


def test_no_weight_in_floats() -> None:
    weight, _ = in_groups()
    arrays = random((ENTRIES, WIDTH), "int8"), random((ENTRIES, WIDTH // GROUP), "float32")
    executable = compiled(lambda ids, *a: weight(*a)[ids] @ weight(*a).T, "m", arrays)
    assert executable.memory(m=1).arena_bytes < ENTRIES * WIDTH


def one_row(ids: Any, q: Any, s: Any) -> Any:
    w = f32(q) * s[:, None]
    return jnp.take(w, ids[0], axis=0, mode="clip") @ w.T


def columns(ids: Any, q: Any, s: Any) -> Any:
    w = f32(q) * s[:, None]
    return w[:8] @ w.T, w[:, ids]


def parts_of_rows(ids: Any, q: Any, s: Any) -> Any:
    w = f32(q) * s[:, None]
    return jnp.ones((4, WIDTH)) @ w.T, jnp.take(w[:, :8], ids, axis=0)


def of_a_table(ids: Any, q: Any, s: Any) -> Any:
    w = nf4()[q & 15] * s[:, None]
    return w[ids] @ w.T


def rows_and_all(ids: Any, q: Any, s: Any) -> Any:
    w = f32(q) * s[:, None]
    return w[ids] @ w.T, jnp.sum(w)


@pytest.mark.parametrize(
    ("function", "is_fused"),
    [(one_row, True), (columns, False), (parts_of_rows, False), (of_a_table, False), (rows_and_all, False)],
)
def test_programs_next_to_these(function: Callable[..., Any], is_fused: bool) -> None:
    arrays = random((ENTRIES, WIDTH), "int8"), random((ENTRIES,), "float32")
    executable = compiled(function, "m", arrays)
    assert ("dequantized_dot" in [kernel.name for kernel in executable.kernels]) == is_fused
    ids = np.asarray([3, 0, 7, 31], np.int32)
    got, want = executable(ids, *arrays), run_xla(function, (ids, *arrays))
    for each, wanted in zip(*(x if isinstance(x, tuple | list) else (x,) for x in (got, want)), strict=True):
        np.testing.assert_allclose(each, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
