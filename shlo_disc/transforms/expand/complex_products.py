# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of complex tensors: dots and convolutions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import broadcast, view
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.expand.complex_math import Complex, add, multiply
from shlo_disc.transforms.expand.reals import Real

SHORT = 8
"""The longest contraction that is written out: a kernel for each of four real dots would cost more."""


def product(op: ir.OpView, x: Complex, y: Complex, result: ir.Type) -> Complex:
    """The parts, of the type `result`, of a dot or a convolution whose first two operands are `x` and `y`."""
    if op.operation.name == "stablehlo.dot_general":
        terms = _short_dot(op, x, y, result)
        if terms is not None:
            return terms
    attributes = {name: op.attributes[name] for name in op.attributes}
    rest = list(op.operands)[2:]

    def real(left: Real, right: Real) -> Real:
        operands = [left.value, right.value, *rest]
        return Real(ir.Operation.create(op.operation.name, [result], operands, attributes).results[0])

    return Complex(real(x.re, y.re) - real(x.im, y.im), real(x.re, y.im) + real(x.im, y.re))


def _short_dot(op: ir.OpView, x: Complex, y: Complex, real: ir.Type) -> Complex | None:
    """The sum of the products, in order, as XLA rounds it; None for a long contraction or one of unknown length.

    None as well where the parts of the operands and of the result, of the type `real`, have several element types.
    """
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    sides = [
        (list(numbers.lhs_batching_dimensions), list(numbers.lhs_contracting_dimensions)),
        (list(numbers.rhs_batching_dimensions), list(numbers.rhs_contracting_dimensions)),
    ]
    sizes = [dims_of(x.re.value)[axis].constant for axis in sides[0][1]]
    lengths = [size for size in sizes if size is not None]
    elements = {element_type_of(x.re.value), element_type_of(y.re.value), ir.RankedTensorType(real).element_type}
    if len(elements) > 1 or len(lengths) < len(sizes) or not 0 < math.prod(lengths) <= SHORT:
        return None
    result = dims_of(op.results[0])
    batches = len(sides[0][0])
    rows = len(dims_of(x.re.value)) - batches - len(lengths)
    total: Complex | None = None
    for index in itertools.product(*map(range, lengths)):
        left = _at(x, *sides[0], index, result, batches)
        right = _at(y, *sides[1], index, result, batches + rows)
        term = multiply(left, right)
        total = term if total is None else add(total, term)
    return total


def _at(
    z: Complex, batch: Sequence[int], contracting: Sequence[int], index: Sequence[int], result: Dims, first_free: int
) -> Complex:
    """An operand at one index of the contraction, broadcast to the result, its free axes from `first_free` on."""
    dims = dims_of(z.re.value)
    starts, sizes = [Expr.const(0)] * len(dims), list(dims)
    for axis, position in zip(contracting, index, strict=True):
        starts[axis], sizes[axis] = Expr.const(position), build.ONE
    kept = [axis for axis in range(len(dims)) if axis not in contracting]
    free = iter(range(first_free, len(dims) + first_free))
    places = [list(batch).index(axis) if axis in batch else next(free) for axis in kept]
    parts = []
    for part in z:
        slice_ = view(build.window(part.value, tuple(starts), tuple(sizes)), [dims[axis] for axis in kept])
        parts.append(Real(broadcast(slice_, result, places)))
    return Complex(*parts)
