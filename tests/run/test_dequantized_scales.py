# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with narrow integers whose scales belong to rows or to blocks, divide, or are followed by a bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import shlo_disc
from tests.run.dequantized_programs import (
    Program,
    check,
    check_at_width,
    check_rounded,
    compiled,
    f32,
    product,
    random,
)
from tests.run.op_check import run_xla


def of_rows(k: int, n: int, _: int) -> Program:
    return product(lambda q, s: f32(q) * s[:, None], k), (random((k, n), "int8"), random((k,), "float32"))


def of_rows_transposed(k: int, n: int, _: int) -> Program:
    return product(lambda q, s: (f32(q) * s).T, k), (random((n, k), "uint8"), random((k,), "float32"))


def zeros_of_rows(k: int, n: int, _: int) -> Program:
    weight = lambda q, z, s: (f32(q) - f32(z)[:, None]) * s  # noqa: E731
    return product(weight, k), (random((k, n), "uint8"), random((k,), "uint8"), random((), "float32"))


def of_floats_of_8_bits(k: int, n: int, _: int) -> Program:
    q = random((k, n), "float32").astype(ml_dtypes.float8_e4m3fn)
    return product(lambda q, s: f32(q) * s[:, None], k), (q, random((k,), "float32"))


def of_groups_of_columns(k: int, n: int, g: int) -> Program:
    def weight(q: Any, z: Any, s: Any) -> Any:
        return ((f32(q).reshape(k, n // g, g) - f32(z)[..., None]) * s[..., None]).reshape(k, n)

    return product(weight, k), (random((k, n), "uint8"), random((k, n // g), "uint8"), random((k, n // g), "float32"))


def of_groups_of_columns_transposed(k: int, n: int, g: int) -> Program:
    """As the gradient reads a weight with scales for groups of rows."""

    def weight(q: Any, s: Any) -> Any:
        return (f32(q).reshape(n // g, g, k) * s[:, None]).reshape(n, k).T

    return product(weight, k), (random((n, k), "int8"), random((n // g, k), "float32"))


def of_blocks(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any) -> Any:
        return (f32(q).reshape(k // g, g, n // g, g) * s[:, None, :, None]).reshape(k, n)

    return product(weight, k), (random((k, n), "int8"), random((k // g, n // g), "float32"))


def of_blocks_transposed(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any) -> Any:
        return (f32(q).reshape(n // g, g, k // g, g) * s[:, None, :, None]).reshape(n, k).T

    q = random((n, k), "float32").astype(ml_dtypes.float8_e4m3fn)
    return product(weight, k), (q, random((n // g, k // g), "float32"))


def quotients(k: int, n: int, _: int) -> Program:
    return product(lambda q, s: f32(q) / s, k), (random((k, n), "int8"), random((n,), "float32"))


def quotients_of_one(k: int, n: int, _: int) -> Program:
    return product(lambda q: f32(q) / 127, k), (random((k, n), "int8"),)


def quotients_in_groups(k: int, n: int, g: int) -> Program:
    def weight(q: Any, z: Any, s: Any) -> Any:
        return ((f32(q).reshape(n, k // g, g) - f32(z)[..., None]) / s[..., None]).reshape(n, k).T

    return product(weight, k), (random((n, k), "int8"), random((n, k // g), "int8"), random((n, k // g), "float32"))


def with_bias(k: int, n: int, _: int) -> Program:
    weight = lambda q, s, b: f32(q) * s + b  # noqa: E731
    return product(weight, k), (random((k, n), "int8"), random((n,), "float32"), -random((n,), "float32", 1))


def less_a_bias(k: int, n: int, _: int) -> Program:
    weight = lambda q, s, b: f32(q) * s[:, None] - b[:, None]  # noqa: E731
    return product(weight, k), (random((k, n), "uint8"), random((k,), "float32"), random((k,), "float32", 1))


def less_one_number(k: int, n: int, _: int) -> Program:
    return product(lambda q, s: f32(q) * s - 1.5, k), (random((k, n), "int8"), random((n,), "float32"))


def with_bias_in_groups(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any, b: Any) -> Any:
        return (f32(q).reshape(n, k // g, g) * s[..., None] + b[..., None]).reshape(n, k).T

    scales = random((n, k // g), "float32")
    return product(weight, k), (random((n, k), "uint8"), scales, -8 * scales)


def with_bias_of_pairs(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any, b: Any) -> Any:
        whole = jnp.stack([q & 15, q >> 4], axis=1).reshape(k // g, g, n)
        return (f32(whole) * s[:, None] + b[:, None]).reshape(k, n)

    scales = random((k // g, n), "float32")
    return product(weight, k), (random((k // 2, n), "uint8"), scales, -8 * scales)


FORMS = (of_rows, of_rows_transposed, zeros_of_rows, of_floats_of_8_bits, of_groups_of_columns,
         of_groups_of_columns_transposed, of_blocks, of_blocks_transposed, quotients, quotients_of_one,
         quotients_in_groups, with_bias, less_a_bias, less_one_number, with_bias_in_groups,
         with_bias_of_pairs)  # fmt: skip
SIZES = ((16, 16, 16), (96, 80, 16), (416, 272, 16))


@pytest.mark.parametrize("form", FORMS)
def test_scales(form: Callable[..., Program]) -> None:
    for k, n, g in SIZES:
        program = form(k, n, g)
        executable = compiled(program)
        assert "dequantized_dot" in [kernel.name for kernel in executable.kernels], (k, n)
        check(program, executable, (1, 3, 17, 33, 130) if k == 416 else (1, 5, 40))


@pytest.mark.parametrize("form", [of_rows, of_rows_transposed, zeros_of_rows, quotients, with_bias])
def test_other_sizes(form: Callable[..., Program]) -> None:
    for k, n in ((2, 1), (1, 7), (37, 19), (257, 65), (1100, 15)):
        program = form(k, n, k)
        check(program, compiled(program), (1, 4, 33))


@pytest.mark.parametrize("width", [256, 128])
@pytest.mark.parametrize("form", FORMS)
def test_widths_of_registers(form: Callable[..., Program], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_at_width(form(96, 80, 16), width, monkeypatch)


@pytest.mark.parametrize("form", [of_rows, of_rows_transposed, of_groups_of_columns, of_blocks_transposed, quotients])
def test_weights_of_bf16(form: Callable[..., Program]) -> None:
    """They are rounded as the program says."""
    for k, n, g in SIZES[1:]:
        check_rounded(form(k, n, g), (1, 9, 17, 33, 130))


def test_quotients_of_bf16_are_those_of_the_program() -> None:
    """All integers, and scales with all significands: one term a sum."""
    scales = np.arange(0x3F80, 0x4000, dtype=np.uint16).view(ml_dtypes.bfloat16)
    q = np.broadcast_to(np.arange(-128, 128, dtype=np.int8)[:, None], (256, 128)).copy()

    def function(x: Any, q: Any, s: Any) -> Any:
        return x @ (q.astype(jnp.bfloat16) / s)

    args = (("m, 256", "bfloat16"), ("256, 128", "int8"), ("128", "bfloat16"))
    executable = shlo_disc.compile(function, args=args)
    assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
    wanted = (q.astype(np.float32) / scales.astype(np.float32)).astype(ml_dtypes.bfloat16)
    x = np.eye(256, dtype=ml_dtypes.bfloat16)
    np.testing.assert_array_equal(executable(x, q, scales), wanted)
    np.testing.assert_array_equal(executable(x[:5], q, scales), wanted[:5])


@pytest.mark.parametrize("m", [1, 7, 40])
def test_divisors_without_a_normal_reciprocal(m: int) -> None:
    """Zeros, infinities, NaN, numbers whose reciprocals overflow, and such as have denormal ones."""
    s = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, 3, 2.0**-149, -(2.0**-130), 3e38, 2.0**127, 2.0**-126])
    function = lambda x, q, s: x @ (f32(q) / s)  # noqa: E731
    args = (("m, 16", "float32"), ("16, 12", "int8"), ("12", "float32"))
    executable = shlo_disc.compile(function, args=args)
    assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
    q = random((16, 12), "int8")
    q[3], q[:, 7:9] = 0, 0
    x = np.ones((m, 16), np.float32)
    for scales in (s, s[:7].repeat(2)[:12]):
        with np.errstate(all="ignore"):  # XLA takes denormal numbers for 0
            wanted = x @ (q.astype(np.float32) / scales)
        got = np.asarray(executable(x, q, scales))
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=0)


@pytest.mark.parametrize("form", [of_rows, of_rows_transposed, quotients_in_groups, with_bias_in_groups])
def test_overflow_is_as_written(form: Callable[..., Program]) -> None:
    function, (q, *others) = form(64, 48, 16)
    factor = np.float32(1e3 if form is quotients_in_groups else 1e-3)
    arrays = (q, *(a * factor if a.dtype == np.float32 else a for a in others))
    executable = compiled((function, arrays))
    for m in (1, 3, 17, 40):
        x = np.full((m, 64), 1e36, np.float32) * np.linspace(0.1, 1.0, 64, dtype=np.float32)
        x[m - 1, 3], x[m // 2, 7] = np.inf, np.nan if m > 3 else 1e36
        got, expected = np.asarray(executable(x, *arrays)), np.asarray(run_xla(function, (x, *arrays)))
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(expected))


def both_ways(x: Any, q: Any, s: Any) -> Any:
    weight = f32(q) * s
    return (x @ weight) @ weight.T


def of_gradient(x: Any, q: Any, s: Any, a: Any, b: Any) -> Any:
    """A step of LoRA on a weight that stays as it is."""

    def loss(a: Any, b: Any) -> Any:
        weight = f32(q) * s
        hidden = jnp.tanh(x @ weight + (x @ a) @ b)
        return jnp.sum(jnp.square(hidden @ weight.T + x))

    return jax.grad(loss, (0, 1))(a, b)


def read_by_three(x: Any, q: Any, s: Any) -> Any:
    weight = (f32(q).reshape(2, 20, 24) * s).reshape(40, 24)
    return x @ weight, (2 * x) @ weight, jnp.einsum("mn,kn->mk", x[:, :24], weight)


TWICE = ((both_ways, 2), (of_gradient, 3), (read_by_three, 3))


@pytest.mark.parametrize(("function", "count"), TWICE)
def test_several_products_read_a_weight(function: Callable[..., Any], count: int) -> None:
    given = [random((6, 40), "float32") - 1, random((40, 24), "int8"), random((24,), "float32") / 100]
    specs = [("m, 40", "float32"), ("40, 24", "int8"), ("24", "float32")]
    if function is of_gradient:
        given += [random((40, 4), "float32"), random((4, 24), "float32")]
        specs += [("40, 4", "float32"), ("4, 24", "float32")]
    executable = shlo_disc.compile(function, args=specs)
    assert [kernel.name for kernel in executable.kernels].count("dequantized_dot") == count
    wanted = jax.tree.leaves(run_xla(function, tuple(given)))
    for got, want in zip(jax.tree.leaves(executable(*given)), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * abs(want).max())


def itself(x: Any, q: Any, s: Any) -> Any:
    weight = f32(q) * s
    return (x @ weight)[:, :4] @ (weight[:4] @ weight.T)


def times_itself(x: Any, q: Any, s: Any) -> Any:
    weight = f32(q) * s
    return x @ (weight @ weight.T)


def one_has_no_kernel(x: Any, q: Any, s: Any) -> Any:
    """One product reads the rows of the weight in another order."""
    weight = f32(q) * s
    return x @ weight, x @ weight[::-1]


def with_a_bias_of_elements(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(q) * s + jnp.outer(jnp.arange(40.0), s))


def quotient_of_the_scale(x: Any, q: Any, s: Any) -> Any:
    return x @ (s / (f32(q) + 300.0))


def quotients_of_f16(x: Any, q: Any, s: Any) -> Any:
    return f32(x.astype(jnp.float16) @ (q.astype(jnp.float16) / s.astype(jnp.float16)))


def rounded_quotients(x: Any, q: Any, s: Any) -> Any:
    """Reciprocals of scales in f32 may change how quotients are rounded to bf16."""
    return f32(x.astype(jnp.bfloat16) @ (f32(q) / s).astype(jnp.bfloat16))


def bias_of_bf16(x: Any, q: Any, s: Any) -> Any:
    """Products are rounded before the bias is added."""
    s = s.astype(jnp.bfloat16)
    return f32(x.astype(jnp.bfloat16) @ (q.astype(jnp.bfloat16) * s + s))


def bias_less_a_product(x: Any, q: Any, s: Any) -> Any:
    return x @ (s - f32(q) * s)


NEXT = (bias_less_a_product, itself, times_itself, one_has_no_kernel, with_a_bias_of_elements, quotient_of_the_scale,
        quotients_of_f16, rounded_quotients, bias_of_bf16)  # fmt: skip


@pytest.mark.parametrize("function", NEXT)
def test_programs_next_to_these_stay(function: Callable[..., Any]) -> None:
    given = (random((6, 40), "float32") - 1, random((40, 24), "int8"), random((24,), "float32") / 100)
    executable = shlo_disc.compile(function, args=(("m, 40", "float32"), ("40, 24", "int8"), ("24", "float32")))
    assert "dequantized_dot" not in [kernel.name for kernel in executable.kernels]
    for got, want in zip(jax.tree.leaves(executable(*given)), jax.tree.leaves(run_xla(function, given)), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-2 if "16" in str(function) else 1e-3, atol=1e-2 * abs(want).max())
