# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forms of matrix products that kernels are made for, and the kernels' arguments at run time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.lowering.element_types import Element
from shlo_disc.lowering.index_rules.folds import accumulator_of
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.kernel import flat_view
from shlo_disc.lowering_gpu.narrow_weight import NarrowWeight, WeightElements
from shlo_disc.shape_dialect.dialect.fusion import Dot, fusion_of
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.mlir import arith, func, ir
from shlo_disc.shape_dialect.ops.element_types import SUM_TYPES

NUMBERS, NUMBERS_OF_AXIS = 8, 4
"""Counts of the numbers of a product, and of each of its batch axes, as `MatrixProduct.numbers` has them."""


@dataclass(frozen=True)
class ProductForm:
    """The form that a kernel is made for: the element type, and the layout of the sides. The result lies in rows.

    lhs, rhs: the axes in memory, those of neighbours last, such as "mk" and "kn". batch: the number of batch axes.
    rounded: the result has the sides' element type, and not that of the sums. precision: one of `PRECISIONS`. splits:
    blocks may have parts of the depth (`product_parts`), for which there is scratch memory. narrow: the right side,
    where that is a weight of narrow integers.
    """

    element: Element
    lhs: str
    rhs: str
    batch: int
    rounded: bool = False
    precision: str = "full"
    splits: bool = False
    narrow: NarrowWeight | None = None

    @staticmethod
    def of(
        problem: MatrixProduct,
        rounded: bool,
        precision: str = "full",
        splits: bool = False,
        narrow: NarrowWeight | None = None,
    ) -> ProductForm:
        """The form of a product by rows."""
        lhs = "mk" if problem.k.lhs.constant == 1 else "km"
        rhs = "kn" if problem.n.rhs.constant == 1 else "nk"
        return ProductForm(Element(problem.element), lhs, rhs, len(problem.batch), rounded, precision, splits, narrow)

    @property
    def name(self) -> str:
        """The kernel's name."""
        batch = "b" * self.batch
        element = self.element.name if self.precision == "full" else self.precision
        sums = "" if not self.rounded else "_rounded"
        parts = "_in_parts" if self.splits else ""
        narrow = "" if self.narrow is None else f"_by_{self.narrow.name}"
        return f"product_{element}{sums}_{batch}{self.lhs}_{batch}{self.rhs}{narrow}{parts}"

    @property
    def sides(self) -> list[Element]:
        """The element types of the buffers that both sides are in."""
        return [self.element, *([self.element] if self.narrow is None else self.narrow.elements)]

    @property
    def memory(self) -> list[Element]:
        """The element types of a kernel's scratch memory, behind its other buffers."""
        return [self.sums] if self.splits else []

    @property
    def numbers(self) -> int:
        """The count of a kernel's first sizes: `MatrixProduct.numbers` and, where it splits, the number of parts."""
        return NUMBERS + NUMBERS_OF_AXIS * self.batch + len(self.memory)

    @property
    def result(self) -> Element:
        """The element type of the result."""
        return self.element if self.rounded else Element(SUM_TYPES[self.element.name])

    @property
    def sums(self) -> Element:
        """The element type that holds sums."""
        return accumulator_of(self.element, self.result)


def device_product(fusion: func.FuncOp) -> MatrixProduct | None:
    """The product by rows that a fusion is, if it is a dot that is one."""
    what = fusion_of(fusion)
    return what.product.by_rows() if isinstance(what, Dot) and what.product is not None else None


@dataclass(frozen=True)
class Matrix:
    """A side, or the result: its memory, and the sizes and strides of its batch axes, of its rows and of its columns.

    The columns of a side are those along k.
    """

    memory: ir.Value
    sizes: Sequence[ir.Value]
    strides: Sequence[ir.Value]

    @staticmethod
    def of(pointer: ir.Value, sizes: Sequence[ir.Value], strides: Sequence[ir.Value]) -> Matrix:
        """The matrix behind a pointer, up to the last element."""
        one = index_constant(1)
        reach = [arith.muli(arith.subi(size, one), stride) for size, stride in zip(sizes, strides, strict=True)]
        return Matrix(flat_view(pointer, functools.reduce(arith.addi, reach, one)), sizes, strides)

    def place(self, indices: Sequence[ir.Value]) -> ir.Value:
        """The offset of an element; the offset of a row's beginning for indices without a column."""
        parts = [arith.muli(index, stride) for index, stride in zip(indices, self.strides, strict=False)]
        return functools.reduce(arith.addi, parts)


def indices_of(linear: ir.Value, sizes: Sequence[ir.Value]) -> list[ir.Value]:
    """The index along each of some sizes, of which there is one, of a row-major linear index."""
    indices: list[ir.Value] = []
    for size in reversed(sizes[1:]):
        indices.insert(0, arith.remui(linear, size))
        linear = arith.divui(linear, size)
    return [linear, *indices]


@dataclass(frozen=True)
class Told:
    """The parameters of a kernel: both sides as [batch..., rows, k], the result as [batch..., rows, columns].

    weight: the elements of the right side, where that is a weight of narrow integers; `rhs` has its bytes then. memory,
    parts: where the form splits, a pointer to the scratch memory, and the number of parts, 0 for none.
    """

    lhs: Matrix
    rhs: Matrix
    result: Matrix
    weight: WeightElements | None = None
    memory: ir.Value | None = None
    parts: ir.Value | None = None

    @staticmethod
    def of(arguments: Sequence[ir.Value], form: ProductForm) -> Told:
        """From both sides, the result, the scratch memory, and the numbers of the form."""
        count = len(form.sides)
        (a, *b), (c, *numbers) = arguments[:count], arguments[count:]
        memory, parts = (numbers.pop(0), numbers.pop()) if form.splits else (None, None)
        m, n, k, a_m, a_k, b_k, b_n, c_m = numbers[:NUMBERS]
        axes = [numbers[i : i + NUMBERS_OF_AXIS] for i in range(NUMBERS, len(numbers), NUMBERS_OF_AXIS)]
        batch, *strides = ([axis[i] for axis in axes] for i in range(NUMBERS_OF_AXIS))
        one = index_constant(1)
        steps = (*strides[1], *((b_n, one) if form.rhs == "nk" else (one, b_k)))
        weight = None if form.narrow is None else WeightElements(form.narrow, b)
        return Told(
            Matrix.of(a, (*batch, m, k), (*strides[0], *((a_m, one) if form.lhs == "mk" else (one, a_k)))),
            Matrix.of(b[0], (*batch, n, k), steps) if weight is None else Matrix(weight.bytes, (n, k), steps),
            Matrix.of(c, (*batch, m, n), (*strides[2], c_m, one)),
            weight,
            memory,
            parts,
        )
