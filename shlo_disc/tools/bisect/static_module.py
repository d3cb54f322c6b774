# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stage's module at given sizes: static StableHLO, which the reference interpreter evaluates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from shlo_disc.shape_dialect.dialect.types import dims_of, dims_of_attr, element_type_of
from shlo_disc.shape_dialect.mlir import ir


class NotStatic(Exception):
    """The module has sizes that are read from data, or ops of ours that stand for no StableHLO."""


_DECLARATIONS = ("disc.signature", "disc.symbol", "disc.dim", "disc.constraint")


def static_text(stage: ir.Operation, sizes: Mapping[str, int]) -> str:
    """The text of a stage between `annotate` and `plan` at `sizes`, a value for each symbol, in generic form.

    Raises NotStatic where the module cannot be written so.
    """
    with stage.context, ir.Location.unknown():
        module = stage.clone(ip=False)
        block = module.regions[0].blocks[0]
        for op in [o for o in block.operations if o.operation.name in _DECLARATIONS]:
            op.operation.erase()
        for op in list(_all_ops(module)):
            _make_static(op, sizes)
        for name in list(module.attributes):
            if name.startswith("disc."):
                del module.attributes[name]
        main = next(o for o in block.operations if _name_of(o) == "main")
        main.operation.move_before(next(iter(block.operations)).operation)
        return module.get_asm(print_generic_op_form=True, assume_verified=True)


def _all_ops(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _all_ops(inner.operation)
                yield inner.operation


def _name_of(op: Any) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else ""


def _make_static(op: ir.Operation, sizes: Mapping[str, int]) -> None:
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                argument.set_type(_static(argument.type, sizes))
    if op.name == "disc.shape":
        _write_shape(op, sizes)
        return
    if op.name.startswith("disc."):
        raise NotStatic(f"it has a {op.name}")
    for result in op.results:
        result.set_type(_static(result.type, sizes))
    if op.name == "func.func":
        type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        inputs, results = ([_static(t, sizes) for t in types] for types in (type_.inputs, type_.results))
        op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        for name in [n for n in op.attributes if n in ("arg_attrs", "res_attrs", "disc.fusion")]:
            del op.attributes[name]


def _static(type_: ir.Type, sizes: Mapping[str, int]) -> ir.Type:
    if not isinstance(type_, ir.RankedTensorType):
        return type_
    try:
        return ir.RankedTensorType.get([d.evaluate(sizes) for d in dims_of(type_)], element_type_of(type_))
    except KeyError as error:
        raise NotStatic(f"the size {error} is read from data") from None


def _write_shape(op: ir.Operation, sizes: Mapping[str, int]) -> None:
    values = [d.evaluate(sizes) for d in dims_of_attr(op.attributes["dims"])]
    result = ir.RankedTensorType(op.results[0].type)
    width = ir.IntegerType(result.element_type).width
    array = np.array(values, np.dtype(f"int{width}")).reshape(result.shape)
    value = ir.DenseElementsAttr.get(array.data, type=result)
    new = ir.Operation.create(
        "stablehlo.constant", results=[result], attributes={"value": value}, ip=ir.InsertionPoint(op)
    )
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()
