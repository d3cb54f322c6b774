# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc.numpy`: results of their true size, on arrays and inside compiled functions, compared with NumPy."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
import shlo_disc.numpy as sizes
from shlo_disc.errors import ProgramError, ShapeError
from shlo_disc.shape_dialect.symbolic.expr import Expr

SIZES = (0, 1, 2, 15, 16, 17, 31, 33, 64, 97, 1000)


def some(shape: tuple[int, ...], dtype: str = "float32", share: float = 0.5) -> np.ndarray:
    """Small numbers, about `share` of them not zero."""
    rng = np.random.default_rng([*shape, int(100 * share)])
    return (rng.integers(-3, 4, shape) * (rng.random(shape) < share)).astype(dtype)


def assert_equal(got: Any, want: Any) -> None:
    got, want = (list(x) if isinstance(x, tuple) else [x] for x in (got, want))
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


# ---- on arrays ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_vectors(share: float) -> None:
    for size in SIZES:
        x = some((size,), share=share) if share < 1 else np.ones(size, np.float32)
        assert_equal(sizes.nonzero(x), np.nonzero(x))
        assert_equal(sizes.compress(x != 0, x), np.compress(x != 0, x))
        assert_equal(sizes.unique(x), np.unique(x))


@pytest.mark.parametrize("shape", [(3, 5), (16, 17), (1, 40), (0, 4), (4, 0), (2, 3, 7)])
def test_matrices(shape: tuple[int, ...]) -> None:
    x = some(shape)
    assert_equal(sizes.where(x), np.where(x))
    assert_equal(sizes.argwhere(x), np.argwhere(x))
    assert_equal(sizes.flatnonzero(x), np.flatnonzero(x))
    assert_equal(sizes.extract(x > 1, x), np.extract(x > 1, x))
    assert_equal(sizes.boolean_index(x, x > 1), x[x > 1])
    rows = some(shape[:1], "bool")
    assert_equal(sizes.boolean_index(x, rows), x[rows])
    assert_equal(sizes.compress(rows, x, axis=0), np.compress(rows, x, axis=0))
    columns = some(shape[-1:], "bool")
    assert_equal(sizes.compress(columns, x, axis=-1), np.compress(columns, x, axis=-1))
    options = {"return_index": True, "return_inverse": True, "return_counts": True}
    assert_equal(sizes.unique(x, **options), np.unique(x, **options))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float64"])
def test_dtypes(dtype: str) -> None:
    x = some((50,), dtype)
    assert_equal(sizes.nonzero(x), np.nonzero(x))
    assert_equal(sizes.extract(x != 0, x), np.extract(x != 0, x))
    want = np.unique(x, return_index=True, return_counts=True)
    assert_equal(sizes.unique(x, return_index=True, return_counts=True), want)


def test_scalars_lists_and_nan() -> None:
    assert_equal(sizes.flatnonzero([0, 3, 0, 1]), np.flatnonzero([0, 3, 0, 1]))
    assert_equal(sizes.argwhere(np.float32(2)), np.argwhere(np.float32(2)))
    with pytest.raises(ShapeError, match="scalar"):
        sizes.nonzero(np.float32(2))
    x = np.array([np.nan, 1, -0.0, np.nan, 0.0, np.inf, 1, -np.inf], np.float32)
    assert_equal(sizes.unique(x, return_counts=True), np.unique(x, return_counts=True))
    assert_equal(sizes.nonzero(x), np.nonzero(x))


def test_a_jax_array_gives_jax_arrays() -> None:
    x = jnp.asarray(some((4, 5)))
    rows, columns = sizes.nonzero(x)
    assert isinstance(rows, jax.Array) and rows.dtype == jnp.nonzero(x)[0].dtype
    np.testing.assert_array_equal(np.stack([rows, columns]), np.nonzero(np.asarray(x)))


def test_a_mask_of_another_shape_is_refused() -> None:
    with pytest.raises(ShapeError):
        sizes.compress(np.ones(3, bool), np.ones(4))
    with pytest.raises(ShapeError):
        sizes.boolean_index(np.ones((2, 3)), np.ones((3, 2), bool))
    with pytest.raises(ShapeError, match="the condition has shape"):
        shlo_disc.compile(sizes.compress, args=(("a", "bool"), ("b", "float32")))


