# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter's kernels that move elements, read and write at indices, and stand for libraries, against XLA."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.mlir import serialize_portable_artifact

from shlo_disc.runtime.native_module import interpret
from tests.pjrt.streams import VERSION

ELEMENTS = ["bool", "uint8", "bfloat16", "int16", "float32", "uint64", "complex64", "complex128"]
INDICES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SIZES = (0, 1, 2, 2, 3, 5, 7)

Part = Callable[..., Any]


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def interpreted(function: Part, *args: Any, platform: str = "cpu") -> list[np.ndarray]:
    exported = jax.export.export(jax.jit(function, keep_unused=True), platforms=[platform])(*args)
    return interpret(exported.mlir_module_serialized, [np.asarray(a) for a in args])


def interpreted_text(text: str, *args: np.ndarray) -> list[np.ndarray]:
    """The results of a program in MLIR's text."""
    return interpret(bytes(serialize_portable_artifact(text, VERSION)), list(args))


def expect_equal(found: list[np.ndarray], expected: Any) -> None:
    """Bit by bit."""
    for i, (one, other) in enumerate(zip(found, jax.tree.leaves(expected), strict=True)):
        assert (one.shape, one.dtype) == (other.shape, other.dtype), i
        assert one.tobytes() == np.asarray(other).tobytes(), f"{i}: {one} is not {other}"


def check(function: Part, *args: Any) -> None:
    expect_equal(interpreted(function, *args), jax.jit(function, keep_unused=True)(*args))


def check_all(parts: list[Part], *args: Any) -> None:
    """All of them in one program."""
    check(lambda *traced: [part(*traced) for part in parts], *args)


def values(shape: tuple[int, ...], dtype: Any, start: int = 1) -> np.ndarray:
    return (np.arange(start, start + int(np.prod(shape))).reshape(shape) * 3 % 251).astype(jnp.dtype(dtype))


def shape_of(draw: random.Random, rank: int | None = None, sizes: tuple[int, ...] = SIZES) -> tuple[int, ...]:
    return tuple(draw.choice(sizes) for _ in range(draw.randint(0, 4) if rank is None else rank))


# ---- movement -------------------------------------------------------------------------------------------------------


def some_broadcast(draw: random.Random, x: np.ndarray) -> Part:
    target = list(shape_of(draw, x.ndim + draw.randint(0, 2)))
    axes = sorted(draw.sample(range(len(target)), x.ndim))
    for axis, size in zip(axes, x.shape, strict=True):
        target[axis] = target[axis] if size == 1 else size
    return lambda x: lax.broadcast_in_dim(x, target, axes)


def some_slice(draw: random.Random, x: np.ndarray) -> Part:
    starts = [draw.randint(0, size) for size in x.shape]
    limits = [draw.randint(start, size) for start, size in zip(starts, x.shape, strict=True)]
    strides = [draw.choice((1, 1, 2, 3, 100, 2**62)) for _ in x.shape]
    return lambda x: lax.slice(x, starts, limits, strides)


def some_padding(draw: random.Random, x: np.ndarray) -> Part:
    """Edges are taken away from what interior padding has made, but not more than there is."""
    config = []
    for size in x.shape:
        interior = draw.choice((0, 0, 1, 2, 5))
        dilated = size + max(size - 1, 0) * interior
        low = draw.randint(-dilated, 4)
        config.append((low, draw.randint(-dilated - low, 4), interior))
    return lambda x: lax.pad(x, x.dtype.type(77), config)


def some_concatenation(draw: random.Random, x: np.ndarray) -> Part:
    if x.ndim == 0:
        return lambda x: x
    axis = draw.randrange(x.ndim)
    ends = [draw.randint(0, x.shape[axis]) for _ in range(draw.randint(0, 4))]
    return lambda x: lax.concatenate([x, *(lax.slice_in_dim(x, 0, end, axis=axis) for end in ends)], axis)


def some_permutation(draw: random.Random, x: np.ndarray) -> Part:
    axes = draw.sample(range(x.ndim), x.ndim)
    return lambda x: lax.transpose(x, axes)


def some_reversal(draw: random.Random, x: np.ndarray) -> Part:
    axes = draw.sample(range(x.ndim), draw.randint(0, x.ndim))
    return lambda x: lax.rev(x, axes)


MOVEMENT = (some_broadcast, some_slice, some_padding, some_concatenation, some_permutation, some_reversal)


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_movement(dtype: str) -> None:
    draw = random.Random(dtype)
    arrays = [values(shape_of(draw), dtype) for _ in range(6)]
    parts = [(i, make(draw, x)) for i, x in enumerate(arrays) for make in MOVEMENT]
    check_all([lambda *xs, i=i, part=part: part(xs[i]) for i, part in parts], *arrays)


