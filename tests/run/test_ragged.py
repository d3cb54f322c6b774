# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc.ragged` against loops over rows in NumPy: compiled once for all lengths, and under `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc import ragged
from shlo_disc.errors import ProgramError, ShapeError

Rows = list[np.ndarray]

LENGTHS = {
    "one": [1],
    "equal": [4, 4, 4],
    "some empty": [0, 3, 0, 0, 7, 1, 0],
    "one long": [1, 0, 1031, 2],
    "all empty": [0, 0],
    "thousands": np.random.default_rng(0).integers(0, 5, 3000).tolist(),
}
SPEC = ragged.Ragged(("t, 3", "float32"), ("r + 1", "int32"))


def rows_of(lengths: list[int], width: int = 3) -> Rows:
    rng = np.random.default_rng(len(lengths))
    return [rng.standard_normal((n, width)).astype(np.float32) for n in lengths]


def with_tail(rows: Rows) -> ragged.Ragged:
    """The rows, and two values behind them that belong to none."""
    found = ragged.from_rows(rows)
    return found.with_values(np.concatenate([found.values, np.full((2, 3), 7, np.float32)]))


def logsumexp(row: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.exp(row.astype(np.float64)).sum(0))


def least(row: np.ndarray) -> Any:
    return row.min(0) if len(row) else np.full(3, np.inf)


def largest(row: np.ndarray) -> Any:
    return row.max(0) if len(row) else np.full(3, -np.inf)


REDUCTIONS: dict[str, Callable[[np.ndarray], Any]] = {
    "sum": lambda row: row.sum(0, dtype=np.float64),
    "mean": lambda row: row.mean(0, dtype=np.float64) if len(row) else np.full(3, np.nan),
    "max": largest,
    "min": least,
    "norm": lambda row: np.sqrt(np.square(row.astype(np.float64)).sum(0)),
    "logsumexp": logsumexp,
}


