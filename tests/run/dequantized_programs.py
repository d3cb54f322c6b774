# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of f32 with weights of narrow integers, in the forms in which programs write them, and what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.lowering_cpu.backend import CpuBackend
from shlo_disc.lowering_cpu.policy import CPU_POLICY
from tests.run.op_check import run_xla

Program = tuple[Callable[..., Any], tuple[np.ndarray, ...]]


def compiled(program: Program, rows: str = "m", **options: Any) -> Any:
    function, weights = program
    specs = [(", ".join(map(str, w.shape)), w.dtype.name) for w in weights]
    left = f"{rows}, {terms_of(program)}", "float32"
    return shlo_disc.compile(function, args=(left, *specs), options=shlo_disc.Options(**options))


def terms_of(program: Program) -> int:
    return int(program[0].__dict__["terms"])


def is_fused(executable: Any) -> bool:
    return [kernel.name for kernel in executable.kernels] == ["dequantized_dot"]


def near(got: Any, x: np.ndarray, weight: Any) -> None:
    """Sums of products in f32, against those in f64 of the same weights."""
    left, right = np.asarray(x, np.float64), np.asarray(weight, np.float64)
    exact, scale = left @ right, np.abs(left) @ np.abs(right)
    assert got.shape == exact.shape
    assert (np.abs(got - exact) <= 4 * np.sqrt(len(right) + 1) * 2.0**-23 * scale + 1e-30).all()


def product(weight: Callable[..., Any], terms: int) -> Callable[..., Any]:
    """x times the weight that a function computes of its arrays."""

    def function(x: Any, *arrays: Any) -> Any:
        return x @ weight(*arrays)

    function.__dict__.update(terms=terms, weight=weight)
    return function


def check_rounded(program: Program, rows: Sequence[int]) -> None:
    """Check products of bf16 with a program's weight, rounded, whose scales, its last array, are of bf16 here."""
    function, (*others, scales) = program
    arrays, narrow = (*others, scales.astype(ml_dtypes.bfloat16)), function.__dict__["weight"]

    def weight(*arrays: Any) -> Any:
        return narrow(*arrays[:-1], f32(arrays[-1])).astype(jnp.bfloat16)

    def both(x: Any, *arrays: Any) -> Any:
        return jnp.dot(x, weight(*arrays), preferred_element_type=jnp.float32)

    specs = [(", ".join(map(str, a.shape)), a.dtype.name) for a in arrays]
    executable = shlo_disc.compile(both, args=((f"m, {terms_of(program)}", "bfloat16"), *specs))
    assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
    wanted = np.asarray(weight(*map(jnp.asarray, arrays)), np.float64)
    for m in rows:
        x = np.random.default_rng(m).standard_normal((m, terms_of(program))).astype(ml_dtypes.bfloat16)
        near(np.asarray(executable(x, *arrays)), x, wanted)


