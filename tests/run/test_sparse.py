# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with sparse matrices in compressed rows: JAX's custom call for `jax.experimental.sparse.BCSR` on CPUs."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jax.experimental import sparse

import shlo_disc
from shlo_disc.errors import UnsupportedError

DTYPES = ("float32", "float64", "complex64", "complex128", "int32", "int64")
SIZES = [(1, 1, 1), (5, 7, 3), (8, 5, 16), (9, 14, 17), (33, 2, 65), (64, 64, 32)]


def matrix(rows: int, columns: int, dtype: str, seed: int, share: float = 0.4) -> np.ndarray:
    """Whole numbers, most of them zero, whose sums are exact in any order; some rows have none."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-8, 9, (rows, columns)) * (rng.random((rows, columns)) < share)
    numbers[rows // 2] = 0
    return (numbers * (1 + 2j if dtype.startswith("complex") else 1)).astype(dtype)


def product(data: jax.Array, columns: jax.Array, starts: jax.Array, x: jax.Array) -> jax.Array:
    return sparse.BCSR((data, columns, starts), shape=(starts.shape[0] - 1, x.shape[0])) @ x


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_sizes_by_one_compile(dtype: str) -> None:
    with jax.enable_x64(True):
        function = shlo_disc.jit(product, dynamic=("z - 1", "z - 1", "m + 1", "k, n"))
        for rows, columns, n in SIZES:
            dense = matrix(rows, columns, dtype, rows)
            x = matrix(columns, n, dtype, n, share=1)
            for padding in (0, 3):  # elements that no row has
                stored = sparse.BCSR.fromdense(dense, nse=np.count_nonzero(dense) + padding)
                got = function(stored.data, stored.indices, stored.indptr, x)
                np.testing.assert_array_equal(got, dense @ x)
        np.testing.assert_array_equal(got, jax.jit(product)(stored.data, stored.indices, stored.indptr, x))


@pytest.mark.parametrize("indices", ["int32", "int64"])
def test_vectors_and_indices(indices: str) -> None:
    with jax.enable_x64(True):
        function = shlo_disc.jit(product, dynamic=("z - 1", "z - 1", "m + 1", "k"))
        for rows, columns, _ in SIZES:
            dense, x = matrix(rows, columns, "float32", rows), matrix(columns, 1, "float32", 1, share=1)[:, 0]
            stored = sparse.BCSR.fromdense(dense, index_dtype=jnp.dtype(indices))
            np.testing.assert_array_equal(function(stored.data, stored.indices, stored.indptr, x), dense @ x)


def test_no_element() -> None:
    empty = np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(4, np.int32)
    function = shlo_disc.jit(product, dynamic=("z - 1", "z - 1", None, None))
    np.testing.assert_array_equal(function(*empty, np.ones((5, 2), np.float32)), np.zeros((3, 2)))


def test_gradient() -> None:
    dense, x = matrix(6, 4, "float32", 1), matrix(4, 3, "float32", 2, share=1)
    stored = sparse.BCSR.fromdense(dense)

    def loss(x: jax.Array) -> jax.Array:
        return (product(stored.data, stored.indices, stored.indptr, x) ** 2).sum()

    np.testing.assert_array_equal(shlo_disc.jit(jax.grad(loss))(x), jax.grad(loss)(x))


@pytest.mark.parametrize(("element", "columns"), [("f16", "i32"), ("f32", "i64")])
def test_malformed_calls_are_refused(element: str, columns: str) -> None:
    """Calls by that name with operands of other types."""
    types = f"tensor<3x{element}>", "tensor<3xi32>", f"tensor<3x{columns}>", f"tensor<4x2x{element}>"
    data, starts, places, x = types
    result = f"tensor<2x2x{element}>"
    with pytest.raises(UnsupportedError, match="sparse"):
        shlo_disc.compile(f"""func.func @main(%a: {data}, %s: {starts}, %c: {places}, %x: {x}) -> {result} {{
          %r = stablehlo.custom_call @cpu_csr_sparse_dense_ffi(%a, %s, %c, %x) : ({", ".join(types)}) -> {result}
          return %r : {result} }}""")