def test_functions_of_numpy() -> None:
    parts: list[Part] = [
        lambda x: jnp.roll(x, (2, -3), (0, 2)),
        lambda x: jnp.tile(x, (2, 1, 3)),
        lambda x: jnp.flip(x, 1),
        lambda x: x[::-2, 1:, ::-1],
        lambda x: jnp.repeat(x, 3, axis=1),
        lambda x: x.reshape(7, 15).T,
        lambda x: jnp.rot90(x, 1, (0, 2)),
        lambda x: jnp.stack([x, x[::-1]], 2),
        lambda x: lax.optimization_barrier((x, x[0])),
        lambda x: jnp.pad(x, ((1, 2), (0, 0), (3, 1)), mode="reflect"),
    ]
    check_all(parts, values((3, 5, 7), np.float32))


@pytest.mark.parametrize("dtype", INDICES)
def test_dynamic_slices(dtype: str) -> None:
    """Starts that are outside are moved, also those that no i64 holds."""
    x, info = values((5, 300), np.int16), np.iinfo(dtype)
    numbers = sorted({n for n in (info.min, -1, 0, 1, 3, 127, 255, 299, info.max) if info.min <= n <= info.max})
    starts = np.array(list(itertools.product(numbers[:3] + numbers[-1:], numbers)), dtype)

    def sliced(x: Any, starts: Any) -> list[Any]:
        update = lax.slice(x, (1, 7), (4, 12)) + 1
        both = [[s[0], s[1]] for s in starts]
        return [(lax.dynamic_slice(x, s, (2, 3)), lax.dynamic_update_slice(x, update, s)) for s in both]

    check(sliced, x, starts)


def test_dynamic_slices_without_elements() -> None:
    parts: list[Part] = [
        lambda x, i: lax.dynamic_slice(x, (i, i), (0, 3)),
        lambda x, i: lax.dynamic_update_slice(x, x[:0], (i, i)),
        lambda x, i: lax.dynamic_update_slice(x[:0], x[:0], (i, i)),
        lambda x, i: lax.dynamic_slice(x[0, 0], (), ()),
    ]
    check_all(parts, values((2, 5), np.float32), np.int32(7))


# ---- gather and scatter ---------------------------------------------------------------------------------------------


def test_indexing() -> None:
    parts: list[Part] = [
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x[i, :, i],
        lambda x, i: x[i[:, None], i[None]],
        lambda x, i: jnp.take(x, i, axis=2, mode="clip"),
        lambda x, i: jnp.take_along_axis(x, i[None, :, None], 2, mode="clip"),
        lambda x, i: jax.vmap(lambda row, at: row.at[at].get(mode="clip"))(x, i[:4]),
        lambda x, i: jax.vmap(lambda row, at: lax.dynamic_slice(row, (at, at), (2, 3)))(x, i[:4]),
        lambda x, i: x[i[:0]],
    ]
    check_all(parts, values((4, 5, 7), np.float32), np.array([0, 3, -1, 2, -4], np.int32))


@pytest.mark.parametrize("dtype", ["int8", "uint32", "bfloat16", "float32", "complex64"])
def test_scattering(dtype: str) -> None:
    """Several updates of one element are made one after the other."""

    def add(x: Any, i: Any, mode: str) -> list[Any]:
        at, row = x.at[i], x.at[:, i]
        u = x[:5, 0, 0]
        out = [at.set(x[:5] * 2, mode=mode), row.add(x[:, :5] - 7, mode=mode), at.mul(x[:5], mode=mode)]
        out += [x.at[i, i, i].add(u, mode=mode), x.at[i[:0]].add(1), x[:0].at[i].add(1, mode="drop")]
        if not np.iscomplexobj(x):
            out += [at.min(x[1], mode=mode), at.max(x[2], mode=mode)]
        return out

    x = values((6, 5, 7), dtype)
    x = x if x.dtype.kind in "iu" else (x / x.dtype.type(7)).astype(dtype)
    check(lambda x, i: [add(x, i, "clip"), add(x, i, "drop")], x, np.array([0, 3, 3, -1, 17], np.int32))


def test_batches_are_scattered() -> None:
    parts: list[Part] = [
        lambda x, i: jax.vmap(lambda row, at: row.at[at].add(2.5, mode="drop"))(x, i),
        lambda x, i: jax.vmap(lambda row, at: lax.dynamic_update_slice(row, row[1:3, 2:], (at, at)))(x, i),
        lambda x, i: jax.vmap(jax.vmap(lambda row, at: row.at[at].set(7, mode="drop")), (0, None))(x, i),
        lambda x, i: jax.grad(lambda x: (x[i] ** 2).sum())(x),
    ]
    check_all(parts, values((5, 5, 7), np.float32), np.array([0, 9, -1, 2, 4], np.int32))


