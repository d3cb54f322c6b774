# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of support: the table of ops, read once per import, so that everything unsupported is reported together."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from shlo_disc.errors import ProgramError, Unsupported, UnsupportedError
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.signature import DTYPES, Signature
from shlo_disc.shape_dialect.dialect.types import dims_of_attr, storage_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import TABLE
from shlo_disc.shape_dialect.ops.nested_blocks import all_values
from shlo_disc.shape_dialect.utils.locations import operation_name, source_line

from .library_calls import ADVICE, custom_call_problem

STRUCTURAL = {"func.func", "func.return", "stablehlo.return", "builtin.module"}

OWN = frozenset({"disc.bind", "disc.nonzero"})
"""Ops that our own translations have: in a program from outside they could say sizes that are none."""

SUGGESTIONS = {
    "func.call": "give the function a body",
    "cf.br": "write the function as one block",
    "cf.cond_br": "write the function as one block",
}
_CONVERT = "convert to a supported dtype first"
_NO_LOWERING = "this op has no lowering"


def check_supported(module: ir.Module, entry: ir.OpView, is_own: bool = False) -> None:
    """Raise UnsupportedError listing every construct of `module` that cannot be compiled.

    is_own: the program is a translation of ours.
    Raises ProgramError on an encoding that is not a list of the type's sizes, and on a type with a negative size or
    with more elements than 64 bits can count.
    """
    found = _argument_problems(entry)
    for op in _operations(module.operation):
        if not (is_own and op.operation.name in OWN):
            found += _op_problems(op)
    if found:
        raise UnsupportedError(list(dict.fromkeys(found)))
    for value in all_values(entry.regions[0].blocks[0]):
        tensor = ir.RankedTensorType(value.type)
        _check_elements(tensor)
        _check_encoding(tensor)


def check_signature_supported(signature: Signature) -> None:
    """Raise UnsupportedError on leaves of a dtype that calls cannot pass, even where the program drops them."""
    leaves = [*signature.arguments, *signature.results]
    found = [
        Unsupported(leaf.path, leaf.dtype, signature.name, "this dtype has no lowering", _CONVERT)
        for leaf in leaves
        if leaf.dtype not in DTYPES.values()
    ]
    if found:
        raise UnsupportedError(found)


def _argument_problems(entry: ir.OpView) -> list[Unsupported]:
    where = source_line(entry.location)
    return [
        Unsupported(f"argument {position}", dtype, where, "this dtype has no lowering", _CONVERT)
        for position, argument in enumerate(entry.regions[0].blocks[0].arguments)
        for dtype in sorted(_foreign_dtypes([argument], DTYPES, quantized=True))
    ]


def _check_elements(tensor: ir.RankedTensorType) -> None:
    """Sizes count something, and products of them, in bits as well, have to fit 64 bits."""
    static = [tensor.get_dim_size(i) for i in range(tensor.rank) if not tensor.is_dynamic_dim(i)]
    if any(size < 0 for size in static):
        raise ProgramError(f"{tensor} has a negative size")
    if math.prod(size for size in static if size > 0) > _MOST_ELEMENTS:
        raise ProgramError(f"{tensor} has more elements than can be counted")


_MOST_ELEMENTS = 1 << 52


def _check_encoding(tensor: ir.RankedTensorType) -> None:
    """Symbolic sizes come as `[@b, 768]`, one entry a dimension, in agreement with the type's own sizes."""
    encoding = tensor.encoding
    if encoding is None:
        return
    parts = list(ir.ArrayAttr(encoding)) if isinstance(encoding, ir.ArrayAttr) else []
    if not isinstance(encoding, ir.ArrayAttr) or not all(isinstance(p, _SIZE_ATTRIBUTES) for p in parts):
        raise ProgramError(f"the encoding of {tensor} is not a list of sizes such as [@b, 768]")
    dims = dims_of_attr(encoding)
    sizes = [None if tensor.is_dynamic_dim(i) else size for i, size in enumerate(tensor.shape)]
    agree = len(dims) == len(sizes) and all(d.constant == s for d, s in zip(dims, sizes, strict=True))
    if not agree:
        raise ProgramError(f"the encoding of {tensor} does not have one size for each dimension, equal where static")


_SIZE_ATTRIBUTES = (ir.IntegerAttr, ir.FlatSymbolRefAttr)


def _operations(op: ir.Operation) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _operations(inner.operation)


def _op_problems(op: ir.OpView) -> list[Unsupported]:
    name = op.operation.name
    if name == "stablehlo.custom_call":
        name = "@" + ir.StringAttr(op.attributes["call_target_name"]).value
        if name not in TABLE:
            reason = custom_call_problem(op)
            return [_problem(op, reason, ADVICE.get(reason, ""))] if reason else []
    if name in STRUCTURAL:
        lowered: Collection[str] = DTYPES
    elif name in TABLE and TABLE[name].lowering:
        lowered = TABLE[name].dtypes
    else:
        row = TABLE.get(name)
        reason, instead = (row.reason, row.instead) if row else (_NO_LOWERING, SUGGESTIONS.get(name, ""))
        return [_problem(op, reason, instead)]
    problems = [
        _problem(op, "this dtype has no lowering", _CONVERT, dtype)
        for dtype in sorted(_foreign_dtypes([*op.operands, *op.results], lowered, _takes_quantized(op, name)))
    ]
    check = TABLE[name].check if name in TABLE else None
    if check is not None and not problems and (reason := check(op)):
        problems.append(_problem(op, reason))
    return problems


def _problem(op: ir.OpView, reason: str, instead: str = "", dtype: str = "") -> Unsupported:
    shown = op.operation.name
    label = operation_name(op.location)
    if label:
        shown += f" ({label})"
    if shown.startswith("stablehlo.custom_call"):
        shown += f" @{ir.StringAttr(op.attributes['call_target_name']).value}"
    return Unsupported(shown, dtype, source_line(op.location), reason, instead)


def _takes_quantized(op: ir.OpView, name: str) -> bool:
    """Ops on quantized tensors compute with the floats that those stand for; a body would have to, too."""
    in_place = name in STRUCTURAL or name in ("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize")
    return in_place or (name.startswith("stablehlo.") and TABLE[name].lowering != "import" and not len(op.regions))


def _foreign_dtypes(values: Sequence[ir.Value], lowered: Collection[str], quantized: bool) -> set[str]:
    """The element types that are not `lowered`; quantized ones need their integers to have a lowering somewhere."""
    dtypes = set()
    for value in values:
        if not isinstance(value.type, ir.RankedTensorType):
            dtypes.add(str(value.type))
            continue
        element, storage = _element_and_storage(value.type)
        if element not in lowered and not (quantized and storage != element and storage in DTYPES):
            dtypes.add(element)
    return dtypes


@remembered
def _element_and_storage(tensor: ir.RankedTensorType) -> tuple[str, str]:
    """The names of a tensor's element type, and of the integers that hold it where it is quantized."""
    return str(tensor.element_type), str(storage_type(tensor.element_type))