# ---- in compiled functions ------------------------------------------------------------------------------------------


def test_all_of_jax_numpy_goes_on_with_the_size() -> None:
    def function(x: Any, w: Any) -> Any:
        i = sizes.nonzero(x)
        y = x[i]
        h = jnp.outer(y, y) @ jnp.ones((y.shape[0], 3), y.dtype) + w
        return i, jax.nn.softmax(y), y.sum() / y.shape[0], h, jnp.sort(y)

    run = shlo_disc.compile(function, args=(("b, s", "float32"), ("3", "float32")))
    w = np.arange(3, dtype=np.float32)
    for shape in [(1, 1), (3, 5), (16, 17), (33, 2)]:
        x = some(shape)
        i, p, mean, h, ordered = run(x, w)
        y = x[np.nonzero(x)]
        np.testing.assert_array_equal(np.stack(i), np.stack(np.nonzero(x)))
        np.testing.assert_allclose(p, np.exp(y) / np.exp(y).sum(), rtol=1e-6)
        np.testing.assert_allclose(mean, y.mean() if y.size else np.nan, rtol=1e-6)
        np.testing.assert_allclose(h, np.repeat(y[:, None] * y.sum(), 3, 1) + w, rtol=1e-6)
        np.testing.assert_array_equal(ordered, np.sort(y))
    assert str(run.signature).endswith("where n0 <= b*s")


def two_selections(x: Any, m: Any) -> Any:
    """The rows that m selects, then those of them with a positive sum."""
    i = sizes.flatnonzero(m)
    y = x[i]
    z = sizes.boolean_index(y, y.sum(-1) > 0)
    return z @ z.T, z, i, i.shape[0]


def test_a_selection_of_a_selection() -> None:
    run = shlo_disc.compile(two_selections, args=(("b, d", "float32"), ("b", "bool")))
    assert str(run.signature).endswith("where n0 <= b, n1 <= n0")
    for b in (1, 2, 17, 40):
        for share in (0.0, 0.5, 1.0):
            x, m = some((b, 5)), np.random.default_rng(b).random(b) < share
            square, z, i, count = run(x, m)
            want = x[m][x[m].sum(-1) > 0]
            np.testing.assert_array_equal(z, want)
            np.testing.assert_array_equal(square, want @ want.T)
            np.testing.assert_array_equal(i, np.flatnonzero(m))
            assert count == m.sum()


def test_memory_is_what_the_formula_says() -> None:
    options = shlo_disc.Options(guard_pages=False)
    run = shlo_disc.compile(two_selections, args=(("b, d", "float32"), ("b", "bool")), options=options)
    x, m = some((40, 5)), np.arange(40) % 3 == 0
    values = {"b": 40, "d": 5, "n0": int(m.sum()), "n1": int((x[m].sum(-1) > 0).sum())}
    assert run.measure_peak_memory(x, m) == run.peak_memory(**values)
    assert run.peak_memory(**values) == Expr.parse(run.peak_memory_formula).evaluate(values)
    assert [tuple(leaf.shape) for leaf in run.out_shape(**values)][1] == (values["n1"], 5)


def test_a_size_from_data_takes_a_hint() -> None:
    options = shlo_disc.Options(hints={"n0": 10_000})
    run = shlo_disc.compile(sizes.flatnonzero, args=(("b", "float32"),), options=options)
    np.testing.assert_array_equal(run(np.eye(3, dtype=np.float32)[1]), [1])


def test_a_size_without_its_positions() -> None:
    run = shlo_disc.compile(lambda x: jnp.zeros(sizes.flatnonzero(x).shape[0] + 1), args=(("b", "float32"),))
    for size in (1, 7, 40):
        x = some((size,))
        assert run(x).shape == (np.count_nonzero(x) + 1,)


@jax.jit
def positives(x: Any) -> Any:
    return sizes.extract(x > 0, x)


