# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products in bf16 and f16 with weights of narrow integers or floats, each of which is rounded as the program says.

Rows lie on both sides of 8 and 16 (kernels of some rows, pairs of bf16), 32 and 128.
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

ROWS = (1, 2, 3, 5, 8, 9, 16, 17, 33, 130)
SHAPES = ((64, 70, 16), (192, 33, 64), (600, 257, 600))
"""Terms, columns, and terms of a group."""
DTYPES = {"bf16": jnp.bfloat16, "f16": jnp.float16}
NUMPY = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16)}

Weight = Callable[..., Any]


def random(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    rng = np.random.default_rng([len(shape), *shape])
    if np.dtype(dtype).kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    return rng.uniform(0.5, 1.5, shape).astype(dtype)


def plain(dtype: Any, k: int, n: int, _: int) -> tuple[Weight, Any]:
    return lambda q: q.astype(dtype), (random((k, n), np.int8),)


def less_integers(dtype: Any, k: int, n: int, g: int) -> tuple[Weight, Any]:
    def weight(q: Any, z: Any) -> Any:
        return (q.astype(dtype).reshape(k // g, g, n) - z.astype(dtype)[:, None]).reshape(k, n)

    return weight, (random((k, n), np.uint8), random((k // g, n), np.uint8))


def by_columns(dtype: Any, k: int, n: int, _: int) -> tuple[Weight, Any]:
    return lambda q, s: q.astype(dtype) * s, (random((k, n), np.int8), random((n,), dtype))


def transposed(dtype: Any, k: int, n: int, _: int) -> tuple[Weight, Any]:
    return lambda q, s: (q.astype(dtype) * s[:, None]).T, (random((n, k), np.uint8), random((n,), dtype))


def in_groups(dtype: Any, k: int, n: int, g: int) -> tuple[Weight, Any]:
    def weight(q: Any, s: Any) -> Any:
        return (q.astype(dtype).reshape(k // g, g, n) * s[:, None]).reshape(k, n)

    return weight, (random((k, n), np.int8), random((k // g, n), dtype))


def in_groups_transposed(dtype: Any, k: int, n: int, g: int) -> tuple[Weight, Any]:
    """With zero points."""

    def weight(q: Any, z: Any, s: Any) -> Any:
        integers = (q.reshape(n, k // g, g).astype(jnp.int32) - z[..., None]).astype(dtype)
        return (integers * s[..., None]).reshape(n, k).T

    return weight, (random((n, k), np.uint8), random((n, k // g), np.uint8), random((n, k // g), dtype))


def rounded_later(dtype: Any, k: int, n: int, g: int) -> tuple[Weight, Any]:
    """The weight is scaled in f32."""

    def weight(q: Any, s: Any) -> Any:
        return (q.astype(jnp.float32).reshape(k // g, g, n) * s[:, None]).astype(dtype).reshape(k, n)

    return weight, (random((k, n), np.int8), random((k // g, n), np.float32))


def stacked_halves(dtype: Any, k: int, n: int, g: int) -> tuple[Weight, Any]:
    def weight(q: Any, s: Any) -> Any:
        whole = jnp.stack([q & 15, q >> 4], axis=1).reshape(k // g, g, n)
        return ((whole.astype(dtype) - 8) * s[:, None]).reshape(k, n)

    return weight, (random((k // 2, n), np.uint8), random((k // g, n), dtype))


def bitcast_halves(dtype: Any, k: int, n: int, g: int) -> tuple[Weight, Any]:
    def weight(q: Any, s: Any) -> Any:
        whole = lax.bitcast_convert_type(q, jnp.int4).reshape(n, k // g, g)
        return (whole.astype(dtype) * s[..., None]).reshape(n, k).T

    return weight, (random((n, k // 2), np.uint8), random((n, k // g), dtype))


def halves_behind(dtype: Any, k: int, n: int, _: int) -> tuple[Weight, Any]:
    weight = lambda q, s: jnp.concatenate([q & 15, q >> 4]).astype(dtype) * s  # noqa: E731
    return weight, (random((k // 2, n), np.uint8), random((n,), dtype))


def of_float8(dtype: Any, k: int, n: int, _: int) -> tuple[Weight, Any]:
    return lambda q: q.astype(dtype), (random((k, n), np.float32).astype(ml_dtypes.float8_e4m3fn),)


def of_float8_in_groups(dtype: Any, k: int, n: int, g: int) -> tuple[Weight, Any]:
    def weight(q: Any, s: Any) -> Any:
        return (q.astype(dtype).reshape(n, k // g, g) * s[..., None]).reshape(n, k).T

    return weight, (random((n, k), np.float32).astype(ml_dtypes.float8_e5m2), random((n, k // g), dtype))


FORMS = (plain, of_float8, of_float8_in_groups, less_integers, by_columns, transposed, in_groups, in_groups_transposed,
         rounded_later, stacked_halves, bitcast_halves, halves_behind)  # fmt: skip


def compiled(function: Callable[..., Any], k: int, dtype: Any, arrays: Any, **options: Any) -> Any:
    specs = [(", ".join(map(str, a.shape)), a.dtype.name) for a in arrays]
    args = ((f"m, {k}", np.dtype(dtype).name), *specs)
    return shlo_disc.compile(function, args=args, options=shlo_disc.Options(**options))


def check(weight: Weight, arrays: Any, dtype: Any, k: int, rows: Sequence[int], **options: Any) -> None:
    """Sums in f32 are those of the rounded weights, and the program's own type has them rounded."""

    def both(x: Any, *arrays: Any) -> Any:
        return lax.dot(x, weight(*arrays), preferred_element_type=jnp.float32)

    def own(x: Any, *arrays: Any) -> Any:
        return x @ weight(*arrays)

    wanted = np.asarray(weight(*map(jnp.asarray, arrays))).astype(np.float64)
    sums, results = (compiled(function, k, dtype, arrays, **options) for function in (both, own))
    for executable in (sums, results):
        assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
    for m in rows:
        x = np.random.default_rng(m).standard_normal((m, k)).astype(dtype)
        exact, scale = x.astype(np.float64) @ wanted, np.abs(x.astype(np.float64)) @ np.abs(wanted)
        limit = 4 * np.sqrt(k + 1) * 2.0**-23 * scale + 1e-30
        got = np.asarray(sums(x, *arrays))
        assert got.dtype == np.float32 and (np.abs(got - exact) <= limit).all()
        own_type = np.asarray(results(x, *arrays))
        assert own_type.dtype == dtype
        ulp = 2.0 ** -(8 if dtype == NUMPY["bf16"] else 11)
        assert (np.abs(own_type.astype(np.float64) - exact) <= limit + ulp * np.abs(exact)).all()


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_products(form: Callable[..., tuple[Weight, Any]], name: str) -> None:
    for k, n, g in SHAPES:
        weight, arrays = form(NUMPY[name], k, n, g)
        check(weight, arrays, NUMPY[name], k, ROWS if k == 192 else (1, 4, 20, 130))


@pytest.mark.parametrize("width", [512, 256, 128])
@pytest.mark.parametrize("form", [by_columns, in_groups_transposed, stacked_halves, bitcast_halves])
def test_widths_of_registers(
    form: Callable[..., tuple[Weight, Any]], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 128 bits, the runtime has no kernels for them."""
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, vector_bits=width))
    for name, dtype in NUMPY.items():
        weight, arrays = form(dtype, 96, 71, 32)
        check(weight, arrays, dtype, 96, (1, 7, 17, 40) if name == "bf16" else (1, 40))


def test_tiles_of_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """With AMX, weights are written unless rows are known to be few."""
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, bf16_tiles=True))
    weight, arrays = by_columns(NUMPY["bf16"], 64, 48, 64)
    specs = [(", ".join(map(str, a.shape)), a.dtype.name) for a in arrays]
    for rows, dtype, is_narrow in (
        ("m", "bfloat16", False), ("33", "bfloat16", False), ("32", "bfloat16", True), ("m", "float32", True)
    ):  # fmt: skip
        function = lambda x, q, s, dtype=dtype: x @ weight(q, s.astype(dtype)).astype(dtype)  # noqa: E731
        executable = shlo_disc.compile(function, args=((f"{rows}, 64", dtype), *specs))
        found = "dequantized_dot" in [kernel.name for kernel in executable.kernels]
        assert found == is_narrow, rows


@pytest.mark.slow
def test_long_weights() -> None:
    """More than a tile's terms and columns, and an odd number of terms, of which the last pair has one."""
    dtype = NUMPY["bf16"]
    for form, k, n, g in ((by_columns, 1501, 301, 1501), (transposed, 1501, 301, 1501), (plain, 1501, 8, 1501),
                          (in_groups_transposed, 1400, 40, 56), (bitcast_halves, 2080, 40, 32)):  # fmt: skip
        weight, arrays = form(dtype, k, n, g)
        check(weight, arrays, dtype, k, (1, 6, 18, 40))


def test_numbers_that_bf16_has_not() -> None:
    """Ties go to the even number, scales are infinite, NaN or tiny, and products overflow f16."""
    q = np.arange(-128, 128, dtype=np.int8)[None].repeat(2, 0)
    for name, dtype in NUMPY.items():
        scales = np.array([1.0078125, 0.99609375, 3e4, 1e-7, np.inf, -np.inf, np.nan, 0.0] * 32).astype(dtype)
        function = lambda x, q, s: x @ (q.astype(DTYPES[name]) * s)  # noqa: B023, E731
        x = np.array([[1, 0], [0, 0.5], [2, 4]], dtype)
        executable = compiled(function, 2, dtype, (q, scales))
        for rows in (x, np.tile(x, (14, 1))):
            got = np.asarray(executable(rows, q, scales)).astype(np.float64)
            np.testing.assert_array_equal(got, np.asarray(jax.jit(function)(rows, q, scales)).astype(np.float64))


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("width", [512, 256, 128])
def test_all_floats_of_8_bits(kind: str, name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With infinities and NaNs, in rows and in columns of all lengths up to a register's."""
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, vector_bits=width))
    dtype, q = jnp.dtype(name), np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, kind))
    rows = compiled(lambda x, q: x @ q.astype(dtype), 1, dtype, (q[None],))
    columns = compiled(lambda x, q: x @ q.astype(dtype).T, 8, dtype, (q.reshape(32, 8),))
    for executable in (rows, columns):
        assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
    wanted = q.astype(np.float64)
    for m in (1, 20, 40):
        got = np.asarray(rows(np.ones((m, 1), dtype), q[None]))
        np.testing.assert_array_equal(got.astype(np.float64), np.tile(wanted, (m, 1)))
        numbers = np.where(np.isfinite(wanted), wanted, 1).astype(q.dtype).reshape(32, 8)
        for term in range(8):
            x = np.zeros((m, 8), dtype)
            x[:, term] = 1
            got = np.asarray(columns(x, numbers)).astype(np.float64)
            np.testing.assert_array_equal(got, np.tile(numbers[:, term].astype(np.float64), (m, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_random_products(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any form, type, sizes, groups, registers and number of threads."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, vector_bits=int(rng.choice([512, 512, 256, 128]))))
    g, groups = int(rng.choice([8, 10, 16, 24, 32, 50, 128, 600])), int(rng.choice([1, 2, 4, 6, 14, 40]))
    n, dtype = int(rng.choice([1, 2, 7, 15, 16, 17, 63, 65, 130, 500, 2100])), NUMPY[str(rng.choice(list(NUMPY)))]
    weight, arrays = rng.choice(np.asarray(FORMS, object))(dtype, g * groups, n, g)
    rows = rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 100, 129, 200], 5).tolist()
    check(weight, arrays, dtype, g * groups, rows, threads=int(rng.choice([1, 2, 5])))


@pytest.mark.parametrize("seed", range(120))
def test_random_steps(seed: int) -> None:
    """A weight of some steps in any types: those that keep each number are fused, and all are right."""
    rng = np.random.default_rng(seed)
    types = [jnp.dtype(name) for name in ("float32", "bfloat16", "float16")]
    first, second, last = (types[i] for i in rng.choice(3, 3))
    stored = rng.choice(["int8", "uint8", "float8_e4m3fn", "float8_e5m2"])
    zero, is_scaled = rng.choice(["none", "constant", "integers", "floats"]), rng.random() < 0.8

    def weight(q: Any, z: Any, s: Any) -> Any:
        weight = q.astype(first)
        if zero != "none":
            weight -= {"constant": 7, "integers": z.astype(first), "floats": s.astype(first)}[zero]
        if is_scaled:
            weight = weight.astype(second) * s.astype(second)
        return weight.astype(last)

    def product(x: Any, *arrays: Any) -> Any:
        return lax.dot(x, weight(*arrays), preferred_element_type=jnp.float32)

    q = random((40, 24), np.uint8)
    q = q.view(stored) if "int8" in stored else random((40, 24), np.float32).astype(getattr(ml_dtypes, stored))
    arrays = (q, random((24,), np.int8), random((24,), types[rng.choice(3)]))
    wanted = np.asarray(weight(*map(jnp.asarray, arrays))).astype(np.float64)
    executable = compiled(product, 40, last, arrays)
    for m in (1, 18, 40):
        x = np.random.default_rng(m).standard_normal((m, 40)).astype(last)
        exact, scale = x.astype(np.float64) @ wanted, np.abs(x.astype(np.float64)) @ np.abs(wanted)
        assert (np.abs(np.asarray(executable(x, *arrays)) - exact) <= 30 * 2.0**-23 * scale + 1e-30).all()


def test_products_of_f32_with_rounded_weights() -> None:
    """As PyTorch's front end writes them: steps are f32, and their results are rounded."""

    def function(x: Any, q: Any, z: Any, s: Any) -> Any:
        wide = lambda a: a.astype(jnp.float32)  # noqa: E731
        integers = (wide(q.astype(jnp.bfloat16)) - wide(jnp.broadcast_to(z.astype(jnp.bfloat16), q.shape))).astype(
            jnp.bfloat16
        )
        weight = (wide(integers) * wide(jnp.broadcast_to(s, q.shape))).astype(jnp.bfloat16)
        return x @ wide(weight)

    arrays = random((96, 33), np.uint8) & 15, random((33,), np.uint8) & 15, random((33,), NUMPY["bf16"])
    executable = compiled(function, 96, np.float32, arrays)
    assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
    for m in (1, 20, 40):
        x = np.random.default_rng(m).standard_normal((m, 96), np.float32)
        np.testing.assert_allclose(executable(x, *arrays), np.asarray(function(x, *arrays)), rtol=2e-5, atol=2e-3)


# ---- programs next to these ------------------------------------------------------------------------------------------


def float_zeros(x: Any, q: Any, s: Any) -> Any:
    return x @ ((q.astype(x.dtype) - s) * s)


def two_scales(x: Any, q: Any, s: Any) -> Any:
    return x @ (q.astype(x.dtype) * s * s)


def rounded_twice(x: Any, q: Any, s: Any) -> Any:
    return x @ (q.astype(jnp.float16) * s.astype(jnp.float16)).astype(x.dtype)


def more_than_bf16_has(x: Any, q: Any, s: Any) -> Any:
    integers = lax.bitcast_convert_type(q, jnp.uint8).astype(x.dtype) - q[:1].astype(x.dtype)
    return x @ (integers * s)


def scaled_in_f64(x: Any, q: Any, s: Any) -> Any:
    return x @ (q.astype(jnp.float64) * s.astype(jnp.float64)).astype(x.dtype)


def float8_less_zeros(x: Any, q: Any, s: Any) -> Any:
    return x @ (lax.bitcast_convert_type(q, jnp.float8_e4m3fn).astype(x.dtype) - 1)


def float8_cut_to_integers(x: Any, q: Any, s: Any) -> Any:
    return x @ jnp.nan_to_num(lax.bitcast_convert_type(q >> 1, jnp.float8_e4m3fn)).astype(jnp.int8).astype(x.dtype)


def another_float8(x: Any, q: Any, s: Any) -> Any:
    return x @ lax.bitcast_convert_type(q & 15, jnp.float8_e4m3b11fnuz).astype(x.dtype)


@pytest.mark.parametrize(
    "function",
    [
        float8_less_zeros,
        float8_cut_to_integers,
        another_float8,
        float_zeros,
        two_scales,
        rounded_twice,
        more_than_bf16_has,
        scaled_in_f64,
    ],
)
def test_programs_next_to_these_stay(function: Callable[..., Any]) -> None:
    dtype = NUMPY["bf16"]
    given = (random((6, 40), dtype), random((40, 24), np.int8), random((24,), dtype))
    with jax.enable_x64(function is scaled_in_f64):
        executable = compiled(function, 40, dtype, given[1:])
        assert "dequantized_dot" not in [kernel.name for kernel in executable.kernels]
        got, want = np.asarray(executable(*given)), np.asarray(jax.jit(function)(*given))
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=2e-2, atol=2)
