# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees in files, and sizes in text."""

from pathlib import Path

import jax
import numpy as np
import pytest

from benchmarks.backends.jax_jit import count_instructions
from benchmarks.data import leaves, like, load, sample, save, size

TREE = {"b": [np.arange(3), (np.ones((2, 2), np.float32), np.zeros((0, 4)))], "a": (np.float32(5),)}


@pytest.mark.parametrize("tree", [TREE, np.arange(4), {}, (np.ones(2), [np.arange(12), np.arange(1)])])
def test_a_tree_comes_back_from_its_file(tree: object, tmp_path: Path) -> None:
    save(tmp_path / "tree.npz", tree)
    back = load(tmp_path / "tree.npz")
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    for got, want in zip(leaves(back), leaves(tree), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)


def test_leaves_are_in_jax_order() -> None:
    tree = {"z": [1, 2], "a": {"y": 3, "b": (4, [5])}, "k": 6}
    assert leaves(tree) == jax.tree.leaves(tree)
    assert like(tree, range(6)) == jax.tree.unflatten(jax.tree.structure(tree), range(6))


def test_a_list_of_more_than_ten_keeps_its_order(tmp_path: Path) -> None:
    save(tmp_path / "tree.npz", [np.array(n) for n in range(12)])
    assert [int(n) for n in load(tmp_path / "tree.npz")] == list(range(12))


def test_a_sample_has_the_shape_and_some_numbers() -> None:
    shape, numbers = sample(np.arange(100).reshape(10, 10), most=30)
    np.testing.assert_array_equal(shape, [10, 10])
    np.testing.assert_array_equal(numbers, np.arange(0, 100, 4))


@pytest.mark.parametrize(("dim", "value"), [("512", 512), ("s", 5), ("4*t", 28), ("s + 1", 6), ("2*s*t - 3", 67)])
def test_sizes_in_text(dim: str, value: int) -> None:
    assert size(dim, {"s": 5, "t": 7}) == value


def test_instructions_of_the_entry_computation_are_counted() -> None:
    def program(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.numpy.sort(jax.numpy.sin(x) + 1.0) @ y

    spec = jax.ShapeDtypeStruct((8, 8), np.float32)
    counts = count_instructions(jax.jit(program).lower(spec, spec).compile().as_text() or "")
    assert counts["sort"] == 1 and sum(counts.values()) == 3
    assert "parameter" not in counts
