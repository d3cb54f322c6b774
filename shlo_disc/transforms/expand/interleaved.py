# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex tensors as buffers hold them: a tensor of reals with a last axis of size 2, the real part first.

Inside a program the two parts are tensors of their own; arguments, results and library calls see them interleaved.
"""

from __future__ import annotations

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import view
from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr


def interleave(re: ir.Value, im: ir.Value) -> ir.Value:
    """Two tensors of sizes `dims` as one of sizes `(*dims, 2)`, at the insertion point."""
    dims = dims_of(re)
    parts = [view(part, (*dims, build.ONE)) for part in (re, im)]
    result = tensor_type((*dims, Expr.const(2)), element_type_of(re))
    return build.create("concatenate", parts, result, {"dimension": integer_attr(len(dims))})


def deinterleave(value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The inverse of `interleave`, at the insertion point."""
    return build.column(value, 0), build.column(value, 1)