class WindowAxes(NamedTuple):
    """The axes of windows, in the order of JAX."""

    offset: tuple[int, ...]
    dropped: tuple[int, ...]
    index_map: tuple[int, ...]
    operand_batching: tuple[int, ...]
    index_batching: tuple[int, ...]


def some_numbers(draw: random.Random) -> tuple[np.ndarray, np.ndarray, WindowAxes, tuple[int, ...]]:
    """An operand, indices around its sizes, and windows with their sizes."""
    shape = shape_of(draw, draw.randint(1, 4), (1, 2, 3, 5))
    batching = tuple(sorted(draw.sample(range(len(shape)), draw.randint(0, len(shape) // 2))))
    free = [axis for axis in range(len(shape)) if axis not in batching]
    dropped = tuple(sorted(draw.sample(free, draw.randint(0, len(free)))))
    index_map = tuple(draw.sample(free, draw.randint(0, len(free))))
    kept = [draw.randint(draw.choice((0, 1, 1, 1, 1)), size) for size in shape]
    sizes = tuple(1 if axis in batching + dropped else size for axis, size in enumerate(kept))
    batch = list(shape_of(draw, draw.randint(len(batching), len(batching) + 2), (1, 2, 3)))
    index_batching = tuple(draw.sample(range(len(batch)), len(batching)))
    for axis, own in zip(batching, index_batching, strict=True):
        batch[own] = shape[axis]
    count = len(free) - len(dropped)
    offset = tuple(sorted(draw.sample(range(len(batch) + count), count)))
    total = int(np.prod(batch)) * len(index_map)
    indices = np.array([draw.randint(-2, 5) for _ in range(total)], np.int32).reshape(*batch, len(index_map))
    axes = WindowAxes(offset, dropped, index_map, batching, index_batching)
    return values(shape, draw.choice(("int8", "float32"))), indices, axes, sizes


def test_any_gather() -> None:
    draw, parts, args = random.Random(5), [], []
    for k in range(40):
        x, indices, axes, sizes = some_numbers(draw)
        numbers = lax.GatherDimensionNumbers(*axes)
        args += [x, indices]
        for mode in ("clip", "promise_in_bounds"):
            parts.append(lambda *a, k=k, n=numbers, s=sizes, m=mode: lax.gather(a[2 * k], a[2 * k + 1], n, s, mode=m))
    check_all(parts, *args)


def test_any_scatter() -> None:
    """Windows that lie partly outside are left out as a whole, as on XLA's CPU.

    Of updates that have no index at all, XLA makes only the last one.
    """
    draw, parts, args = random.Random(9), [], []
    drawn = (some_numbers(draw) for _ in itertools.count())
    for k, (x, indices, axes, sizes) in enumerate(itertools.islice((d for d in drawn if d[2].index_map), 24)):
        numbers = lax.ScatterDimensionNumbers(*axes)
        shape = list(indices.shape[:-1])
        kept = [n for a, n in enumerate(sizes) if a not in axes.dropped + axes.operand_batching]
        for axis, size in zip(axes.offset, kept, strict=True):
            shape.insert(axis, size)
        args += [x, indices, values(tuple(shape), x.dtype, 40)]
        scatter = draw.choice((lax.scatter, lax.scatter_add, lax.scatter_mul, lax.scatter_min))
        mode = draw.choice(("clip", "drop", "promise_in_bounds"))
        parts.append(lambda *a, k=k, n=numbers, f=scatter, mode=mode: f(*a[3 * k : 3 * k + 3], n, mode=mode))
    check_all(parts, *args)


INDEX_VECTORS = """func.func public @main(%x: tensor<5x7xf32>, %i: tensor<2x3x4xi64>) -> (
    tensor<3x4x2xf32>, tensor<2x3x4xf32>, tensor<5x7xf32>, tensor<5x7xf32>) {{
  %windows = "stablehlo.gather"(%x, %i) {{slice_sizes = array<i64: 2, 1>, dimension_numbers = #stablehlo.gather<
    offset_dims = [2], collapsed_slice_dims = [1], start_index_map = [1, 0], index_vector_dim = 0>}}
    : (tensor<5x7xf32>, tensor<2x3x4xi64>) -> tensor<3x4x2xf32>
  %elements = "stablehlo.gather"(%x, %i) {{slice_sizes = array<i64: 1, 1>, dimension_numbers = #stablehlo.gather<
    collapsed_slice_dims = [0, 1], start_index_map = [1], index_vector_dim = 3>}}
    : (tensor<5x7xf32>, tensor<2x3x4xi64>) -> tensor<2x3x4xf32>
  %both:2 = "stablehlo.scatter"(%x, %x, %i, %windows, %windows) <{{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1],
    scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 0>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %u: tensor<f32>, %v: tensor<f32>):
    %sum = stablehlo.add %a, %v : tensor<f32>
    %difference = stablehlo.subtract %b, %a : tensor<f32>
    stablehlo.return %sum, %difference : tensor<f32>, tensor<f32>
  }}) : (tensor<5x7xf32>, tensor<5x7xf32>, tensor<2x3x4xi64>, tensor<3x4x2xf32>, tensor<3x4x2xf32>)
    -> (tensor<5x7xf32>, tensor<5x7xf32>)
  return %windows, %elements, %both#0, %both#1
    : tensor<3x4x2xf32>, tensor<2x3x4xf32>, tensor<5x7xf32>, tensor<5x7xf32>
}}"""


def test_any_axis_of_index_vectors() -> None:
    """JAX has it last; others need not, and may leave it out. Two arrays are scattered to at a time."""
    draw = random.Random(3)
    x, i = values((5, 7), np.float32), np.array([draw.randint(-1, 6) for _ in range(24)]).reshape(2, 3, 4)
    windows, elements, first, second = interpreted_text(INDEX_VECTORS.format(), x, i)
    rows, columns = np.clip(i[1], 0, 3), np.clip(i[0], 0, 6)
    expect_equal([windows, elements], [np.stack([x[rows, columns], x[rows + 1, columns]], 2), x[0, np.clip(i, 0, 6)]])
    a, b = x.copy(), x.copy()
    for (row, column), window in zip(i[::-1].reshape(2, -1).T, windows.reshape(-1, 2), strict=True):
        if 0 <= row <= 3 and 0 <= column <= 6:
            here = np.s_[row : row + 2, column]
            a[here], b[here] = a[here] + window, b[here] - a[here]
    expect_equal([first, second], [a, b])


# ---- libraries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", list(lax.RandomAlgorithm))
def test_random_bits(algorithm: lax.RandomAlgorithm) -> None:
    """The second state's counter overflows."""
    shapes = ((), (1,), (2,), (7,), (3, 5), (4, 3), (3, 7, 5), (3, 0), (2, 3, 2))
    cases = list(itertools.product(shapes, (np.uint8, np.uint16, np.uint32, np.uint64)))
    check(lambda *keys: [lax.rng_bit_generator(key, shape, dtype, algorithm) for key in keys for shape, dtype in cases],
          np.array([1, 2, 3, 4], np.uint32), np.array([7, 2**64 - 2], np.uint64))  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_matrices(dtype: str) -> None:
    """Within rounding; a matrix that is not positive definite has no factor."""
    draw = np.random.default_rng(4)
    a = draw.normal(size=(2, 5, 5)) + (1j * draw.normal(size=(2, 5, 5)) if "complex" in dtype else 0)
    a = (a @ a.conj().swapaxes(1, 2) + np.eye(5)).astype(dtype)
    b = draw.normal(size=(2, 5, 3)).astype(dtype)
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-11

    def solved(a: Any, b: Any) -> list[Any]:
        options = itertools.product((False, True), repeat=4)
        solve = lax.linalg.triangular_solve
        return [solve(a, b if left else b.swapaxes(1, 2), left_side=left, lower=lower, unit_diagonal=unit,
                      transpose_a=transpose, conjugate_a=transpose and lower)
                for left, lower, unit, transpose in options]  # fmt: skip

    expected = jax.tree.leaves(jax.jit(solved)(a, b))
    for one, other in zip(interpreted(solved, a, b, platform="tpu"), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())
    factored = lambda a: (lax.linalg.cholesky(a), lax.linalg.cholesky(-a), lax.linalg.cholesky(a[:, :0, :0]))  # noqa: E731
    expected = jax.tree.leaves(jax.jit(factored)(a))
    for one, other in zip(interpreted(factored, a, platform="tpu"), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fourier_transforms(dtype: str) -> None:
    """Within rounding."""
    x = np.random.default_rng(4).normal(size=(2, 3, 5, 7, 8)).astype(dtype)

    def transforms(x: Any) -> list[Any]:
        out = []
        for axes in ((-1,), (-2, -1), (-3, -2, -1)):
            spectrum = jnp.fft.rfftn(x, axes=axes)
            out += [spectrum, jnp.fft.fftn(spectrum, axes=axes), jnp.fft.ifftn(spectrum, axes=axes)]
            out += [jnp.fft.irfftn(spectrum + 1j, s=x.shape[-len(axes) :], axes=axes), jnp.fft.rfftn(x[:0], axes=axes)]
            out += [jnp.fft.irfftn(spectrum, s=(*x.shape[5 - len(axes) : -1], 9), axes=axes)]
        return out

    tolerance = 1e-5 if dtype == "float32" else 1e-13
    for one, other in zip(interpreted(transforms, x), jax.tree.leaves(jax.jit(transforms)(x)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * np.abs(other).max(initial=1))
