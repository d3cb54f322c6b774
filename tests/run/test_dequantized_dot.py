# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights of narrow integers, which are dequantised where they are multiplied, and programs next to them.

Rows lie on both sides of what the runtime decides at: 1, 2, 3, 4 and 8 rows together, 32 rows by registers, 128 of a
block. Sums of up to 400 terms are compared with those of float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from tests.run.op_check import run_xla

ROWS = (1, 2, 3, 8, 17, 33, 64, 257)
SIZES = ((1, 1), (37, 19), (384, 257))
GROUPS = ((64, 48, 32), (384, 257, 128))
"""Terms, columns, and terms of a group."""
WIDTHS = (512, 256, 128)

Program = tuple[Callable[..., Any], tuple[np.ndarray, ...]]


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The width of registers that programs of the test may use; with 128, the runtime has no kernels for them."""
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, vector_bits=request.param))
    return request.param


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


def zeros_of_halves(k: int, n: int, g: int) -> Program:
    def weight(q: Any, z: Any, s: Any) -> Any:
        whole = jnp.stack([q & 15, q >> 4], axis=-1).reshape(n, k // g, g)
        return ((f32(whole) - f32(z)[..., None]) * s[..., None]).reshape(n, k).T

    return product(weight, k), (
        random((n, k // 2), "uint8"),
        random((n, k // g), "uint8"),
        random((n, k // g), "float32"),
    )


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


# ---- programs next to these ------------------------------------------------------------------------------------------


def read_twice(x: Any, q: Any, s: Any) -> Any:
    weight = f32(q) * s
    return x @ weight, weight + 1.0


def view_read_twice(x: Any, q: Any, s: Any) -> Any:
    weight = (f32(q) * s).reshape(8, 5, 24)
    return x @ weight.reshape(40, 24), jnp.sum(weight, axis=1)


def computed(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(jnp.maximum(q, -100)) * s)


def that_may_wrap(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(q - q[:1]) * s)


def of_each_row(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(q) * jnp.resize(s, 40)[:, None])


def of_short_groups(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(q).reshape(10, 4, 24) * (jnp.arange(10.0)[:, None, None] * s)).reshape(40, 24)


def rounded(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32((f32(q) * 1.5).astype(jnp.int32)) * s)


def in_f64(x: Any, q: Any, s: Any) -> Any:
    return (x.astype(jnp.float64) @ (q.astype(jnp.float64) * s)).astype(jnp.float32)


def in_batches(x: Any, q: Any, s: Any) -> Any:
    return jnp.einsum("mbk,bkn->mbn", x.reshape(-1, 2, 20), (f32(q) * s).reshape(2, 20, 24))


def high_halves_first(x: Any, q: Any, s: Any) -> Any:
    q = lax.bitcast_convert_type(q, jnp.uint8)[:20]
    return x @ (f32(jnp.stack([q >> 4, q & 15], axis=1).reshape(40, 24)) * s)


def other_halves(x: Any, q: Any, s: Any) -> Any:
    q = lax.bitcast_convert_type(q, jnp.uint8)
    return x @ (f32(jnp.stack([q[:20] & 15, q[20:] >> 4], axis=1).reshape(40, 24)) * s)


def other_shifts(x: Any, q: Any, s: Any) -> Any:
    q = lax.bitcast_convert_type(q, jnp.uint8)[:20]
    return x @ (f32(jnp.stack([q & 15, q >> 3], axis=1).reshape(40, 24)) * s)


def halves_of_columns(x: Any, q: Any, s: Any) -> Any:
    q = lax.bitcast_convert_type(q, jnp.uint8)[:, :12]
    return x @ (f32(jnp.stack([q & 15, q >> 4], axis=2).reshape(40, 24)) * s)


def halves_of_two_groups(x: Any, q: Any, s: Any) -> Any:
    q = lax.bitcast_convert_type(q, jnp.uint8)[:9]
    whole = f32(jnp.stack([q & 15, q >> 4], axis=1)).reshape(2, 9, 24)
    return x[:, :18] @ (whole * jnp.stack([s, 2 * s])[:, None]).reshape(18, 24)


def wide_zeros(x: Any, q: Any, s: Any) -> Any:
    return x @ f32(q.astype(jnp.int32) - (1e8 * s).astype(jnp.int32))


def reversed_rows(x: Any, q: Any, s: Any) -> Any:
    return x @ (f32(q) * s)[::-1]


NEXT = (read_twice, view_read_twice, computed, that_may_wrap, of_each_row, of_short_groups, rounded, in_f64, in_batches,
        high_halves_first, other_halves, other_shifts, halves_of_columns,
        halves_of_two_groups, wide_zeros, reversed_rows)  # fmt: skip


@pytest.mark.parametrize("function", NEXT)
def test_programs_next_to_these_stay(function: Callable[..., Any]) -> None:
    given = (random((6, 40), "float32"), random((40, 24), "int8"), random((24,), "float32"))
    with jax.enable_x64(function is in_f64):
        executable = shlo_disc.compile(function, args=(("m, 40", "float32"), ("40, 24", "int8"), ("24", "float32")))
        assert "dequantized_dot" not in [kernel.name for kernel in executable.kernels]
        for got, want in zip(
            jax.tree.leaves(executable(*given)), jax.tree.leaves(run_xla(function, given)), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-2)


def _of_digits(rng: np.random.Generator) -> Program:
    """A weight whose k and n are each two digits, stored in any order, with a scale for any of the digits."""
    sizes = [int(size) for size in rng.choice([1, 2, 3, 8, 16], 4)]  # of k, then of n
    k, n = sizes[0] * sizes[1], sizes[2] * sizes[3]
    stored = rng.permutation(4)
    with_scale = rng.random(4) < 0.6
    back = np.argsort(stored)
    flat = rng.random() < 0.5  # reshaped before it is multiplied by the scale, where the scale allows it

    def weight(q: Any, s: Any) -> Any:
        q = q.reshape([sizes[axis] for axis in stored]).transpose(back)
        s = s.reshape([size if has else 1 for size, has in zip(sizes, with_scale, strict=True)])
        if flat:
            return f32(q.reshape(k, n)) * jnp.broadcast_to(s, sizes).reshape(k, n)
        return (f32(q) * s).reshape(k, n)

    count = int(np.prod([size for size, has in zip(sizes, with_scale, strict=True) if has]))
    arrays = random((k * n,), "int8", int(rng.integers(99))), random((count,), "float32")
    return product(weight, k), arrays


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(s, marks=pytest.mark.slow) for s in range(4, 100))])
def test_weights_stored_in_any_order(seed: int) -> None:
    """Most are no layout that the runtime has: all are right, whether they are fused or not."""
    rng = np.random.default_rng(seed)
    for _ in range(3):
        program = _of_digits(rng)
        check(program, compiled(program), (1, 5, 40))


def test_some_orders_are_fused_and_some_are_not() -> None:
    """Stored digits of k lie before those of n, or behind them, in their order: no digit lies between the other's."""
    by_order = {}
    for stored in ((0, 1, 2, 3), (2, 3, 0, 1), (0, 2, 1, 3), (1, 0, 2, 3)):
        back = np.argsort(stored)

        def weight(q: Any, s: Any, stored: Any = stored, back: Any = back) -> Any:
            sizes = (4, 16, 3, 8)
            return (f32(q.reshape([sizes[axis] for axis in stored]).transpose(back).reshape(64, 24))) * s

        executable = compiled((product(weight, 64), (random((64 * 24,), "int8"), random((24,), "float32"))))
        by_order[stored] = is_fused(executable)
    assert by_order == {(0, 1, 2, 3): True, (2, 3, 0, 1): True, (0, 2, 1, 3): False, (1, 0, 2, 3): False}


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
