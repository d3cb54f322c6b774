# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights of narrow integers, which are dequantised where they are multiplied.

Rows lie on both sides of what the runtime decides at: 1, 2, 3, 4 and 8 rows together, 32 rows by registers, 128 of a
block. Sums of up to 400 terms are compared with those of float64.
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
from jax import lax

import shlo_disc
from shlo_disc.lowering_cpu.backend import CpuBackend
from shlo_disc.lowering_cpu.policy import CPU_POLICY
from tests.run.dequantized_programs import (
    GROUPED,
    WHOLE,
    Program,
    bitcast_halves,
    by_columns,
    check,
    compiled,
    f32,
    in_groups,
    in_groups_transposed,
    is_fused,
    near,
    random,
    signed_halves,
    stacked_halves,
    transposed,
    zeros_of_halves,
)
from tests.run.op_check import run_xla

ROWS = (1, 2, 3, 8, 17, 33, 64, 257)
SIZES = ((1, 1), (37, 19), (384, 257))
GROUPS = ((64, 48, 32), (384, 257, 128))
"""Terms, columns, and terms of a group."""
WIDTHS = (512, 256, 128)


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The width of registers that programs of the test may use; with 128, the runtime has no kernels for them."""
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, vector_bits=request.param))
    return request.param


@pytest.mark.parametrize("form", WHOLE)
def test_one_group(form: Callable[..., Program]) -> None:
    for k, n in SIZES:
        program = form(k, n, k)
        executable = compiled(program)
        assert is_fused(executable), (k, n)
        check(program, executable, ROWS if k == 384 else (1, 3, 33))


@pytest.mark.parametrize("form", GROUPED)
def test_groups(form: Callable[..., Program]) -> None:
    for k, n, g in GROUPS:
        program = form(k, n, g)
        executable = compiled(program)
        assert is_fused(executable), (k, n)
        check(program, executable, ROWS if k == 384 else (1, 3, 33))


@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("form", [in_groups, in_groups_transposed, stacked_halves, bitcast_halves])
def test_widths_of_registers(form: Callable[..., Program]) -> None:
    program = form(96, 71, 32)
    check(program, compiled(program), (1, 4, 7, 16, 40))


@pytest.mark.usefixtures("width")
@pytest.mark.parametrize(
    "form", [bitcast_halves, *(pytest.param(f, marks=pytest.mark.slow) for f in (signed_halves, zeros_of_halves))]
)
def test_halves_that_are_read_as_words(form: Callable[..., Program]) -> None:
    """Groups of less than a register, of one and more, and of none; bytes that fill no register; more than a chunk."""
    for k, g in ((8, 8), (56, 8), (144, 16), (160, 32), (192, 64), (640, 128), (768, 256), (288, 96), (70, 70),
                 (512, 512), (8448, 32), (12288, 4096)):  # fmt: skip
        program = form(k, 70 if k < 1000 else 5, g)
        executable = compiled(program)
        assert is_fused(executable), (k, g)
        check(program, executable, (1, 2, 3, 4, 5))


@pytest.mark.parametrize("threads", [1, 3])
def test_long_weights(threads: int) -> None:
    """More terms than are used together, and more columns than an item has; groups that are no whole chunks."""
    for form, g in ((by_columns, 4500), (transposed, 4500), (in_groups, 180), (stacked_halves, 180),
                    (bitcast_halves, 180)):  # fmt: skip
        program = form(4500, 70, g)
        check(program, compiled(program, threads=threads), (6, 40))
    wide = by_columns(40, 4500, 40)
    check(wide, compiled(wide, threads=threads), (1, 5, 40))


def test_no_rows_and_many_axes() -> None:
    program = in_groups(64, 48, 32)
    executable = compiled(program, "b, m - 1")
    assert is_fused(executable)
    for shape in ((1, 0), (3, 1), (2, 9)):
        x = random((*shape, 64), "float32")
        near(np.asarray(executable(x, *program[1])), x, program[0].__dict__["weight"](*program[1]))


def test_weight_on_the_left() -> None:
    """Its product is transposed behind the call; several axes of a weight are columns, and several are terms."""

    def left(x: Any, q: Any, s: Any) -> Any:
        return lax.dot_general(f32(q) * s[:, None], x, (((1,), (1,)), ((), ())))

    def heads(x: Any, q: Any, s: Any) -> Any:
        return jnp.einsum("bthd,hdnf->btnf", x, f32(q) * s)

    q, s, x = random((40, 33), "int8"), random((40,), "float32"), random((5, 33), "float32")
    executable = shlo_disc.compile(left, args=(("m, 33", "float32"), ("40, 33", "int8"), ("40", "float32")))
    assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
    np.testing.assert_allclose(executable(x, q, s), run_xla(left, (x, q, s)), rtol=1e-4, atol=1e-2)
    q, s, x = random((4, 8, 3, 10), "int8"), random((3, 10), "float32"), random((2, 5, 4, 8), "float32")
    specs = (("b, t, 4, 8", "float32"), ("4, 8, 3, 10", "int8"), ("3, 10", "float32"))
    executable = shlo_disc.compile(heads, args=specs)
    assert "dequantized_dot" in [kernel.name for kernel in executable.kernels]
    np.testing.assert_allclose(executable(x, q, s), run_xla(heads, (x, q, s)), rtol=1e-4, atol=1e-2)


def test_what_follows() -> None:
    def layer(x: Any, q: Any, s: Any, b: Any) -> Any:
        return jax.nn.gelu(x @ (f32(q) * s) + b)

    specs = (("m, 64", "float32"), ("64, 50", "int8"), ("50", "float32"), ("50", "float32"))
    executable = shlo_disc.compile(layer, args=specs)
    given = (random((7, 64), "float32"), random((64, 50), "int8"), random((50,), "float32"), random((50,), "float32"))
    assert len(executable.kernels) == 2
    np.testing.assert_allclose(executable(*given), run_xla(layer, given), rtol=1e-4, atol=1e-2)


def test_special_scales() -> None:
    """A scale that is infinite or NaN reaches its own column only, at ends of groups as well."""
    for form in (by_columns, transposed):
        function, (q, s) = form(37, 35, 37)
        q, s = np.where(q == 0, 1, q).astype("int8"), s.copy()
        s[3], s[34] = np.inf, np.nan
        executable = compiled((function, (q, s)))
        for m in (1, 5, 40):
            x = np.ones((m, 37), np.float32)
            got = np.asarray(executable(x, q, s))
            np.testing.assert_array_equal(np.isfinite(got), np.isfinite(np.asarray(run_xla(function, (x, q, s)))))
            assert np.isfinite(np.delete(got, (3, 34), axis=1)).all()


@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("form", [by_columns, transposed, in_groups, stacked_halves])
def test_overflow_is_as_written(form: Callable[..., Program]) -> None:
    """Products with integers overflow where those with weights do not, and the other way around."""
    function, (q, *zeros, s) = form(64, 48, 32)
    s = s * np.float32(1e-3)
    s[..., 1] = 1e-30
    executable = compiled((function, (q, *zeros, s)))
    for m in (1, 3, 8, 17):
        x = np.full((m, 64), 1e37, np.float32) * np.linspace(0.1, 1.0, 64, dtype=np.float32)
        x[m - 1, 3], x[m // 2, 7] = np.inf, np.nan if m > 3 else 1e37
        got, expected = np.asarray(executable(x, q, *zeros, s)), np.asarray(run_xla(function, (x, q, *zeros, s)))
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(expected))
        assert m == 1 or np.isfinite(expected[0]).all()
        rows = np.isfinite(expected).all(1)
        near(got[rows], x[rows], function.__dict__["weight"](*map(jnp.asarray, (q, *zeros, s))))


@pytest.mark.parametrize("form", [by_columns, in_groups, stacked_halves])
def test_any_number_of_threads_adds_alike(form: Callable[..., Program]) -> None:
    program = form(4160, 130, 32)
    x = random((3, 4160), "float32")
    one, *others = (np.asarray(compiled(program, threads=threads)(x, *program[1])) for threads in (1, 2, 3, 16))
    for other in others:
        np.testing.assert_array_equal(other, one)


def test_no_weight_in_floats() -> None:
    executable = compiled(in_groups(512, 512, 32))
    assert executable.memory(m=1).arena_bytes < 512 * 512
    assert executable.cost_analysis(m=3)["flops"] == 2 * 3 * 512 * 512


def test_it_can_be_turned_off() -> None:
    program = in_groups(64, 48, 32)
    executable = compiled(program, max_fusions=0)
    assert "dequantized_dot" not in [kernel.name for kernel in executable.kernels]
    check(program, executable, (1, 5))


def test_gpu_programs_stay() -> None:
    function, _ = by_columns(64, 32, 64)
    args = (("m, 64", "float32"), ("64, 32", "int8"), ("32", "float32"))
    program = shlo_disc.compile(function, args=args, target="cuda:sm_90a")
    assert ".visible .entry" in program.as_text("ptx")


@pytest.mark.slow
@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("seed", range(40))
def test_random_products(seed: int) -> None:
    """Any form, sizes, groups and number of threads; five numbers of rows a program."""
    rng = np.random.default_rng(seed)
    group, groups = int(rng.choice([8, 10, 16, 24, 32, 50, 128, 600])), int(rng.choice([1, 2, 4, 6, 14, 40]))
    form = rng.choice(np.asarray((*WHOLE, *GROUPED), object))
    program = form(group * groups, int(rng.choice([1, 2, 7, 15, 16, 17, 63, 65, 130, 500, 2100])), group)
    executable = compiled(program, threads=int(rng.choice([1, 2, 5])))
    assert is_fused(executable)
    check(program, executable, rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 32, 33, 34, 100, 129, 200], 5).tolist())


@pytest.mark.parametrize("result", ["float32", "bfloat16"])
@pytest.mark.parametrize(("left", "right"), list(itertools.product(("float8_e4m3fn", "float8_e5m2"), repeat=2)))
def test_both_sides_are_floats_of_8_bits(left: str, right: str, result: str) -> None:
    """Products are exact in f32: with a stored weight by the function, and of two computed sides."""

    def stored(x: Any, w: Any) -> Any:
        return lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=result)

    def computed(x: Any, w: Any) -> Any:
        return stored(-x, jnp.concatenate([w, w], 1))

    k, n = 96, 40
    w = np.linspace(-3, 3, k * n).reshape(k, n).astype(np.float32).astype(right)
    for function in (stored, computed):
        executable = shlo_disc.compile(function, args=((f"m, {k}", left), (f"{k}, {n}", right)))
        assert ("dequantized_dot" in [kernel.name for kernel in executable.kernels]) == (function is stored)
        for m in (1, 3, 17, 40):
            x = np.random.default_rng(m).standard_normal((m, k)).astype(np.float32).astype(left)
            got = np.asarray(executable(x, w))
            assert got.dtype == result
            exact = x.astype(np.float64) @ w.astype(np.float64) * (1 if function is stored else -1)
            exact = exact if function is stored else np.concatenate([exact, exact], 1)
            step = 2.0**-7 if result == "bfloat16" else 2.0**-18
            np.testing.assert_allclose(got.astype(np.float64), exact, rtol=step, atol=step * abs(exact).max())


def test_floats_of_8_bits_that_are_no_numbers() -> None:
    x = np.zeros((2, 32), np.float32)
    x[0, :3] = np.nan, 1, 2
    x[1, 5] = 57344
    w = np.zeros((32, 8), np.float32)
    w[5, :3], w[1, 3] = (np.inf, -57344, 57344), 1
    sides = x.astype("float8_e5m2"), w.astype("float8_e5m2")
    function = lambda x, w: lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)  # noqa: E731
    executable = shlo_disc.compile(function, args=(("m, 32", "float8_e5m2"), ("32, 8", "float8_e5m2")))
    np.testing.assert_array_equal(executable(*sides), jax.jit(function)(*sides))
