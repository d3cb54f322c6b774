# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights of a table of 16 floats (NF4), in the forms in which programs look its elements up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import shlo_disc
import tests.run.test_dequantized_scales as scales
from tests.run.dequantized_programs import (
    Program,
    check,
    check_at_width,
    check_rounded,
    compiled,
    is_fused,
    product,
    random,
)
from tests.run.op_check import run_xla

TABLE = np.float32([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
])  # fmt: skip
"""NF4, of the QLoRA paper."""


def nf4() -> Any:
    return jnp.asarray(TABLE)


def places(k: int, n: int) -> np.ndarray:
    """One in an element of 4 bits."""
    return np.asarray(jnp.asarray(random((k, n), "uint8") % 16, jnp.uint4))


def in_groups(values: Any, s: Any, g: int) -> Any:
    k, n = values.shape
    return (values.reshape(k // g, g, n) * s[:, None]).reshape(k, n)


def by_columns(k: int, n: int, _: int) -> Program:
    return product(lambda q, s: nf4()[q] * s, k), (places(k, n), random((n,), "float32"))


def unscaled(k: int, n: int, _: int) -> Program:
    return product(lambda q: nf4()[q], k), (places(k, n),)


def transposed(k: int, n: int, _: int) -> Program:
    return product(lambda q, s: (nf4()[q] * s[:, None]).T, k), (places(n, k), random((n,), "float32"))


def of_signed(k: int, n: int, _: int) -> Program:
    """Negative ones count from the end, or are the first where 16 is none of the type."""
    q = np.asarray(jnp.asarray((random((k, n), "uint8") % 16).astype("int8") - 8, jnp.int4))
    return product(lambda q, s: nf4()[q] * s, k), (q, random((n,), "float32"))


def of_bytes(k: int, n: int, g: int) -> Program:
    """Bytes past the end of the table are its last place."""
    return product(lambda q, s: in_groups(nf4()[q], s, g), k), (random((k, n), "uint8"), random((k // g, n), "float32"))


def of_signed_bytes(k: int, n: int, g: int) -> Program:
    return product(lambda q, s: in_groups(nf4()[q], s, g), k), (random((k, n), "int8"), random((k // g, n), "float32"))


def taken(k: int, n: int, g: int) -> Program:
    """NaN for places outside of the table, of which there are none."""
    weight = lambda q, s: in_groups(jnp.take(nf4(), q.astype(jnp.int32), axis=0), s, g)  # noqa: E731
    return product(weight, k), (places(k, n), random((k // g, n), "float32"))


def as_qwix(k: int, n: int, g: int) -> Program:
    """As `nf4_to_fp` of qwix looks them up, and `dequantize` scales them."""

    def weight(q: Any, s: Any) -> Any:
        buckets = nf4()
        values = jax.vmap(lambda place: buckets[place])(q.ravel()).reshape(q.shape).astype(s.dtype)
        return in_groups(values, s, g)

    return product(weight, k), (places(k, n), random((k // g, n), "float32"))


def stacked_halves(k: int, n: int, g: int) -> Program:
    weight = lambda q, s: in_groups(nf4()[jnp.stack([q & 15, q >> 4], 1).reshape(k, n)], s, g)  # noqa: E731
    return product(weight, k), (random((k // 2, n), "uint8"), random((k // g, n), "float32"))


def blocks_of_a_flat_weight(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any) -> Any:
        whole = jnp.stack([q & 15, q >> 4], -1).reshape(-1, g).astype(jnp.int32)
        return (nf4()[whole] * s[:, None]).reshape(n, k).T

    return product(weight, k), (random((n * k // 2,), "uint8"), random((n * k // g,), "float32"))


def bitcast_halves(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any) -> Any:
        whole = lax.bitcast_convert_type(q, jnp.uint4).reshape(n, k // g, g)
        return (nf4()[whole] * s[..., None]).reshape(n, k).T

    return product(weight, k), (random((n, k // 2), "uint8"), random((n, k // g), "float32"))


def of_an_argument(k: int, n: int, g: int) -> Program:
    """The table is passed."""
    return product(lambda q, s, t: in_groups(t[q], s, g), k), (places(k, n), random((k // g, n), "float32"), TABLE)


def of_a_longer_table(k: int, n: int, _: int) -> Program:
    table = np.linspace(-2, 2, 19).astype(np.float32)
    return product(lambda q, s: jnp.asarray(table)[q.astype(jnp.int32) + 2] * s, k), (
        places(k, n),
        random((n,), "float32"),
    )


FORMS = (by_columns, unscaled, transposed, of_signed, of_bytes, of_signed_bytes, taken, as_qwix, stacked_halves,
         blocks_of_a_flat_weight, bitcast_halves, of_an_argument, of_a_longer_table)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_tables(form: Callable[..., Program]) -> None:
    for k, n, g in ((16, 1, 16), (64, 48, 32), (384, 257, 128)):
        program = form(k, n, g)
        executable = compiled(program)
        assert is_fused(executable), (k, n)
        check(program, executable, (1, 2, 3, 8, 17, 33, 130) if k == 384 else (1, 5, 33))


@pytest.mark.parametrize("width", [256, 128])
@pytest.mark.parametrize("form", FORMS)
def test_widths_of_registers(form: Callable[..., Program], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_at_width(form(96, 71, 32), width, monkeypatch)


@pytest.mark.parametrize("form", [by_columns, as_qwix, stacked_halves, bitcast_halves])
def test_products_of_bf16(form: Callable[..., Program]) -> None:
    """Elements are rounded, and again when they have been scaled."""
    for k, n, g in ((64, 48, 32), (384, 257, 128)):
        check_rounded(form(k, n, g), (1, 9, 17, 40))


def test_tables_of_bf16_are_rounded_once() -> None:
    def function(x: Any, q: Any) -> Any:
        return jnp.dot(x, nf4().astype(jnp.bfloat16)[q], preferred_element_type=jnp.float32)

    def later(x: Any, q: Any) -> Any:
        return jnp.dot(x, nf4()[q].astype(jnp.bfloat16), preferred_element_type=jnp.float32)

    q = np.arange(16, dtype=np.uint8).repeat(16).reshape(16, 16).T
    q = np.asarray(jnp.asarray(q, jnp.uint4))
    for each in (function, later):
        executable = shlo_disc.compile(each, args=(("m, 16", "bfloat16"), ("16, 16", "uint4")))
        assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
        got = np.asarray(executable(np.eye(16, dtype=ml_dtypes.bfloat16), q))
        wanted = TABLE.astype(ml_dtypes.bfloat16).astype(np.float32)
        np.testing.assert_array_equal(got, np.broadcast_to(wanted, (16, 16)))


def test_experts_and_steps_of_lora() -> None:
    def experts(x: Any, q: Any, s: Any) -> Any:
        return jnp.einsum("ebk,ekn->ebn", x.reshape(3, -1, 40), (nf4()[q] * s).reshape(3, 40, 24))

    def gradient(x: Any, q: Any, s: Any) -> Any:
        weight = nf4()[q[:40]] * s
        return jax.grad(lambda x: jnp.sum(jnp.sin(x @ weight)))(x)

    q, s, x = places(120, 24), random((24,), "float32"), random((6, 40), "float32")
    specs = (("3*m, 40", "float32"), ("120, 24", "uint4"), ("24", "float32"))
    for function, count in ((experts, 1), (gradient, 2)):
        executable = shlo_disc.compile(function, args=specs)
        assert [kernel.name for kernel in executable.kernels].count("dequantized_dot") == count
        np.testing.assert_allclose(executable(x, q, s), run_xla(function, (x, q, s)), rtol=1e-4, atol=1e-3)


def test_tables_with_special_numbers() -> None:
    """Infinities and NaN reach what looks them up."""
    table = TABLE.copy()
    table[3], table[5] = np.inf, np.nan
    function = lambda x, q, t: x @ t[q]  # noqa: E731
    q = places(40, 32)
    executable = shlo_disc.compile(function, args=(("m, 40", "float32"), ("40, 32", "uint4"), ("16", "float32")))
    assert is_fused(executable)
    for m in (1, 5, 40):
        x = np.ones((m, 40), np.float32)
        np.testing.assert_allclose(executable(x, q, table), run_xla(function, (x, q, table)), rtol=1e-5)


def of_256_places(x: Any, q: Any, s: Any) -> Any:
    return x @ (jnp.linspace(-1, 1, 256)[q] * s)


def outside_is_nan(x: Any, q: Any, s: Any) -> Any:
    return x @ (jnp.take(nf4(), q.astype(jnp.int32), axis=0) * s)


def of_two_integers(x: Any, q: Any, s: Any) -> Any:
    return x @ (nf4()[(q & 7) + (q[::-1] & 7)] * s)


def of_other_bits(x: Any, q: Any, s: Any) -> Any:
    return x @ (nf4()[q >> 2] * s)


def of_a_passed_table_from_its_second_place(x: Any, q: Any, s: Any) -> Any:
    return x @ (s[:16][jnp.minimum(q & 15, 14) + 1] * s)


def less_a_zero_point(x: Any, q: Any, s: Any) -> Any:
    return x @ ((nf4()[q & 15] - 0.5) * s)


def of_rows_of_a_table(x: Any, q: Any, s: Any) -> Any:
    return x @ (jnp.outer(nf4(), s)[q[:, 0] & 15])


NEXT = (of_256_places, outside_is_nan, of_two_integers, of_other_bits, of_a_passed_table_from_its_second_place,
        less_a_zero_point, of_rows_of_a_table)  # fmt: skip


@pytest.mark.parametrize("function", NEXT)
def test_programs_next_to_these_stay(function: Callable[..., Any]) -> None:
    given = (random((6, 40), "float32"), random((40, 24), "uint8"), random((24,), "float32"))
    executable = shlo_disc.compile(function, args=(("m, 40", "float32"), ("40, 24", "uint8"), ("24", "float32")))
    assert "dequantized_dot" not in [kernel.name for kernel in executable.kernels]
    np.testing.assert_allclose(executable(*given), run_xla(function, given), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("form", [scales.of_rows, scales.of_blocks, scales.quotients, scales.with_bias, by_columns])
def test_gpus_write_these_weights(form: Callable[..., Program]) -> None:
    """Their products have no kernels for them."""
    program = form(96, 160, 16)
    specs = [(", ".join(map(str, a.shape)), a.dtype.name) for a in program[1]]
    executable = shlo_disc.compile(program[0], args=(("m, 96", "float32"), *specs), target="cuda:sm_90a")
    names = [kernel.name for kernel in executable.kernels]
    assert names[0].startswith("loop_") and names[-1].startswith("product_"), names
