# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables whose rows kernels look up and products multiply by: kernels read them from the products' packed form as well.

Tied embeddings are such a table: a decoder looks up the rows of its tokens, and multiplies by all rows in the end,
`x @ table.T`. A server packs weights for products, and frees the arrays that nothing else reads. For the kernel that
looks up rows, it would keep the table beside its packed form, which is as large. So such kernels find an element in
either: a call has the array where it was passed, and the packed form where that is all there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import Gemm, Loop, Reduce, RowReduce, fusion_of, is_by_columns, product_of
from shlo_disc.shape_dialect.dialect.names import PANELS, PRODUCTS
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.views import readers_of, root
from shlo_disc.shape_dialect.symbolic.expr import ONE
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, is_constant
from shlo_disc.transforms.decisions import Decisions, Pattern

LOOKUPS = frozenset(f"stablehlo.{name}" for name in ("dynamic_gather", "dynamic_slice", "gather"))
"""The ops that look up rows, or parts of them, in their first operand."""

ELEMENTS = ("f64", "f32", "bf16", "f16")
"""The types of which a packed form has each element, as it is or as an f32."""

READ_PANELS = Pattern["Table"]("read-panels", "a kernel looks up rows of a matrix in its packed form")

Functions = Mapping[str, func.FuncOp]


class Reader(NamedTuple):
    """A call that reads a table, as which operand, and the function that it calls; None for any other op."""

    call: ir.Operation
    operand: int
    function: func.FuncOp | None


class Table(NamedTuple):
    """A value, its readers that are kernels, the products that it is the right-hand side of, and its other readers."""

    value: ir.Value
    kernels: list[Reader]
    products: list[MatrixProduct]
    others: list[Reader]


@READ_PANELS.requires("it is a matrix of floats of known sizes, whose packed form has all bits of them")
def _is_matrix_of_words(table: Table) -> bool:
    dims = dims_of(table.value)
    is_fixed = len(dims) == 2 and all(dim.constant is not None for dim in dims)
    return is_fixed and str(element_type_of(table.value)) in ELEMENTS


@READ_PANELS.requires("products multiply by its rows, which are the columns of their right-hand side")
def _has_rows_for_columns(table: Table) -> bool:
    rows, columns = dims_of(table.value)
    return bool(table.products) and all(
        not product.batch
        and (product.n.size, product.k.size) == (rows, columns)
        and (product.n.rhs, product.k.rhs) == (columns, ONE)
        for product in table.products
    )


@READ_PANELS.requires("all else that reads it are loops and reductions, not down columns, which look up its rows")
def _is_looked_up(table: Table) -> bool:
    return bool(table.kernels) and not table.others and all(_looks_up(reader, table.value) for reader in table.kernels)


def read_panels(module: ir.Module, decisions: Decisions) -> None:
    """Say on calls of a planned module which operands their kernels read from packed forms, on targets with such."""
    if not policy().packs_weights:
        return
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    for value in _fixed_values(entry_block(module)):
        table = READ_PANELS.match(lambda v: _candidate(v, functions), value)
        if table is None or not decisions.take(READ_PANELS.name, table.kernels[0].call):
            continue
        for call, operand, _ in table.kernels:
            noted = {*call.attributes.get(PANELS, ()), operand}
            call.attributes[PANELS] = ir.DenseI64ArrayAttr.get(sorted(noted))


def _fixed_values(block: ir.Block) -> Iterator[ir.Value]:
    """The arguments and constants of the program."""
    yield from block.arguments
    for op in block.operations:
        if is_constant(op):
            yield op.results[0]


def _candidate(value: ir.Value, functions: Functions) -> Table | None:
    """A value that calls read, a product among them."""
    table = Table(value, [], [], [])
    for op, operand in readers_of(value):
        function = functions[callee_of(op)] if op.name == "func.call" else None
        reader = Reader(op, operand, function)
        products = [] if function is None else _products(function, operand, functions)
        table.products.extend(products)
        if function is not None and isinstance(fusion_of(function), Loop | Reduce | RowReduce):
            table.kernels.append(reader)
        elif not products:
            table.others.append(reader)
    return table if table.products else None


def _products(function: func.FuncOp, operand: int, functions: Functions) -> list[MatrixProduct]:
    """The products of a function that have an operand as their right side, if that is all that reads it."""
    product = product_of(function)
    if product is not None:
        return [product] if product.rhs == operand != product.lhs else []
    if not isinstance(fusion_of(function), Gemm):
        return []
    found = []
    for call in (op for op in function.entry_block.operations if op.operation.name == "func.call"):
        for number, value in enumerate(call.operands):
            if root(value) == function.entry_block.arguments[operand]:
                found.append(_products(functions[callee_of(call)], number, functions))
    return [product for products in found for product in products] if all(found) else []


def _looks_up(reader: Reader, table: ir.Value) -> bool:
    if reader.function is None or is_by_columns(reader.function) or reader.call.operands[reader.operand] != table:
        return False
    block = reader.function.entry_block
    uses = block.arguments[reader.operand].uses
    reads = [use.owner.operation.name in LOOKUPS and use.operand_number == 0 for use in uses]
    computes = any(op.operation.name in PRODUCTS for op in block.operations)
    return bool(reads) and all(reads) and not computes


__all__ = ["read_panels"]
