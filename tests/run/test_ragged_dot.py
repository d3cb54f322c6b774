# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups of rows (`jax.lax.ragged_dot`), by rows and by contraction, against a loop over the groups.

Sizes lie on both sides of what the runtime decides at: a vector, 6 and 8 rows together, 128 rows and 512 columns of a
block (256 of f64), 128 or 192 terms; groups are empty, alone, equal, or have fewer rows than there are between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.errors import ShapeError
from shlo_disc.importer import jax_ragged_dot
from shlo_disc.lowering_cpu.backend import CpuBackend
from shlo_disc.lowering_cpu.policy import CPU_POLICY
from tests.run.op_check import run_xla

WIDTHS = (512, 256, 128, 0)
"""Bits of the registers that the program may use; with 128, the runtime has no kernels for them, and with 0, as on
GPUs, products are those of masked rows."""
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
LEAST = {"float16": 2.0**-24}
"""The distance of the least numbers."""

ROWS = lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0])
CONTRACTION = lax.RaggedDotDimensionNumbers((([0], [0]), ([], [])), [0], [])


def loop(x: Any, w: Any, sizes: Any) -> np.ndarray:
    """x (rows, terms), w (groups, terms, columns)."""
    x, w = np.asarray(x, np.float64), np.asarray(w, np.float64)
    result = np.zeros((len(x), w.shape[2]))
    first = 0
    for matrix, size in zip(w, sizes, strict=True):
        past = min(first + max(int(size), 0), len(x))
        result[first:past] = x[first:past] @ matrix
        first = past
    return result


def contracted(x: Any, y: Any, sizes: Any) -> np.ndarray:
    """x (rows, m), y (rows, columns)."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    ends = np.minimum(np.cumsum(np.maximum(np.asarray(sizes, np.int64), 0)), len(x))
    starts = [0, *ends[:-1]]
    return np.stack([x[a:b].T @ y[a:b] for a, b in zip(starts, ends, strict=True)])


def near(got: Any, want: np.ndarray, scale: np.ndarray, terms: int) -> None:
    """Sums of `terms` products whose absolute values sum to `scale`, rounded to the type of `got`."""
    name = np.asarray(got).dtype.name
    epsilon = EPSILON["float64" if name == "float64" else "float32"]
    bound = 4 * np.sqrt(terms + 1) * epsilon * scale + EPSILON[name] * np.abs(want) + LEAST.get(name, 0)
    assert got.shape == want.shape
    wrong = np.abs(np.asarray(got, np.float64) - want) > bound
    assert not wrong.any(), np.argwhere(wrong)[:5]


def random(shape: Sequence[int], dtype: str, seed: int = 0) -> Any:
    with jax.enable_x64(True):
        return jnp.asarray(np.random.default_rng([seed, *shape]).standard_normal(tuple(shape)), dtype)


def group_sizes(rows: int, groups: int) -> list[list[int]]:
    """Equal, random, one with all, none, fewer than the rows, and more."""
    rng = np.random.default_rng([rows, groups])
    alone = [0] * groups
    alone[groups // 2] = rows
    fewer = rng.multinomial(rows - rows // 3, np.ones(groups) / groups)
    return [[rows // groups] * groups, [*rng.multinomial(rows, rng.dirichlet(np.ones(groups)))], alone, [0] * groups,
            [*fewer], [rows] * groups]  # fmt: skip


def compiled(function: Callable[..., Any], specs: Sequence[tuple[str, str]]) -> Any:
    with jax.enable_x64(True):
        return shlo_disc.compile(function, args=tuple(specs))


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The width of registers that programs of the test may use."""
    monkeypatch.setattr(CpuBackend, "policy", replace(CPU_POLICY, vector_bits=request.param))
    return request.param


