# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with pairs of integers of 4 bits that are columns of the weight, as they are in the gradient where they are
rows in the product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.run.dequantized_programs import (
    Program,
    check,
    check_at_width,
    check_rounded,
    compiled,
    f32,
    is_fused,
    product,
    random,
)
from tests.run.op_check import run_xla
from tests.run.test_dequantized_tables import nf4


def halves(q: Any, axis: int) -> Any:
    """Both integers of each byte, along a further axis."""
    return jnp.stack([q & 15, q >> 4], axis)


def neighbours(k: int, n: int, g: int) -> Program:
    weight = lambda q, s: (f32(halves(q, 2).reshape(k // g, g, n)) * s[:, None]).reshape(k, n)  # noqa: E731
    return product(weight, k), (random((k, n // 2), "uint8"), random((k // g, n), "float32"))


def halves_behind(k: int, n: int, g: int) -> Program:
    def weight(q: Any, z: Any, s: Any) -> Any:
        whole = jnp.concatenate([q & 15, q >> 4], 1).reshape(k // g, g, n)
        return ((f32(whole) - f32(z)[:, None]) * s[:, None]).reshape(k, n)

    groups = (k // g, n)
    return product(weight, k), (random((k, n // 2), "uint8"), random(groups, "uint8"), random(groups, "float32"))


def by_one(k: int, n: int, _: int) -> Program:
    return product(lambda q: (f32(halves(q, 2).reshape(k, n)) - 8) * 0.125, k), (random((k, n // 2), "uint8"),)


def turned_neighbours(k: int, n: int, g: int) -> Program:
    weight = lambda q, s: (f32(halves(q, 1).reshape(n // g, g, k)) * s[:, None]).reshape(n, k).T  # noqa: E731
    return product(weight, k), (random((n // 2, k), "uint8"), random((n // g, k), "float32"))


def turned_halves_behind(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any) -> Any:
        return (f32(jnp.concatenate([q & 15, q >> 4]).reshape(n // g, g, k)) * s[:, None]).reshape(n, k).T

    return product(weight, k), (random((n // 2, k), "uint8"), random((n // g, k), "float32"))


def of_signed_groups_of_columns(k: int, n: int, g: int) -> Program:
    def weight(q: Any, z: Any, s: Any) -> Any:
        whole = lax.bitcast_convert_type(q, jnp.int4).reshape(k, n // g, g)
        return ((f32(whole) - f32(z)[..., None]) * s[..., None]).reshape(k, n)

    groups = (k, n // g)
    return product(weight, k), (random((k, n // 2), "uint8"), random(groups, "int8"), random(groups, "float32"))


def of_rows(k: int, n: int, _: int) -> Program:
    weight = lambda q, s: f32(halves(q, 1).reshape(n, k)).T * s[:, None]  # noqa: E731
    return product(weight, k), (random((n // 2, k), "uint8"), random((k,), "float32"))


def of_a_table(k: int, n: int, g: int) -> Program:
    weight = lambda q, s: (nf4()[halves(q, 2).reshape(k, n // g, g)] * s[..., None]).reshape(k, n)  # noqa: E731
    return product(weight, k), (random((k, n // 2), "uint8"), random((k, n // g), "float32"))


FORMS = (neighbours, halves_behind, by_one, turned_neighbours, turned_halves_behind, of_signed_groups_of_columns,
         of_rows, of_a_table)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_pairs_of_columns(form: Callable[..., Program]) -> None:
    for k, n, g in ((32, 32, 16), (96, 160, 16), (416, 544, 16)):
        program = form(k, n, g)
        executable = compiled(program)
        assert is_fused(executable), (k, n)
        check(program, executable, (1, 3, 17, 33, 130) if k == 416 else (1, 5, 40))


@pytest.mark.parametrize("form", [by_one, of_rows])
def test_other_sizes(form: Callable[..., Program]) -> None:
    for k, n in ((2, 2), (1, 6), (37, 18), (257, 66), (1100, 14)):
        program = form(k, n, k)
        check(program, compiled(program), (1, 4, 33))


@pytest.mark.parametrize("width", [256, 128])
@pytest.mark.parametrize("form", FORMS)
def test_widths_of_registers(form: Callable[..., Program], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_at_width(form(96, 160, 16), width, monkeypatch)


@pytest.mark.parametrize("form", [neighbours, turned_neighbours, turned_halves_behind, of_a_table])
def test_weights_of_bf16(form: Callable[..., Program]) -> None:
    for k, n, g in ((96, 160, 16), (417 if form is of_a_table else 416, 544, 16)):
        check_rounded(form(k, n, g), (1, 9, 17, 130))


@pytest.mark.parametrize("is_table", [False, True])
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_step_of_lora(is_table: bool, is_turned: bool) -> None:
    """The product and its gradient read the same pairs."""
    k, n, g = 64, 96, 16

    def weight(q: Any, s: Any) -> Any:
        whole = halves(q, 1 if not is_turned else 2).reshape((k, n) if not is_turned else (n, k))
        values = nf4()[whole] if is_table else f32(whole) - 8.0
        if is_turned:
            return (values.reshape(n, k // g, g) * s[..., None]).reshape(n, k).T
        return (values.reshape(k // g, g, n) * s[:, None]).reshape(k, n)

    def step(x: Any, q: Any, s: Any, a: Any, b: Any) -> Any:
        def loss(x: Any, a: Any, b: Any) -> Any:
            return jnp.sum(jnp.tanh(x @ weight(q, s) + (x @ a) @ b))

        return jax.value_and_grad(loss, (0, 1, 2))(x, a, b)

    arrays = (
        random((n, k // 2) if is_turned else (k // 2, n), "uint8"),
        random((n, k // g) if is_turned else (k // g, n), "float32") / 100,
        random((k, 4), "float32") / 100,
        random((4, n), "float32"),
    )
    specs = [(", ".join(map(str, a.shape)), a.dtype.name) for a in arrays]
    executable = shlo_disc.compile(step, args=((f"m, {k}", "float32"), *specs))
    assert [kernel.name for kernel in executable.kernels].count("dequantized_dot") == 2
    for m in (1, 6, 40):
        given = (random((m, k), "float32") - 1, *arrays)
        wanted = jax.tree.leaves(run_xla(step, given))
        for got, want in zip(jax.tree.leaves(executable(*given)), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def groups_that_cut_pairs(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(halves(q, 2).reshape(40, 2, 27)) * jnp.stack([s, 2 * s], 1)[..., None]).reshape(40, 54)


def high_halves_first(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(jnp.stack([q >> 4, q & 15], 2).reshape(40, 54)) * s[:, None])


def of_three(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(jnp.stack([q & 15, q >> 4, q & 15], 2).reshape(40, 81)) * s[:, None])


@pytest.mark.parametrize("function", [groups_that_cut_pairs, high_halves_first, of_three])
def test_programs_next_to_these_stay(function: Callable[..., Any]) -> None:
    given = (random((6, 40), "float32"), random((40, 27), "uint8"), random((40,), "float32"))
    executable = shlo_disc.compile(function, args=(("m, 40", "float32"), ("40, 27", "uint8"), ("40", "float32")))
    assert "dequantized_dot" not in [kernel.name for kernel in executable.kernels]
    np.testing.assert_allclose(executable(*given), run_xla(function, given), rtol=1e-4, atol=1e-3)
