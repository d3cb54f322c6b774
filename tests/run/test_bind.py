# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that are packed once: bound arguments, constants, and immutable arrays that come again."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import shlo_disc
from shlo_disc.runtime import Client

ROWS = (1, 2, 3, 4, 5, 13, 14, 15, 31, 100)
CONSTANT = np.random.default_rng(9).standard_normal((64, 96)).astype(np.float32)


def model(params: dict[str, Any], x: Any, scale: Any) -> Any:
    """Weights of every kind: read by products only, by something else too, as they lie and transposed; a constant."""
    h = jnp.tanh(x @ params["first"] + params["bias"])
    g = h @ params["tied"] + jnp.sum(params["tied"]) * scale
    return g @ CONSTANT, h @ params["first"].T


def params_of(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"first": (64, 128), "bias": (128,), "tied": (128, 64)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def executable() -> shlo_disc.Executable:
    (b,) = export.symbolic_shape("b")
    params = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), params_of(0))
    scalar = jax.ShapeDtypeStruct((), np.float32)
    exported = export.export(jax.jit(model))(params, jax.ShapeDtypeStruct((b, 64), np.float32), scalar)
    return shlo_disc.compile(exported)


def rows_of(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, 64)).astype(np.float32)


def assert_right(got: Any, params: dict[str, np.ndarray], x: np.ndarray) -> None:
    for actual, expected in zip(got, jax.jit(model)(params, x, np.float32(0.5)), strict=True):
        error = np.abs(np.asarray(actual) - np.asarray(expected)).max() / np.abs(np.asarray(expected)).max()
        assert error < 2e-6


def test_bound_weights_serve_every_shape(executable: shlo_disc.Executable) -> None:
    params = params_of(1)
    bound = executable.bind(params)
    for count in ROWS:
        assert_right(bound(rows_of(count), np.float32(0.5)), params, rows_of(count))


def test_bound_arrays_may_change_afterwards(executable: shlo_disc.Executable) -> None:
    params, kept = params_of(2), params_of(2)
    bound = executable.bind(params)
    for array in params.values():
        array[...] = np.nan
    assert_right(bound(rows_of(5), np.float32(0.5)), kept, rows_of(5))


def test_two_bindings_of_one_program(executable: shlo_disc.Executable) -> None:
    first, second = executable.bind(params_of(3)), executable.bind(jax.tree.map(jnp.asarray, params_of(4)))
    x = rows_of(17)
    for _ in range(2):
        assert_right(first(x, np.float32(0.5)), params_of(3), x)
        assert_right(second(x, np.float32(0.5)), params_of(4), x)
    assert isinstance(first(x, np.float32(1))[0], np.ndarray)
    assert isinstance(second(x, np.float32(1))[0], jax.Array)


def test_packed_weights_are_kept_once(executable: shlo_disc.Executable) -> None:
    header = executable.artifact.header
    paths = [row["path"] for row in header["arguments"]]
    assert [paths[i] for i in header["packed_only"] if i < len(paths)] == ["args[0]['first']"]
    before = executable.memory_stats()["constant_bytes"]
    bound = executable.bind(params_of(5))
    packed, read_otherwise = 4 * (64 * 128 + 128 * 64 + 128 * 64), 4 * (128 + 128 * 64)
    assert executable.memory_stats()["constant_bytes"] - before == packed + read_otherwise
    del bound
    assert executable.memory_stats()["constant_bytes"] == before


def test_weights_take_no_larger_block_of_what_calls_gave_back() -> None:
    """Calls would take fresh memory instead, and a weight hold more than it needs for as long as it is bound."""
    compiled = shlo_disc.compile(lambda w, x: x @ w, args=(("64, 1024", "float32"), ("m, 64", "float32")))
    client = Client(threads=1)
    program = client.load(compiled.artifact)
    w, x = np.ones((64, 1024), np.float32), np.ones((500, 64), np.float32)
    assert (program.execute((w, x), output="numpy") == 64).all()
    free = client.devices()[0].memory_stats()["cached_bytes"]
    assert free >= 4 * 500 * 1024
    bound = program.bind(w)
    assert client.devices()[0].memory_stats()["cached_bytes"] == free
    assert (bound(x) == 64).all()