def check_rows(executable: Any, x: Any, w: Any, sizes: Sequence[int], kind: str = "int32") -> None:
    got = executable(x, w, np.asarray(sizes, kind))
    scale = loop(np.abs(np.asarray(x, np.float64)), np.abs(np.asarray(w, np.float64)), sizes)
    near(got, loop(x, w, sizes), scale, x.shape[1])


@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes_by_rows(dtype: str) -> None:
    executable = compiled(lax.ragged_dot, [("m, k", dtype), ("5, k, n", dtype), ("5", "int32")])
    for m, k, n in ((1, 1, 1), (5, 7, 3), (8, 16, 15), (33, 129, 17), (97, 193, 65), (641, 64, 513), (300, 300, 1025)):
        x, w = random((m, k), dtype), random((5, k, n), dtype)
        for sizes in group_sizes(m, 5):
            check_rows(executable, x, w, sizes)


@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes_by_contraction(dtype: str) -> None:
    def function(x: Any, y: Any, sizes: Any) -> Any:
        return lax.ragged_dot_general(x, y, sizes, CONTRACTION)

    executable = compiled(function, [("m, k", dtype), ("m, n", dtype), ("5", "int32")])
    for m, k, n in ((1, 1, 1), (5, 7, 3), (33, 129, 17), (97, 193, 65), (641, 64, 513)):
        x, y = random((m, k), dtype), random((m, n), dtype)
        for sizes in group_sizes(m, 5):
            scale = contracted(np.abs(x), np.abs(y), sizes)
            near(executable(x, y, np.asarray(sizes, "int32")), contracted(x, y, sizes), scale, m)


@pytest.mark.parametrize(
    ("dtype", "columns"), [("float32", 512), ("float32", 520), ("bfloat16", 1024), ("float64", 264)]
)
def test_large_results(dtype: str, columns: int) -> None:
    """Results that bypass the caches where rows are whole lines of these: few terms, many, none; rows of no group."""
    matrices, rows = 26, 512

    def function(x: Any, y: Any, sizes: Any) -> Any:
        return lax.ragged_dot_general(x, y, sizes, CONTRACTION)

    executable = compiled(function, [("m, k", dtype), ("m, n", dtype), (str(matrices), "int32")])
    x, y = random((160, rows), dtype), random((160, columns), dtype)
    for sizes in ([1, 0, 9, 65, 20], [0, 0, 160], [2, 3]):
        given = [*sizes, *[0] * (matrices - len(sizes))]
        scale = contracted(np.abs(np.asarray(x, np.float64)), np.abs(np.asarray(y, np.float64)), given)
        near(executable(x, y, np.asarray(given, "int32")), contracted(x, y, given), scale, 160)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_layouts(dtype: str) -> None:
    """Each operand with its last two axes in either order, and the groups at each axis of rhs."""
    m, k, n, groups = 50, 37, 70, 4
    x, w, y = random((m, k), dtype), random((groups, k, n), dtype), random((m, n), dtype)
    sizes = [13, 0, 20, 9]
    absolute = [np.abs(np.asarray(v, np.float64)) for v in (x, w, y)]
    for flips_x, order in itertools.product((False, True), itertools.permutations(range(3))):
        numbers = lax.RaggedDotDimensionNumbers(
            (([0 if flips_x else 1], [order.index(1)]), ([], [])), [1 if flips_x else 0], [order.index(0)]
        )
        given = x.T if flips_x else x
        axes = ", ".join((str(groups), "k", "n")[axis] for axis in order)
        executable = compiled(
            lambda x, w, s, numbers=numbers: lax.ragged_dot_general(x, w, s, numbers, preferred_element_type="float32"),
            [("k, m" if flips_x else "m, k", dtype), (axes, dtype), ("4", "int32")],
        )
        got = executable(given, jnp.transpose(w, order), np.asarray(sizes, "int32"))
        near(got, loop(x, w, sizes), loop(*absolute[:2], sizes), k)
    for flips_x, flips_y in itertools.product((False, True), repeat=2):
        numbers = lax.RaggedDotDimensionNumbers((([int(flips_x)], [int(flips_y)]), ([], [])), [int(flips_x)], [])
        executable = compiled(
            lambda x, y, s, numbers=numbers: lax.ragged_dot_general(x, y, s, numbers, preferred_element_type="float32"),
            [("k, m" if flips_x else "m, k", dtype), ("n, m" if flips_y else "m, n", dtype), ("4", "int32")],
        )
        got = executable(x.T if flips_x else x, y.T if flips_y else y, np.asarray(sizes, "int32"))
        near(got, contracted(x, y, sizes), contracted(absolute[0], absolute[2], sizes), m)


