# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex tensors as buffers hold them: a tensor of reals with a last axis of size 2, the real part first.

Inside a program the two parts are tensors of their own; arguments, results and library calls see them interleaved.
"""

from __future__ import annotations

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.transforms.views import shape_tensor, view

ONE, TWO = Expr.const(1), Expr.const(2)


def interleave(re: ir.Value, im: ir.Value) -> ir.Value:
    """Two tensors of sizes `dims` as one of sizes `(*dims, 2)`, at the insertion point."""
    dims = dims_of(re)
    parts = [view(part, (*dims, ONE)) for part in (re, im)]
    attributes: dict[str, ir.Attribute] = {"dimension": _integer(len(dims))}
    result = tensor_type((*dims, TWO), element_type_of(re))
    return ir.Operation.create("stablehlo.concatenate", [result], parts, attributes).results[0]


def deinterleave(value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The inverse of `interleave`, at the insertion point."""
    dims = dims_of(value)[:-1]
    return _part(value, dims, 0), _part(value, dims, 1)


def _part(value: ir.Value, dims: Dims, part: int) -> ir.Value:
    outside = [Expr.const(0)] * len(dims)
    starts, limits = (*outside, Expr.const(part)), (*dims, Expr.const(part + 1))
    strides = (Expr.const(1),) * len(starts)
    result = tensor_type((*dims, ONE), element_type_of(value))
    if result.has_static_shape:
        names = ("start_indices", "limit_indices", "strides")
        numbers = [[n.evaluate({}) for n in bounds] for bounds in (starts, limits, strides)]
        arrays: dict[str, ir.Attribute] = {
            name: ir.DenseI64ArrayAttr.get(bounds) for name, bounds in zip(names, numbers, strict=True)
        }
        return view(ir.Operation.create("stablehlo.slice", [result], [value], arrays).results[0], dims)
    operands = [value, *(shape_tensor(bounds) for bounds in (starts, limits, strides))]
    return view(ir.Operation.create("stablehlo.real_dynamic_slice", [result], operands).results[0], dims)


def _integer(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
