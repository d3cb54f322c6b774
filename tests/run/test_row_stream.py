# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of one to three rows with matrices that come from memory, which are read where they lie.

Sizes lie on both sides of what the runtime decides at: 3 rows, 1 MB, ranges of 64 rows, vectors of 8 and lines of 16
columns, and pieces of 2048.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc import Options
from shlo_disc.lowering_cpu.backend import CpuBackend
from shlo_disc.lowering_cpu.policy import CPU_POLICY
from tests.run.op_check import run_xla

SIZES = [(64, 4160), (511, 520), (1023, 257), (130, 2049), (4099, 64), (515, 6161)]
"""Terms and columns."""
USES = 32
"""After which an array that comes again is packed for such products."""


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def compiled(function: Callable[..., Any], k: int, n: int, dtype: str = "float32", **options: Any) -> Any:
    return shlo_disc.compile(
        function, args=((f"m, {k}", dtype), (f"{k}, {n}", dtype)), options=Options(guard_pages=True, **options)
    )


def near(got: Any, x: np.ndarray, w: np.ndarray) -> None:
    left, right = x.astype(np.float64), w.astype(np.float64)
    scale = np.abs(left) @ np.abs(right)
    assert (np.abs(got - left @ right) <= 4 * np.sqrt(len(w)) * np.finfo(x.dtype).eps * scale).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("k", "n"), SIZES)
def test_sums(k: int, n: int, dtype: str) -> None:
    with jax.enable_x64(dtype == "float64"):
        executable = compiled(jnp.matmul, k, n, dtype)
        for m in (1, 2, 3, 4):
            x, w = numbers((m, k), dtype), numbers((k, n), dtype, m)
            near(np.asarray(executable(x, w)), x, w)


@pytest.mark.parametrize("width", [256, 128])
def test_widths_of_registers(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, vector_bits=width))
    executable = compiled(jnp.matmul, 511, 520)
    for m in (1, 3):
        x, w = numbers((m, 511), "float32"), numbers((511, 520), "float32")
        near(np.asarray(executable(x, w)), x, w)


FOLLOWED: dict[str, Callable[[Any, Any], Any]] = {
    "elements": lambda x, w: jax.nn.gelu(x @ w + 1.0),
    "rows": lambda x, w: jax.nn.softmax(x @ w),
    "two products": lambda x, w: (jnp.tanh(x @ w), jnp.sin(x @ (2.0 * w))),
    "the largest": lambda x, w: jnp.max(x @ w, axis=1),
}


@pytest.mark.parametrize("name", FOLLOWED)
@pytest.mark.parametrize("n", [520, 2049])
def test_what_follows(name: str, n: int) -> None:
    executable = compiled(FOLLOWED[name], 600, n)
    for m in (1, 2, 3):
        x, w = numbers((m, 600), "float32") / 16, numbers((600, n), "float32")
        for got, want in zip(
            jax.tree.leaves(executable(x, w)), jax.tree.leaves(run_xla(FOLLOWED[name], (x, w))), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def test_any_number_of_threads_adds_alike() -> None:
    x, w = numbers((3, 1023), "float32"), numbers((1023, 1500), "float32")
    one, *others = (np.asarray(compiled(jnp.matmul, 1023, 1500, threads=threads)(x, w)) for threads in (1, 2, 3, 16))
    for other in others:
        np.testing.assert_array_equal(other, one)


def test_special_values() -> None:
    """They stay in their row and column."""
    x, w = numbers((3, 600), "float32"), numbers((600, 520), "float32")
    x[1, 7], w[599, 3], w[0, 519] = np.nan, np.inf, -np.inf
    got, want = np.asarray(compiled(jnp.matmul, 600, 520)(x, w)), run_xla(jnp.matmul, (x, w))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


def held(executable: Any) -> int:
    return int(executable.memory_stats()["constant_bytes"])


@pytest.mark.parametrize(
    ("rows", "uses"), [((2,), USES), ((1, 3, 2), USES), ((4, 70), USES), ((129, 150), USES // 2)], ids=str
)
def test_few_uses_take_no_memory(rows: tuple[int, ...], uses: int) -> None:
    """A large array is packed after many uses, by half as many where each packs it for itself, and never before."""
    w = jnp.asarray(numbers((600, 520), "float32"))
    executable = compiled(jnp.matmul, 600, 520)
    before, taken = held(executable), []
    for _, m in zip(range(uses + 3), itertools.cycle(rows)):
        near(np.asarray(executable(x := numbers((m, 600), "float32"), w)), x, np.asarray(w))
        taken.append(held(executable) >= before + w.nbytes)
    assert not any(taken[:uses])
    assert taken[-1]


def by_columns(x: Any, w: Any) -> Any:
    return x @ w.T


@pytest.mark.parametrize(
    ("rows", "count", "uses"),
    [
        pytest.param((1, 4, 3), 520, USES + 1, id="few rows"),
        pytest.param((1, 4, 3), 11000, USES + 1, id="few rows, from memory"),
        pytest.param((5,), 520, USES // 3 + 1, id="more rows"),
        pytest.param((300,), 11000, USES // 3 + 1, id="many rows, from memory"),
        pytest.param((2, 5), 11000, USES // 2 + 1, id="few and more rows"),
    ],
)
def test_few_uses_by_dense_columns_take_no_memory(rows: tuple[int, ...], count: int, uses: int) -> None:
    """Dot products of few rows lose little, and count as one use of three. The first use of all is not counted."""
    w = jnp.asarray(numbers((count, 600), "float32"))
    executable = shlo_disc.compile(by_columns, args=(("m, 600", "float32"), (f"{count}, 600", "float32")))
    before, taken = held(executable), []
    for _, m in zip(range(USES + 8), itertools.cycle(rows)):
        near(np.asarray(executable(x := numbers((m, 600), "float32"), w)), x, np.asarray(w).T)
        taken.append(held(executable) >= before + w.nbytes)
    assert taken.index(True) == uses


@pytest.mark.parametrize(
    ("function", "shape", "dtype"),
    [
        pytest.param(by_columns, (1040, 600), "bfloat16", id="dense columns"),
        pytest.param(jnp.matmul, (600, 1040), "bfloat16", id="dense rows"),
    ],
)
def test_narrow_elements_are_packed_at_once(function: Any, shape: tuple[int, int], dtype: str) -> None:
    """Their panels take longer to write than a product of some rows takes."""
    w = jnp.asarray(numbers(shape, "float32"), dtype)
    specs = (("m, 600", dtype), (f"{shape[0]}, {shape[1]}", dtype))
    executable = shlo_disc.compile(function, args=specs)
    before = held(executable)
    x = jnp.asarray(numbers((40, 600), "float32"), dtype)
    want = np.asarray(function(x, w), "float32")
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(executable(x, w), "float32"), want, 0.02, 0.5)
    assert held(executable) >= before + w.nbytes


def test_a_small_array_is_packed_as_ever() -> None:
    w = jnp.asarray(numbers((64, 96), "float32"))
    executable = compiled(jnp.matmul, 64, 96)
    before = held(executable)
    for _ in range(3):
        near(np.asarray(executable(x := numbers((2, 64), "float32"), w)), x, np.asarray(w))
    assert held(executable) >= before + w.nbytes