@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves(dtype: str) -> None:
    """Sums are f32 and are rounded once, or not at all where f32 is preferred; values from tiny to infinite."""
    for preferred in (None, "float32"):
        executable = compiled(
            lambda x, w, s, p=preferred: lax.ragged_dot(x, w, s, preferred_element_type=p),
            [("m, k", dtype), ("3, k, n", dtype), ("3", "int32")],
        )  # fmt: skip
        for m, k, n in ((1, 1, 1), (20, 33, 17), (140, 200, 530)):
            check_rows(executable, random((m, k), dtype), random((3, k, n), dtype), [m // 2, 0, m - m // 2])
        special = jnp.asarray([[1.0], [2.0**-20], [np.inf], [np.nan], [60000.0], [-0.0]], dtype)
        got = np.asarray(executable(special, jnp.ones((3, 1, 2), dtype), np.asarray([2, 2, 2], "int32")), np.float32)
        np.testing.assert_array_equal(got, np.repeat(np.asarray(special, np.float32), 2, axis=1))


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "int8", "uint16"])
def test_types_of_sizes(kind: str) -> None:
    with jax.enable_x64(True):
        executable = compiled(lax.ragged_dot, [("m, 9", "float32"), ("3, 9, 20", "float32"), ("3", kind)])
        for sizes in ([4, 0, 6], [0, 0, 10], [3, 3, 3]):
            check_rows(executable, random((10, 9), "float32"), random((3, 9, 20), "float32"), sizes, kind)


def test_negative_sizes_are_no_rows() -> None:
    executable = compiled(lax.ragged_dot, [("m, 9", "float32"), ("3, 9, 20", "float32"), ("3", "int32")])
    check_rows(executable, random((10, 9), "float32"), random((3, 9, 20), "float32"), [4, -3, 5])


def test_other_groups_do_not_matter() -> None:
    """A group's matrix with infinities or NaN is no part of other groups' rows, and an empty group's of none."""
    executable = compiled(lax.ragged_dot, [("m, 4", "float32"), ("3, 4, 20", "float32"), ("3", "int32")])
    x, w = random((10, 4), "float32"), np.array(random((3, 4, 20), "float32"))
    w[1], w[2, 0, 3] = np.nan, np.inf
    got = np.asarray(executable(x, w, np.asarray([6, 0, 4], "int32")))
    assert np.isfinite(got[:6]).all() and np.isfinite(np.delete(got[6:], 3, axis=1)).all()
    assert not np.isfinite(got[6:, 3]).any()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_many_groups(threads: int) -> None:
    """Thousands of groups, most of them empty or of a row or two, and results that do not depend on the threads."""
    executable = shlo_disc.compile(
        lax.ragged_dot, args=(("m, 8", "float32"), ("3000, 8, 24", "float32"), ("3000", "int32")),
        options=shlo_disc.Options(threads=threads),
    )  # fmt: skip
    x, w = random((4001, 8), "float32"), random((3000, 8, 24), "float32")
    sizes = np.random.default_rng(1).multinomial(4001, np.ones(3000) / 3000).astype("int32")
    check_rows(executable, x, w, sizes.tolist())
    alone = shlo_disc.compile(
        lax.ragged_dot, args=(("m, 8", "float32"), ("3000, 8, 24", "float32"), ("3000", "int32")),
        options=shlo_disc.Options(threads=1),
    )  # fmt: skip
    np.testing.assert_array_equal(executable(x, w, sizes), alone(x, w, sizes))


