# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of tensors of two element types, and of floats of 8 bits: both sides get a type that has all values."""

from __future__ import annotations

from shlo_disc.shape_dialect.build import convert
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern


def product_of_two_types(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """A dot or convolution of, say, f8E4M3FN and f8E5M2: in the result's type, or in f32 where that is narrower.

    Products of few bits are exact in f32, and are sums that there are kernels for.
    """
    lhs, rhs, result = (element_type_of(v) for v in (*list(op.operands)[:2], op.results[0]))
    if lhs == rhs and not _is_of_8_bits(lhs):
        return NO_MATCH
    is_narrow = isinstance(result, ir.FloatType) and ir.FloatType(result).width < 32
    common = ir.F32Type.get() if is_narrow else result
    if policy().product_tile and common == ir.F32Type.get() and all(_is_of_8_bits(v) for v in (lhs, rhs)):
        common = ir.BF16Type.get()  # tensor cores multiply them
    sums = common if common != ir.BF16Type.get() else ir.F32Type.get()
    with rewriter.ip, op.location:
        operands = [convert(v, common) for v in list(op.operands)[:2]]
        wide = ir.Operation.create(
            op.operation.name,
            results=[tensor_type(dims_of(op.results[0]), sums)],
            operands=[*operands, *list(op.operands)[2:]],
            attributes={name: op.attributes[name] for name in op.attributes},
        )
        rewriter.replace_op(op, [convert(wide.results[0], result)])
    return None


def _is_of_8_bits(element: ir.Type) -> bool:
    return isinstance(element, ir.FloatType) and ir.FloatType(element).width <= 8


PATTERNS: list[tuple[str, Pattern]] = [
    ("stablehlo.convolution", product_of_two_types),
    ("stablehlo.dot_general", product_of_two_types),
]