def test_immutable_arrays_that_come_again(executable: shlo_disc.Executable) -> None:
    """Packed at the second call with the same arrays; other arrays in their place are noticed."""
    x = rows_of(7)
    before = executable.memory_stats()["constant_bytes"]
    for seed in (6, 7, 6):
        params = jax.tree.map(jnp.asarray, params_of(seed))
        for _ in range(3):
            assert_right(executable(params, x, np.float32(0.5)), params_of(seed), x)
    assert executable.memory_stats()["constant_bytes"] > before
    assert_right(executable(params_of(8), x, np.float32(0.5)), params_of(8), x)
    assert executable.memory_stats()["constant_bytes"] == before


def test_mutable_arrays_are_read_anew(executable: shlo_disc.Executable) -> None:
    params, x = params_of(9), rows_of(6)
    for seed in (9, 10, 11):
        for name, array in params_of(seed).items():
            params[name][...] = array
        assert_right(executable(params, x, np.float32(0.5)), params_of(seed), x)


def test_wrong_bindings(executable: shlo_disc.Executable) -> None:
    params = params_of(12)
    with pytest.raises(shlo_disc.ArgumentTypeError, match="bind got 4 arguments; 'model' takes 3"):
        executable.bind(params, 1, 2, 3)
    with pytest.raises(shlo_disc.ArgumentTypeError, match="structural differences"):
        executable.bind({"first": params["first"]})
    with pytest.raises(shlo_disc.ShapeError, match="first"):
        executable.bind({**params, "first": params["first"].T})
    with pytest.raises(shlo_disc.ArgumentTypeError, match="float64"):
        executable.bind({**params, "bias": params["bias"].astype(np.float64)})
    bound = executable.bind(params)
    with pytest.raises(shlo_disc.ArgumentTypeError, match=r"(?s)args counts the 1 .*length 4 .*length 3"):
        bound(params, rows_of(1), np.float32(1))
    with pytest.raises(shlo_disc.ArgumentTypeError, match=r"   - args\[1\] is a <class 'list'>"):
        bound([rows_of(1)], np.float32(1))
    with pytest.raises(shlo_disc.ShapeError, match=r"args\[1\]"):
        bound(rows_of(1).T, np.float32(1))


def test_donated_arrays_are_deleted(executable: shlo_disc.Executable) -> None:
    params = params_of(7)
    arrays = jax.tree.map(jnp.asarray, params)
    bound = executable.bind(arrays, donate=True)
    assert all(array.is_deleted() for array in arrays.values())
    for count in (1, 31):
        assert_right(bound(rows_of(count), np.float32(0.5)), params, rows_of(count))
    buffers = jax.tree.map(Client().buffer_from_host, params)
    assert_right(executable.bind(buffers, donate=True)(rows_of(3), np.float32(0.5)), params, rows_of(3))
    assert all(buffer.is_deleted() for buffer in buffers.values())
    kept = executable.bind(params, donate=True)  # NumPy arrays are the caller's
    assert_right(kept(rows_of(3), np.float32(0.5)), params, rows_of(3))


def test_shared_arrays_are_read_where_they_lie(executable: shlo_disc.Executable) -> None:
    """Arrays that no GEMM reads are not copied unless strided, and later writes show; prepacked weights stay."""
    params = params_of(14)
    before = executable.memory_stats()["constant_bytes"]
    bound = executable.bind(params, copy=False)
    packed, tied = 4 * (64 * 128 + 128 * 64 + 128 * 64), 4 * (128 * 64)
    assert executable.memory_stats()["constant_bytes"] - before == packed
    assert_right(bound(rows_of(5), np.float32(0.5)), params, rows_of(5))
    params["bias"][...] = params_of(15)["bias"]
    assert_right(bound(rows_of(5), np.float32(0.5)), params, rows_of(5))

    strided = {**params, "tied": np.asfortranarray(params["tied"])}
    assert not strided["tied"].flags.c_contiguous
    held = executable.memory_stats()["constant_bytes"]
    assert_right(executable.bind(strided, copy=False)(rows_of(5), np.float32(0.5)), params, rows_of(5))
    copied = executable.bind(strided, copy=False)
    assert executable.memory_stats()["constant_bytes"] - held == packed + tied
    assert_right(copied(rows_of(5), np.float32(0.5)), params, rows_of(5))
    with pytest.raises(ValueError, match="leave copy=True"):
        executable.bind(params, donate=True, copy=False)