def test_gradients() -> None:
    """Equality with JAX's form, also where groups have fewer rows than there are; no product of all groups is left."""

    def loss(x: Any, w: Any, sizes: Any) -> Any:
        return jnp.sum(jnp.tanh(lax.ragged_dot(x, w, sizes)))

    function = jax.value_and_grad(loss, argnums=(0, 1))
    executable = compiled(function, [("m, 12", "float32"), ("4, 12, 20", "float32"), ("4", "int32")])
    assert [kernel.name for kernel in executable.kernels].count("ragged_dot") == 3
    for m in (1, 7, 40, 131):
        x, w = random((m, 12), "float32"), random((4, 12, 20), "float32")
        for sizes in group_sizes(m, 4)[:5]:
            given = (x, w, np.asarray(sizes, "int32"))
            for a, b in zip(
                jax.tree.leaves(executable(*given)), jax.tree.leaves(run_xla(function, given)), strict=True
            ):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_transposed_operands_are_read_where_they_lie() -> None:
    def function(x: Any, w: Any, sizes: Any) -> Any:
        return lax.ragged_dot(x.T, jnp.swapaxes(w, 1, 2), sizes)

    executable = compiled(function, [("k, m", "float32"), ("3, n, k", "float32"), ("3", "int32")])
    assert [kernel.name for kernel in executable.kernels] == ["ragged_dot"]
    x, w = random((33, 50), "float32"), random((3, 21, 33), "float32")
    given = (x, w, np.asarray([7, 30, 13], "int32"))
    np.testing.assert_allclose(executable(*given), run_xla(function, given), rtol=1e-5, atol=1e-4)


def test_batches_and_other_forms_are_jax_s() -> None:
    """Batches, ragged batches, and integers."""

    def batched(x: Any, w: Any, sizes: Any) -> Any:
        return jax.vmap(lax.ragged_dot)(x, w, sizes)

    executable = compiled(batched, [("b, m, 6", "float32"), ("b, 3, 6, 8", "float32"), ("b, 3", "int32")])
    given = (random((2, 9, 6), "float32"), random((2, 3, 6, 8), "float32"), np.asarray([[3, 3, 3], [9, 0, 0]], "int32"))
    np.testing.assert_allclose(executable(*given), run_xla(batched, given), rtol=1e-5, atol=1e-5)
    integers = compiled(lax.ragged_dot, [("m, 6", "int32"), ("3, 6, 8", "int32"), ("3", "int32")])
    x, w = np.arange(54, dtype="int32").reshape(9, 6), np.arange(144, dtype="int32").reshape(3, 6, 8)
    np.testing.assert_array_equal(integers(x, w, np.asarray([2, 3, 4], "int32")), loop(x, w, [2, 3, 4]))


def test_an_offset_of_groups_is_refused_as_by_jax() -> None:
    """The primitive has one, which JAX cannot trace today and does not implement: the rule does not pass it over."""
    x, w = random((9, 6), "float32"), random((3, 6, 8), "float32")
    parameters = {"ragged_dot_dimension_numbers": ROWS, "group_offset": np.asarray([1])}
    with pytest.raises(NotImplementedError, match="group_offset"):
        jax_ragged_dot._ragged_dot(x, w, np.asarray([3, 3, 3], "int32"), **parameters)


def test_sizes_that_do_not_fit() -> None:
    executable = compiled(lax.ragged_dot, [("m, k", "float32"), ("3, k, 8", "float32"), ("3", "int32")])
    with pytest.raises(ShapeError, match="k"):
        executable(np.ones((9, 6), "float32"), np.ones((3, 7, 8), "float32"), np.asarray([3, 3, 3], "int32"))


