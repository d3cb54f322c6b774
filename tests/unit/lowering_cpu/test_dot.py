# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products as the runtime sees them: the direction in which the result's rows lie."""

from __future__ import annotations

import numpy as np
import pytest

from shlo_disc.lowering_cpu.host.blocks import gemm_block
from shlo_disc.lowering_cpu.micro_kernels.gemm_kernel import micro_kernels, tile_of
from shlo_disc.lowering_cpu.options import CpuOptions
from shlo_disc.runtime.abi import DOT
from shlo_disc.shape_dialect.dialect.host import Gemm, GemmProduct
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.fusion.matrix_product import Axis, MatrixProduct


def axis(size: int, lhs: int, rhs: int, result: int) -> Axis:
    return Axis(*map(Expr.const, (size, lhs, rhs, result)))


# C[b, n, m] = sum over k of A[b, k, m] B[k, n]: what a weight's gradient looks like.
COLUMNS = MatrixProduct("f32", 0, 1, (axis(2, 12, 0, 20),), axis(4, 1, 0, 1), axis(5, 0, 1, 4), axis(3, 4, 5, 0))


def run(product: MatrixProduct, *operands: np.ndarray) -> np.ndarray:
    """The product by its block, as `DiscDot` says."""
    block = gemm_block(Gemm(tile_of("f32", CpuOptions()), (GemmProduct(product, result=2),)))

    def word(name: str) -> int:
        entry = block[DOT.fields[name].first]
        assert isinstance(entry, Expr)
        return entry.constant or 0

    batch, a_b, b_b, c_b = map(word, ("batch", "a_batch", "b_batch", "c_batch"))
    m, n, k, a_m, a_k, b_k, b_n, c_m, c_n = map(word, ("m", "n", "k", "a_m", "a_k", "b_k", "b_n", "c_m", "c_n"))
    a, b, c = operands[product.lhs], operands[product.rhs], np.zeros(batch * m * n)
    for i, row, column, inner in np.ndindex(batch, m, n, k):
        left, right = a[i * a_b + row * a_m + inner * a_k], b[i * b_b + inner * b_k + column * b_n]
        c[i * c_b + row * c_m + column * c_n] += left * right
    return c


@pytest.mark.parametrize("product", (COLUMNS, COLUMNS.transposed(), COLUMNS.transposed().transposed()))
def test_direction_does_not_matter(product: MatrixProduct) -> None:
    a, b = np.arange(24.0), np.arange(15.0) - 7
    expected = np.einsum("ikm,kn->inm", a.reshape(2, 3, 4), b.reshape(3, 5))
    assert np.array_equal(run(product, a, b), expected.ravel())


def test_columns_become_rows() -> None:
    assert COLUMNS.writes_columns
    assert not COLUMNS.transposed().writes_columns
    one_column = MatrixProduct("f32", 0, 1, (), axis(4, 1, 0, 1), axis(1, 0, 1, 1), axis(3, 4, 1, 0))
    assert not one_column.writes_columns


@pytest.mark.parametrize("vector_bits", (256, 512))
def test_tiles_fetch_ahead(vector_bits: int) -> None:
    """As many lines as a row of B has, for each; those of few rows have a form that does not."""
    tile = tile_of("f32", CpuOptions(vector_bits))
    lines = vector_bits // 256
    counts = {name: text.count("prefetch") for name, text in micro_kernels(tile)[:-1]}
    assert {name for name, count in counts.items() if count == 0} == {
        f"{tile.name}_{rows}_near" for rows in range(1, tile.rows // 2 + 1)
    }
    assert counts[f"{tile.name}_{tile.rows}"] == lines