@pytest.mark.parametrize("place", [np.array, jnp.array, Client().buffer_from_host])
def test_shared_arrays_outlive_their_owner(executable: shlo_disc.Executable, place: Any) -> None:
    params = params_of(16)
    bound = executable.bind(jax.tree.map(place, params), copy=False)
    spoiled = [np.full(array.shape, np.nan, np.float32) for array in params.values() for _ in range(8)]
    assert_right(bound(rows_of(5), np.float32(0.5)), params, rows_of(5))
    del spoiled


def test_results_do_not_lie_in_shared_arrays() -> None:
    program = shlo_disc.compile(lambda w, x: (w, x + w[0]), args=(("n", "float32"), ("b", "float32")))
    weight = np.arange(5, dtype=np.float32)
    bound = program.bind(weight, copy=False)
    bound(np.ones(3, np.float32))[0][...] = 7
    np.testing.assert_array_equal(weight, np.arange(5))


def test_an_array_given_twice_is_kept_and_deleted_once() -> None:
    def f(params: Any, x: Any) -> Any:
        return x @ params[0] + (x @ params[1]) @ params[2] + jnp.sum(params[2]) + params[1][0]

    (b,) = export.symbolic_shape("b")
    square = jax.ShapeDtypeStruct((32, 32), np.float32)
    exported = export.export(jax.jit(f))([square] * 3, jax.ShapeDtypeStruct((b, 32), np.float32))
    program = shlo_disc.compile(exported)
    x, values = rows_of(5)[:, :32], [rows_of(n)[:32, :32] for n in (32, 33)]
    for numbers in ((0, 0, 1), (0, 1, 0), (0, 1, 1)):
        arrays = [jnp.asarray(v) for v in values]
        bound = program.bind([arrays[n] for n in numbers], donate=True)
        assert all(array.is_deleted() for array in arrays)
        want = f([values[n].astype(np.float64) for n in numbers], x.astype(np.float64))
        np.testing.assert_allclose(bound(x), want, rtol=1e-4, atol=1e-3)


def test_a_number_given_twice_has_the_type_of_each_argument() -> None:
    program = shlo_disc.compile(lambda a, b, x: (a * x, b + 1), args=(("", "float32"), ("", "int32"), ("n", "float32")))
    tripled, four = program.bind(3, 3)(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(tripled, [0, 3, 6, 9])
    assert four == 4


def test_nothing_is_deleted_when_an_argument_is_refused(executable: shlo_disc.Executable) -> None:
    arrays = jax.tree.map(jnp.asarray, params_of(8)) | {"tied": jnp.zeros((128, 65))}
    with pytest.raises(shlo_disc.errors.ShapeError):
        executable.bind(arrays, donate=True)
    assert not any(array.is_deleted() for array in arrays.values())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 2, 7, 8, 9, 16])
def test_few_columns(columns: int, dtype: str) -> None:
    """Tiles would be mostly empty: such weights stay as they are, and the other side is read in order."""

    def heads(w: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return x @ w, jnp.tanh(x @ w + 1).sum(0), y.T @ w

    with jax.enable_x64(True):
        args = ((f"300, {columns}", dtype), ("b, 300", dtype), ("300, b", dtype))
        executable = shlo_disc.compile(heads, args=args)
        w = np.random.default_rng(columns).standard_normal((300, columns)).astype(dtype)
        bound = executable.bind(w)
        assert bool(executable.loaded.artifact.header["packs"]) == (columns > 8)
        for rows in ROWS:
            x = np.random.default_rng(rows).standard_normal((rows, 300)).astype(dtype)
            want = (x @ w, np.tanh(x @ w + 1).sum(0), x @ w)
            tolerance = 300 * float(jnp.finfo(dtype).eps)
            for given in (bound(x, x.T), executable(w, x, x.T)):
                for got, expected in zip(given, want, strict=True):
                    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * rows)
