# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights of narrow integers, `x @ ((q - zero) * scale)`, become calls of a function.

It reads the integers where they lie and turns them into floats in registers or in the cache: no weight is written as
floats. Each is rounded as in the program, also to 16 bits; only the order of sums is the function's own. On processors
it is one of the runtime, on targets whose products are kernels it becomes such a kernel.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from shlo_disc.shape_dialect.build import constant, convert, dense, divide, negate, transpose
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.library import NARROW_PRODUCT
from shlo_disc.shape_dialect.dialect.names import PRECISION
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.decisions import Decisions
from shlo_disc.transforms.expand.library_call import library_call
from shlo_disc.transforms.simplify.dequantized_patterns import (
    DEQUANTIZED,
    DequantizedProduct,
    dequantized_product,
)
from shlo_disc.transforms.simplify.gathered_rows import compute_rows
from shlo_disc.transforms.simplify.narrow_integers import CODES
from shlo_disc.transforms.simplify.scaled_integers import FLOATS, OF_16_BITS, number_of
from shlo_disc.transforms.simplify.written_weight import written_weight

DOT = "stablehlo.dot_general"

_PARAMETERS = ("f32", "i8", "ui8", "i32")
"""Element types of zero points that the function reads."""


def fuse_dequantized_products(block: ir.Block, decisions: Decisions) -> None:
    """Dequantise weights in the products of a block and of what is nested in it, in place, where a target can."""
    if not policy().vector_bits and not policy().product_tile:
        return
    for op in list(block.operations):
        for nested in nested_blocks(op):
            fuse_dequantized_products(nested, decisions)
        if op.operation.name == DOT:
            _fuse(op.operation, decisions)


def _fuse(op: ir.Operation, decisions: Decisions) -> None:
    for side in (1, 0):
        found = DEQUANTIZED.match(partial(dequantized_product, side=side), op)
        if found is not None and decisions.take(DEQUANTIZED.name, op):
            gathers = [use.op for use in found.other_uses if use.op.name == "stablehlo.gather"]
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_call(found))
            op.erase()
            for gather in gathers:
                compute_rows(gather)
            return


# ---- the call --------------------------------------------------------------------------------------------------------


def _call(found: DequantizedProduct) -> ir.Value:
    """The product, at the insertion point."""
    result, is_kernel = found.op.results[0], policy().product_tile > 0
    dims, batch = dims_of(result), range(len(found.batch))
    order = [*batch, *range(len(batch), len(dims))]  # of the result's axes, as the function has them
    if found.side == 0:  # the function has the rows of the other operand before the columns
        rows = len(dims) - len(found.free)
        order = [*batch, *range(rows, len(dims)), *range(len(batch), rows)]
    others = found.other if is_kernel else convert(found.other, ir.F32Type.get())
    operands = [_ordered(others, [*found.batch, *found.free, *found.terms]), found.weight.integers.data.value]
    attributes = _attributes(found)
    for name, read, layout in zip(("scale", "zero"), (found.weight.scale, found.zero), found.layouts, strict=True):
        number = _number(found, name)
        if number is not None or read is None or layout is None:
            attributes[f"{name}_bits"] = int(np.float32(number).view(np.uint32))
            continue
        steps = {f"{name}_k": layout.k, f"{name}_n": layout.n, f"{name}_matrix": layout.matrix}
        attributes |= {name: len(operands), **steps}
        is_read = str(element_type_of(read.value)) in (*_PARAMETERS, *(OF_16_BITS if is_kernel else ("i64",)))
        value = read.value if is_read else convert(read.value, ir.F32Type.get())
        value = negate(value) if name == "zero" and found.weight.bias_sign < 0 else value
        if name == "scale" and found.weight.divides:
            attributes["divisor"] = len(operands) + 1
            operands.append(divide(constant(1.0, ir.F32Type.get(), dims_of(value)), value))
        operands.append(value)
    if found.weight.integers.table is not None:
        attributes["table"] = len(operands)
        operands.append(_table(found.weight.integers.table))
    own: dict[str, ir.Attribute] = {}
    if is_kernel:
        operands += [] if found.is_of_few_rows.constant == 1 else [written_weight(found)]
        own = {name: found.op.attributes[name] for name in (PRECISION,) if name in found.op.attributes}
    type_ = tensor_type([dims[axis] for axis in order], element_type_of(result) if is_kernel else ir.F32Type.get())
    (value,) = library_call(NARROW_PRODUCT, operands, [type_], attributes, Expr.const(0), attributes=own)
    return _ordered(convert(value, element_type_of(result)), [order.index(axis) for axis in range(len(order))])


def _ordered(value: ir.Value, order: list[int]) -> ir.Value:
    """A value with its axes in an order."""
    return value if order == sorted(order) else transpose(value, order)


def _table(content: tuple[float, ...] | ir.Value) -> ir.Value:
    """The 16 floats of a table."""
    if isinstance(content, ir.Value):
        return convert(content, ir.F32Type.get())
    return dense(ir.DenseElementsAttr.get(np.asarray(content, np.float32).data))


def _number(found: DequantizedProduct, name: str) -> float | None:
    """The one number that a scale or zero point is, or that takes the place of none; None where it is a tensor."""
    if name == "zero":
        number = 0.0 if found.zero is None else number_of(found.zero)
        return None if number is None else found.weight.bias_sign * number
    number = 1.0 if found.weight.scale is None else number_of(found.weight.scale)
    return 1 / number if number is not None and found.weight.divides else number


def _attributes(found: DequantizedProduct) -> dict[str, int]:
    """The weight's attributes, as runtime/native/kernels/dequantized_dot.cpp reads them."""
    return {
        "matrices": found.matrices,
        "matrix": found.distance or 0,
        "k": found.rows,
        "n": found.columns,
        "code": CODES.index(found.weight.integers.code),
        "dense_columns": int(bool(found.has_dense_columns)),
        "half": found.half,
        "column_half": found.column_half,
        "difference_bits": found.weight.integers.difference_bits,
        "step": 2 if found.half == 1 else 1,
        "group": found.group,
        "columns": found.group_columns if found.is_spread else 1,
        "adds_zeros": int(found.weight.bias is not None),
        "rounding": FLOATS.index(found.weight.rounding),
        "bf16": int(found.has_narrow_rows or str(element_type_of(found.other)) == "bf16"),
        "vector_bits": policy().vector_bits,
    }