@pytest.mark.parametrize("compile_", [lambda f: shlo_disc.compile(f, args=(SPEC,)), jax.jit], ids=["disc", "jit"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, compile_: Callable[..., Any]) -> None:
    function = compile_(getattr(ragged, name))
    for lengths in LENGTHS.values():
        rows = rows_of(lengths)
        want = np.stack([REDUCTIONS[name](row) for row in rows])
        for given in (ragged.from_rows(rows), with_tail(rows)):
            if len(given.values):
                np.testing.assert_allclose(function(given), want, rtol=2e-5, atol=2e-5)


def test_softmax_and_its_gradient() -> None:
    function = shlo_disc.compile(ragged.softmax, args=(SPEC,))

    def loss(given: ragged.Ragged) -> Any:
        return jnp.sum(jnp.where(ragged.is_in_row(given)[:, None], ragged.softmax(given).values, 0) ** 2)

    values_spec, offsets_spec = jax.tree.leaves(SPEC, is_leaf=lambda leaf: isinstance(leaf, tuple))
    gradient = shlo_disc.compile(
        lambda values, offsets: jax.grad(lambda v: loss(ragged.Ragged(v, offsets)))(values),
        args=(values_spec, offsets_spec),
    )
    for lengths in LENGTHS.values():
        rows = rows_of(lengths)
        given = with_tail(rows)
        want = [np.exp(row) / np.exp(row).sum(0) if len(row) else row for row in rows]
        found = function(given)
        for a, b in zip(ragged.to_rows(found), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
        assert not np.asarray(found.values)[-2:].any()
        slopes = [2 * s * (s - (s * s).sum(0)) if len(s) else s for s in want]
        got = np.asarray(gradient(given.values, given.offsets))
        assert not got[-2:].any()
        for a, b in zip(ragged.to_rows(given.with_values(got)), slopes, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_indices_and_padding() -> None:
    ids = shlo_disc.compile(lambda g: (ragged.row_ids(g), ragged.positions(g), ragged.is_in_row(g)), args=(SPEC,))
    padded = shlo_disc.compile(lambda g, w: ragged.pad(g, w.shape[0], -1), args=(SPEC, ("w", "int8")))
    back = shlo_disc.compile(
        lambda p, n, t: ragged.unpad(p, n, t.shape[0]),
        args=(("r, w, 3", "float32"), ("r", "int32"), ("t", "int8")),
    )
    for lengths in LENGTHS.values():
        rows = rows_of(lengths)
        given = with_tail(rows)
        total = sum(lengths)
        got_ids, got_positions, inside = map(np.asarray, ids(given))
        np.testing.assert_array_equal(got_ids[:total], np.repeat(np.arange(len(rows)), lengths))
        assert (got_ids[total:] == len(rows)).all() and inside.sum() == total and inside[:total].all()
        want = np.concatenate([np.arange(n) for n in lengths])
        np.testing.assert_array_equal(got_positions[:total], want)
        for width in {1, max(1, max(lengths)), max(lengths) + 3}:
            dense = np.full((len(rows), width, 3), -1, np.float32)
            for place, row in zip(dense, rows, strict=True):
                place[: len(row)] = row[:width]
            np.testing.assert_array_equal(padded(given, np.zeros(width, np.int8)), dense)
        again = back(dense_of(rows), np.asarray(lengths, np.int32), np.zeros(total + 4, np.int8))
        for a, b in zip(ragged.to_rows(again), rows, strict=True):
            np.testing.assert_array_equal(a, b)
        assert not np.asarray(again.values)[total:].any()


def dense_of(rows: Rows) -> np.ndarray:
    dense = np.zeros((len(rows), max(1, *map(len, rows)), 3), np.float32)
    for place, row in zip(dense, rows, strict=True):
        place[: len(row)] = row
    return dense


def test_functions_of_rows() -> None:
    """Each row reversed, and multiplied by its own matrix."""

    def backwards(row: Any, length: Any) -> Any:
        return jnp.take(row, length - 1 - jnp.arange(row.shape[0]), axis=0, mode="clip")

    function = shlo_disc.compile(lambda g, w: ragged.map(backwards, g, w.shape[0]), args=(SPEC, ("w", "int8")))
    for lengths in LENGTHS.values():
        rows = rows_of(lengths)
        found = function(with_tail(rows), np.zeros(max(1, max(lengths)), np.int8))
        for a, b in zip(ragged.to_rows(found), rows, strict=True):
            np.testing.assert_array_equal(a, b[::-1])
        cut = function(with_tail(rows), np.zeros(2, np.int8))
        for a, b in zip(ragged.to_rows(cut), rows, strict=True):
            np.testing.assert_array_equal(a, b[:2][::-1])
    matrices = np.random.default_rng(1).standard_normal((7, 3, 5)).astype(np.float32)
    spec = ragged.Ragged(("t, 3", "float32"), ("8", "int32"))
    product = shlo_disc.compile(ragged.dot, args=(spec, ("7, 3, 5", "float32")))
    rows = rows_of(LENGTHS["some empty"])
    for a, row, matrix in zip(ragged.to_rows(product(with_tail(rows), matrices)), rows, matrices, strict=True):
        np.testing.assert_allclose(a, row @ matrix, rtol=1e-5, atol=1e-5)


def test_conversions() -> None:
    rows = rows_of([2, 0, 3])
    given = ragged.from_rows(rows)
    assert given.rows == 3 and given.lengths.tolist() == [2, 0, 3]
    for a, b in zip(ragged.to_rows(ragged.from_lengths(given.values, given.lengths)), rows, strict=True):
        np.testing.assert_array_equal(a, b)
    keyed = ragged.from_keyed({"keys": ["a", "b"], "values": np.arange(6), "lengths": np.asarray([1, 2, 0, 3])})
    assert [[row.tolist() for row in ragged.to_rows(v)] for v in keyed.values()] == [[[0], [1, 2]], [[], [3, 4, 5]]]
    with pytest.raises(ShapeError, match="needs a row"):
        ragged.from_rows([])
    with pytest.raises(ShapeError, match="shapes"):
        ragged.from_rows([np.zeros((2, 3)), np.zeros((2, 4))])


def test_nested_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    rows = rows_of([2, 0, 3])
    nested = ragged.to_nested(ragged.from_rows(rows))
    for a, b, c in zip(nested.unbind(), ragged.to_rows(ragged.from_nested(nested)), rows, strict=True):
        np.testing.assert_array_equal(a.numpy(), c)
        np.testing.assert_array_equal(b, c)
    with pytest.raises(ShapeError, match="jagged"):
        ragged.from_nested(torch.zeros(3))


def test_arrays_of_awkward() -> None:
    awkward = pytest.importorskip("awkward")
    array = awkward.Array([[1.0, 2.0], [], [3.0]])
    assert ragged.to_awkward(ragged.from_awkward(array)).tolist() == array.tolist()


def test_a_number_of_segments_is_a_size_and_no_length() -> None:
    """`len` has to return an int, which a size with a name is not."""
    specs = ((("t", 3), "float32"), (("t",), "int32"), (("r",), "float32"))
    by_shape = shlo_disc.compile(lambda v, ids, like: jax.ops.segment_sum(v, ids, like.shape[0]), args=specs)
    values, ids = np.ones((5, 3), np.float32), np.array([0, 2, 2, 3, 0], np.int32)
    np.testing.assert_array_equal(by_shape(values, ids, np.zeros(4, np.float32))[:, 0], [2, 0, 2, 1])
    with pytest.raises(ProgramError, match=r"test_ragged.py:\d+: .* write like\.shape\[0\] in place of len\(like\)"):
        shlo_disc.compile(lambda v, ids, like: jax.ops.segment_sum(v, ids, len(like)), args=specs)