def check_at_width(program: Program, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a program that is compiled for registers of so many bits; for 128, the runtime has no kernels."""
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, vector_bits=bits))
    check(program, compiled(program), (1, 4, 40))


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    if dtype == "float32":
        return rng.uniform(0.5, 1.5, shape).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def f32(x: Any) -> Any:
    return x.astype(jnp.float32)


def by_columns(k: int, n: int, _: int) -> Program:
    return product(lambda q, s: f32(q) * s, k), (random((k, n), "int8"), random((n,), "float32"))


def by_one(k: int, n: int, _: int) -> Program:
    return product(lambda q: 0.125 * f32(q), k), (random((k, n), "uint8"),)


def by_argument(k: int, n: int, _: int) -> Program:
    return product(lambda q, s: f32(q) * s, k), (random((k, n), "int8"), random((), "float32"))


def unscaled(k: int, n: int, _: int) -> Program:
    return product(f32, k), (random((k, n), "int8"),)


def transposed(k: int, n: int, _: int) -> Program:
    return product(lambda q, s: (f32(q) * s[:, None]).T, k), (random((n, k), "int8"), random((n,), "float32"))


def integer_zeros(k: int, n: int, _: int) -> Program:
    weight = lambda q, z, s: f32(q.astype(jnp.int32) - z.astype(jnp.int32)) * s  # noqa: E731
    return product(weight, k), (random((k, n), "uint8"), random((n,), "uint8"), random((n,), "float32"))


def float_zeros(k: int, n: int, _: int) -> Program:
    weight = lambda q, z, s: ((f32(q) - z[:, None]) * s[:, None]).T  # noqa: E731
    return product(weight, k), (random((n, k), "uint8"), random((n,), "float32", 1), random((n,), "float32"))


def in_groups(k: int, n: int, g: int) -> Program:
    def weight(q: Any, z: Any, s: Any) -> Any:
        return ((f32(q.reshape(k // g, g, n)) - f32(z)[:, None]) * s[:, None]).reshape(k, n)

    return product(weight, k), (random((k, n), "int8"), random((k // g, n), "int8"), random((k // g, n), "float32"))


def in_groups_transposed(k: int, n: int, g: int) -> Program:
    def weight(q: Any, z: Any, s: Any) -> Any:
        return ((f32(q.reshape(n, k // g, g)) - f32(z)[..., None]) * s[..., None]).reshape(n, k).T

    return product(weight, k), (random((n, k), "uint8"), random((n, k // g), "uint8"), random((n, k // g), "float32"))


def repeated_scales(k: int, n: int, g: int) -> Program:
    weight = lambda q, s: f32(q) * jnp.repeat(s, g, axis=0)  # noqa: E731
    return product(weight, k), (random((k, n), "int8"), random((k // g, n), "float32"))


def int4(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any) -> Any:
        return (f32(q.reshape(k // g, g, n)) * s[:, None]).reshape(k, n)

    q = (random((k, n), "uint8") % 16 - 8).astype("int8")
    return product(weight, k), (np.asarray(jnp.asarray(q, jnp.int4)), random((k // g, n), "float32"))


def stacked_halves(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any) -> Any:
        whole = jnp.stack([q & 15, q >> 4], axis=1).reshape(k // g, g, n)
        return ((f32(whole) - 8.0) * s[:, None]).reshape(k, n)

    return product(weight, k), (random((k // 2, n), "uint8"), random((k // g, n), "float32"))


def signed_halves(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any) -> Any:
        whole = jnp.stack([(q << 4) >> 4, q >> 4], axis=-1).reshape(n, k // g, g)
        return (f32(whole) * s[..., None]).reshape(n, k).T

    return product(weight, k), (random((n, k // 2), "int8"), random((n, k // g), "float32"))


def shifted_halves(k: int, n: int, _: int) -> Program:
    def weight(q: Any, s: Any) -> Any:
        shifted = (q[:, None, :] >> jnp.asarray([0, 4], jnp.uint8)[None, :, None]) & 15
        return f32(shifted.reshape(k, n).astype(jnp.int8) - 8) * s

    return product(weight, k), (random((k // 2, n), "uint8"), random((n,), "float32"))


def halves_behind(k: int, n: int, _: int) -> Program:
    weight = lambda q, s: f32(jnp.concatenate([q & 15, q >> 4])) * s  # noqa: E731
    return product(weight, k), (random((k // 2, n), "uint8"), random((n,), "float32"))


def bitcast_halves(k: int, n: int, g: int) -> Program:
    def weight(q: Any, s: Any) -> Any:
        whole = lax.bitcast_convert_type(q, jnp.int4).reshape(n, k // g, g)
        return (f32(whole) * s[..., None]).reshape(n, k).T

    return product(weight, k), (random((n, k // 2), "uint8"), random((n, k // g), "float32"))


def zeros_of_halves(k: int, n: int, g: int) -> Program:
    def weight(q: Any, z: Any, s: Any) -> Any:
        whole = jnp.stack([q & 15, q >> 4], axis=-1).reshape(n, k // g, g)
        return ((f32(whole) - f32(z)[..., None]) * s[..., None]).reshape(n, k).T

    return product(weight, k), (
        random((n, k // 2), "uint8"),
        random((n, k // g), "uint8"),
        random((n, k // g), "float32"),
    )


WHOLE = (by_columns, by_one, by_argument, unscaled, transposed, integer_zeros, float_zeros)
GROUPED = (in_groups, in_groups_transposed, repeated_scales, int4, stacked_halves, signed_halves, shifted_halves,
           halves_behind, bitcast_halves)  # fmt: skip


def check(program: Program, executable: Any, rows: Sequence[int]) -> None:
    """Numbers of rows; those of the first against XLA's as well."""
    function, weights = program
    weight = function.__dict__["weight"](*map(jnp.asarray, weights))
    for m in rows:
        x = np.random.default_rng(m).standard_normal((m, terms_of(program)), np.float32)
        near(np.asarray(executable(x, *weights)), x, weight)
        if m == rows[0]:
            near(np.asarray(run_xla(function, (x, *weights))), x, weight)