def test_mixture_of_experts_is_one_program() -> None:
    """Rows sorted by expert, gathered, multiplied twice and put back: as written for JAX, any load of the experts."""

    def experts(x: Any, router: Any, up: Any, down: Any) -> Any:
        scores, chosen = lax.top_k(x @ router, 2)
        flat = chosen.reshape(-1)
        order = jnp.argsort(flat)
        sizes = jnp.bincount(flat, length=8)
        rows = x[order // 2]
        hidden = jax.nn.silu(lax.ragged_dot(rows, up, sizes))
        out = lax.ragged_dot(hidden, down, sizes) * jax.nn.softmax(scores, -1).reshape(-1)[order][:, None]
        return jnp.zeros_like(x).at[order // 2].add(out)

    executable = compiled(
        experts, [("t, 16", "float32"), ("16, 8", "float32"), ("8, 16, 32", "float32"), ("8, 32, 16", "float32")]
    )
    weights = [random(shape, "float32", 3) for shape in ((16, 8), (8, 16, 32), (8, 32, 16))]
    for tokens in (1, 2, 17, 100):
        given = (random((tokens, 16), "float32"), *weights)
        np.testing.assert_allclose(executable(*given), run_xla(experts, given), rtol=2e-4, atol=2e-5)


def test_gpu_programs_are_emitted() -> None:
    """On GPUs it is a product of masked rows, as XLA's."""
    args = (("m, 64", "float32"), ("4, 64, 32", "float32"), ("4", "int32"))
    program = shlo_disc.compile(lax.ragged_dot, args=args, target="cuda:sm_90a")
    assert ".visible .entry" in program.as_text("ptx")


@pytest.mark.slow
@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("seed", range(30))
def test_random_products(seed: int) -> None:
    """Any form, element type, number of groups and sizes, four sizes a program; some sizes are static."""
    rng = np.random.default_rng(seed)
    dtype, groups = str(rng.choice(list(EPSILON))), int(rng.integers(1, 40))
    contracts, flips = bool(rng.integers(2)), [int(rng.integers(2)) for _ in range(2)]
    static = {name: int(rng.choice([1, 3, 16, 65, 130])) for name in "kn" if rng.random() < 0.4}
    m, k, n = (str(static.get(name, name)) for name in "mkn")
    left, right = ([m, k], [m, n]) if contracts else ([m, k], [k, n])
    left, right = left[::-1] if flips[0] else left, right[::-1] if flips[1] else right
    if contracts:
        numbers = lax.RaggedDotDimensionNumbers((([flips[0]], [flips[1]]), ([], [])), [flips[0]], [])
    else:
        numbers = lax.RaggedDotDimensionNumbers((([1 - flips[0]], [1 + flips[1]]), ([], [])), [flips[0]], [0])
        right = [str(groups), *right]
    executable = compiled(
        lambda x, y, s: lax.ragged_dot_general(x, y, s, numbers),
        [(", ".join(left), dtype), (", ".join(right), dtype), (str(groups), "int32")],
    )
    for _ in range(4):
        size = {name: static.get(name, int(rng.choice([1, 2, 7, 8, 31, 129, 300, 700]))) for name in "mkn"}
        x = random((size["m"], size["k"]), dtype, seed)
        y = random((size["m"] if contracts else groups, *([] if contracts else [size["k"]]), size["n"]), dtype, seed)
        sizes = rng.choice(group_sizes(size["m"], groups)).tolist()
        reference, terms = (contracted, size["m"]) if contracts else (loop, size["k"])
        scale = reference(np.abs(np.asarray(x, np.float64)), np.abs(np.asarray(y, np.float64)), sizes)
        given = x.T if flips[0] else x, jnp.swapaxes(y, -1, -2) if flips[1] else y, np.asarray(sizes, "int32")
        near(executable(*given), reference(x, y, sizes), scale, terms)