@pytest.mark.parametrize("spec", ["b", "9"])
def test_each_call_of_an_inner_jit_has_a_size_of_its_own(spec: str) -> None:
    for _ in range(2):  # the second compile meets what JAX remembers of the first
        run = shlo_disc.compile(lambda x: (positives(x), positives(-x)), args=((spec, "float32"),))
        x = some((9,))
        up, down = run(x)
        np.testing.assert_array_equal(up, x[x > 0])
        np.testing.assert_array_equal(down, -x[x < 0])


def test_programs_without_such_sizes_leave_what_jax_has_traced() -> None:
    text = (
        "import jax, shlo_disc\ntraces = []\n"
        "f = jax.jit(lambda x: traces.append(x) or x + 1)\n"
        "f(1.0)\nshlo_disc.compile(lambda x: x * 2, args=(('b', 'float32'),))\nf(1.0)\nprint(len(traces))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_a_jitted_function_and_names_that_are_taken() -> None:
    @shlo_disc.jit(dynamic=("n0, n1", None))
    def function(x: Any, scale: Any) -> Any:
        return sizes.boolean_index(x * scale, x[:, 0] > 0)

    for shape in [(3, 2), (8, 5)]:
        x = some(shape)
        np.testing.assert_array_equal(function(x, np.float32(2)), 2 * x[x[:, 0] > 0])
    assert function.compile_count == 1
    assert "where n2 <= n0" in str(function.executable.signature)


def test_constraints_are_explained_without_what_is_hidden() -> None:
    run = shlo_disc.compile(
        lambda x, *, y: (sizes.flatnonzero(x), y),
        args=(("b", "float32"),),
        kwargs={"y": ("s", "float32")},
        constraints=("s <= 4", "mod(b, 2) == 0"),
    )
    np.testing.assert_array_equal(run(np.eye(2, dtype=np.float32)[0], y=np.ones(4, np.float32))[0], [0])
    for b, s, expected in [(2, 5, "s <= 4"), (3, 4, "2*floordiv(b, 2) == b")]:
        with pytest.raises(ShapeError) as error:
            run(np.ones(b, np.float32), y=np.ones(s, np.float32))
        assert expected in str(error.value) and "n0" not in str(error.value) and "args[1]" not in str(error.value)
        assert f"'b' = {b}" in str(error.value) and f"'s' = {s}" in str(error.value)


def test_gradients_flow_through_what_is_selected() -> None:
    def loss(x: Any) -> Any:
        return (sizes.extract(x > 0, x) ** 3).sum()

    run = shlo_disc.compile(jax.value_and_grad(loss), args=(("b, s", "float32"),))
    for shape in [(1, 1), (3, 5), (16, 17)]:
        x = some(shape)
        value, gradient = run(x)
        np.testing.assert_allclose(value, (np.maximum(x, 0) ** 3).sum(), rtol=1e-6)
        np.testing.assert_array_equal(gradient, 3 * np.maximum(x, 0) ** 2)
        np.testing.assert_array_equal(jax.grad(loss)(x), gradient)  # on arrays as well


def test_calls_of_several_threads() -> None:
    failures: list[BaseException] = []

    def calls(seed: int) -> None:
        try:
            for size in range(seed, seed + 30):
                x = some((size,))
                assert_equal(sizes.unique(x, return_counts=True), np.unique(x, return_counts=True))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=calls, args=(1 + 7 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ---- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap])
def test_other_transformations_name_what_to_use(transform: Callable[..., Any]) -> None:
    with pytest.raises(ProgramError, match=r"shlo_disc\.jit or shlo_disc\.compile"):
        transform(lambda x: sizes.extract(x > 0, x).sum())(some((3, 4)))


def test_a_batch_of_sizes_is_refused() -> None:
    with pytest.raises(ProgramError, match="every element of the batch would have its own"):
        shlo_disc.compile(jax.vmap(sizes.flatnonzero), args=(("b, s", "float32"),))


def test_a_size_inside_of_a_loop() -> None:
    def function(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda i, y: y + sizes.extract(y > i, y).sum(), x)

    run = shlo_disc.compile(function, args=(("b", "float32"),))
    for size in SIZES:
        x = want = some((size,))
        for number in range(3):
            want = want + want[want > number].sum()
        if size:
            np.testing.assert_allclose(run(x), want, rtol=1e-5)


