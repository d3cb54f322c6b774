# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Axes of size 1 around products are views: what comes of `jax.nn.dot_product_attention` and the like is plain then."""

from __future__ import annotations

from shlo_disc.shape_dialect.build import broadcast, create, view
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir, rewrite, stablehlo
from shlo_disc.shape_dialect.ops import BROADCASTS
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern, defined_by

_WITH_NUMBERS = tuple(f"stablehlo.{name}" for name in ("add", "divide", "multiply", "subtract"))


def transpose_of_unit_axes(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A transpose has no axes of size 1."""
    dims, permutation = dims_of(op.operands[0]), integers(op.attributes["permutation"])
    wide = [axis for axis, size in enumerate(dims) if size.constant != 1]
    if not policy().has_plain_products or len(wide) == len(dims):
        return NO_MATCH
    order = [wide.index(axis) for axis in permutation if axis in wide]
    with rewriter.ip, op.location:
        plain = view(op.operands[0], [dims[axis] for axis in wide])
        if order != sorted(order):
            plain = _transposed(plain, order)
        rewriter.replace_op(op, [view(plain, dims_of(op.results[0]))])
    return None


def transpose_of_scaled(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A transpose comes before what is done to a product with a number: products write in any order."""
    scaled = defined_by(op.operands[0], _WITH_NUMBERS)
    if not policy().has_plain_products or scaled is None or len(list(scaled.results[0].uses)) != 1:
        return NO_MATCH
    if not any(_is_of_product(v) for v in scaled.operands):
        return NO_MATCH
    sides, dims = list(scaled.operands), dims_of(op.results[0])
    numbers = [_repeated(v) for v in sides]
    if sum(number is not None for number in numbers) != 1:
        return NO_MATCH
    permutation = integers(op.attributes["permutation"])
    with rewriter.ip, op.location:
        moved = [
            _transposed(v, permutation) if number is None else broadcast(number, dims, ())
            for v, number in zip(sides, numbers, strict=True)
        ]
        rewriter.replace_op(op, [create(scaled.name.removeprefix("stablehlo."), moved, op.results[0].type)])
    return None


def _is_of_product(value: ir.Value) -> bool:
    converted = defined_by(value, ("stablehlo.convert",))
    return defined_by(value if converted is None else converted.operands[0], ("stablehlo.dot_general",)) is not None


def _repeated(value: ir.Value) -> ir.Value | None:
    """The scalar that is all elements of a value."""
    op = defined_by(value, BROADCASTS)
    return op.operands[0] if op is not None and not dims_of(op.operands[0]) else None


def _transposed(value: ir.Value, order: list[int]) -> ir.Value:
    dims = dims_of(value)
    type_ = tensor_type([dims[axis] for axis in order], element_type_of(value))
    return create("transpose", [value], type_, {"permutation": ir.DenseI64ArrayAttr.get(order)})


def product_of_unit_axes(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A product has no axes of size 1 that are of one side alone."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    used = (
        (list(numbers.lhs_batching_dimensions), list(numbers.lhs_contracting_dimensions)),
        (list(numbers.rhs_batching_dimensions), list(numbers.rhs_contracting_dimensions)),
    )
    dropped = [_free_units(v, {*batch, *inner}) for v, (batch, inner) in zip(op.operands, used, strict=True)]
    if not policy().has_plain_products or not any(dropped):
        return NO_MATCH
    with rewriter.ip, op.location:
        sides, kept, free = [], [], []
        for value, axes, (batch, inner) in zip(op.operands, dropped, used, strict=True):
            left = [i for i in range(len(dims_of(value))) if i not in axes]
            sides.append(view(value, [dims_of(value)[i] for i in left]))
            kept.append(([left.index(i) for i in batch], [left.index(i) for i in inner]))
            free += [dims_of(value)[i] for i in left if i not in {*batch, *inner}]
        (lhs_batch, lhs_inner), (rhs_batch, rhs_inner) = kept
        attributes = {name: op.attributes[name] for name in op.attributes}
        attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get(
            lhs_batch, rhs_batch, lhs_inner, rhs_inner
        )
        dims = [*(dims_of(op.operands[0])[i] for i in used[0][0]), *free]
        product = create("dot_general", sides, tensor_type(dims, element_type_of(op.results[0])), attributes)
        rewriter.replace_op(op, [view(product, dims_of(op.results[0]))])
    return None


def _free_units(value: ir.Value, used: set[int]) -> list[int]:
    return [i for i, size in enumerate(dims_of(value)) if size.constant == 1 and i not in used]


PATTERNS: list[tuple[str, Pattern]] = [
    ("stablehlo.transpose", transpose_of_unit_axes),
    ("stablehlo.transpose", transpose_of_scaled),
    ("stablehlo.dot_general", product_of_unit_axes),
]