# ---- functions that jax.numpy does not trace ------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_searchsorted(dtype: str, side: str) -> None:
    for size in SIZES:
        a = np.sort(some((size,), dtype, share=0.9))
        if np.issubdtype(a.dtype, np.floating) and size > 2:
            a[-2:] = np.nan
        for shape in ((1,), (9,), (3, 5)):
            v = some(shape, dtype, share=0.8) * 2
            assert_equal(sizes.searchsorted(a, v, side=side), np.searchsorted(a, v, side=side))
    assert_equal(sizes.searchsorted(a, np.array([np.nan, 9]), side=side), np.searchsorted(a, [np.nan, 9], side=side))


def test_interp() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 16, 17, 97):
        xp, fp = np.sort(rng.standard_normal(size)), rng.standard_normal(size)
        x = np.concatenate([rng.standard_normal(40) * 2, xp, [xp[0] - 1, xp[-1] + 1]])
        np.testing.assert_allclose(sizes.interp(x, xp, fp), np.interp(x, xp, fp), rtol=1e-12, atol=1e-12)
        got = sizes.interp(x.reshape(1, -1), xp, fp, left=-7.0, right=8.0)
        np.testing.assert_allclose(got, np.interp(x.reshape(1, -1), xp, fp, -7.0, 8.0), rtol=1e-12, atol=1e-12)


def test_functions_of_sorted_vectors_in_a_program() -> None:
    @shlo_disc.jit(dynamic=("n", "m", "m"))
    def f(x: Any, xp: Any, fp: Any) -> Any:
        return jnp.sum(sizes.interp(x, xp, fp) ** 2) + jnp.sum(sizes.searchsorted(xp, x))

    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (3, 2), (17, 9), (5, 64)):
        x, xp, fp = (a.astype(np.float32) for a in (rng.random(n), np.sort(rng.random(m)), rng.random(m)))

        def g(x: Any, xp: Any, fp: Any) -> Any:
            return jnp.sum(jnp.interp(x, xp, fp) ** 2) + jnp.sum(jnp.searchsorted(xp, x))

        np.testing.assert_allclose(f(x, xp, fp), jax.jit(g)(x, xp, fp), rtol=1e-5)
        if m > 1:
            ours, theirs = jax.grad(f, (0, 2))(x, xp, fp), jax.jit(jax.grad(g, (0, 2)))(x, xp, fp)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), ours, theirs)
    assert f.compile_count == 1


def test_functions_of_sorted_vectors_check_their_arguments() -> None:
    with pytest.raises(ValueError, match="side is 'left' or 'right', not 'top'"):
        sizes.searchsorted(np.ones(3), np.ones(2), side="top")
    with pytest.raises(ShapeError, match="Rank mismatch|not an array of rank 2"):
        sizes.searchsorted(np.ones((3, 1)), np.ones(2))
    with pytest.raises(ShapeError, match="Rank mismatch|two vectors of one length"):
        sizes.interp(np.ones(3), np.ones((3, 1)), np.ones((3, 1)))


def test_dtypes_of_sorted_vectors() -> None:
    """Integers beyond those of f32 stay apart, and are interpolated as floats of 64 bits."""
    a, v = np.array([2**24, 2**24 + 2], np.float32), np.array([2**24 + 1, 2**24 + 3], np.int64)
    assert_equal(sizes.searchsorted(a, v), np.searchsorted(a, v))
    xp, fp = np.array([0, 2**24 + 1, 2**25 + 3]), np.array([0, 2**24 + 1, 2**25 + 3])
    assert_equal(sizes.interp(xp, xp, fp), np.interp(xp, xp, fp))
    assert sizes.interp(np.ones(2, np.float32), *np.ones((2, 3), np.float32)).dtype == np.float32
    with pytest.raises(TypeError, match="interp takes real numbers, not complex"):
        sizes.interp(np.ones(2), np.ones(2), np.ones(2) * 1j)
