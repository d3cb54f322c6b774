# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dynamic forms of ops whose attributes or types state sizes that are symbols now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from shlo_disc.shape_dialect.custom_calls import find_custom_call
from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, Dims
from shlo_disc.shape_dialect.dialect.window import WINDOW, Window, window_attribute
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.fft import KINDS
from shlo_disc.shape_dialect.ops.fft import TARGET as FFT
from shlo_disc.shape_dialect.ops.size_relations import rank, splat_text
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.convolution import GROUP_COUNTS, group_count_attributes
from shlo_disc.shape_dialect.utils.locations import source_line
from shlo_disc.transforms.expand.random import DYNAMIC as DYNAMIC_RNG_BIT_GENERATOR
from shlo_disc.transforms.expand.windows import copy_body

from .expressions import Expressions
from .relations import terminator
from .samples import NotGeneralError, Samples

_SHAPE_OPERANDS = "indices_of_shape_operands"


class Emission(Protocol):
    """The data that the forms are made from."""

    expressions: Expressions
    samples: Samples

    def dims(self, value: ir.Value) -> Dims:
        """The sizes of a value of the samples."""

    def attribute(self, position: int, name: str) -> Dims:
        """The numbers of an attribute."""

    def sizes(self, dims: Sequence[Expr], type_: ir.Type | None = None) -> ir.Value:
        """A tensor of these sizes, by default of rank 1 and of i64."""

    def spread(self, scalar: ir.Value, op: ir.OpView) -> ir.Value:
        """A scalar as the shape of an op's result."""


def tensor(dims: Sequence[Expr], element_type: ir.Type) -> ir.Type:
    """A tensor type with `?` for what is no number."""
    return ir.RankedTensorType.get([DYNAMIC if d.constant is None else d.constant for d in dims], element_type)


def create(name: str, type_: ir.Type, operands: Sequence[ir.Value], attributes: dict[str, Any] | None = None) -> Any:
    """The result of a StableHLO op."""
    return ir.Operation.create(f"stablehlo.{name}", [type_], operands, attributes or {}).result


def _constant(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    tensor = ir.RankedTensorType(op.results[0].type)
    kind = ir.RankedTensorType.get([], tensor.element_type)
    if position not in e.samples.splats:
        raise NotGeneralError("the shape of a constant changes, and its elements do not", source_line(op.location))
    value = e.expressions.of(e.samples.elements[position][0])
    if value.constant is None:
        return e.spread(e.sizes([value], kind), op)
    scalar = ir.Operation.parse(f"stablehlo.constant dense<{splat_text(op)}> : {kind}")
    ir.InsertionPoint(op).insert(scalar)
    return e.spread(scalar.result, op)


def _iota(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    result = op.results[0]
    kept = {"iota_dimension": op.attributes["iota_dimension"]}
    return create("dynamic_iota", result.type, [e.sizes(e.dims(result))], kept)


def _broadcast(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    result = op.results[0]
    kept = {"broadcast_dimensions": op.attributes["broadcast_dimensions"]}
    return create("dynamic_broadcast_in_dim", result.type, [op.operands[0], e.sizes(e.dims(result))], kept)


def _reshape(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    result = op.results[0]
    return create("dynamic_reshape", result.type, [op.operands[0], e.sizes(e.dims(result))])


def _slice(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    bounds = [e.sizes(e.attribute(position, name)) for name in ("start_indices", "limit_indices", "strides")]
    return create("real_dynamic_slice", op.results[0].type, [op.operands[0], *bounds])


def _pad(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    amounts = [e.sizes(e.attribute(position, name)) for name in names]
    return create("dynamic_pad", op.results[0].type, [*op.operands, *amounts])


def _dynamic_slice(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    """The start is clamped such that the slice fits, as `dynamic_slice` does."""
    operand, starts = op.operands[0], list(op.operands)[1:]
    sizes = e.attribute(position, "slice_sizes")
    kind = ir.RankedTensorType(starts[0].type)
    one = ir.RankedTensorType.get([1], kind.element_type)
    vector = ir.RankedTensorType.get([len(starts)], kind.element_type)
    parts = [create("reshape", one, [start]) for start in starts]
    start = parts[0] if len(parts) == 1 else create("concatenate", vector, parts, {"dimension": integer_attr(0)})
    extents = e.sizes(sizes, vector)
    last = e.sizes([whole - size for whole, size in zip(e.dims(operand), sizes, strict=True)], vector)
    zero = e.sizes([Expr.const(0)] * len(starts), vector)
    start = create("clamp", vector, [zero, start, last])
    limit = create("add", vector, [start, extents])
    strides = e.sizes([Expr.const(1)] * len(starts), vector)
    return create("real_dynamic_slice", op.results[0].type, [operand, start, limit, strides])


def _gather(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    names = ("dimension_numbers", "indices_are_sorted")
    kept = {name: op.attributes[name] for name in names if name in op.attributes}
    operands = [*op.operands, e.sizes(e.attribute(position, "slice_sizes"))]
    return create("dynamic_gather", op.results[0].type, operands, kept)


def _reduce_window(e: Emission, op: ir.OpView, position: int) -> list[ir.Value]:
    """A custom call, whose computation is a function: StableHLO has no op with windows that are operands."""
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    count = rank(op.operands[0])
    parameters = [e.sizes(e.attribute(position, name) or [Expr.const(1)] * count) for name in names]
    padding = e.sizes(e.attribute(position, "padding") or [Expr.const(0)] * (2 * count))
    pairs = ir.RankedTensorType.get([count, 2], ir.IntegerType.get_signless(64))
    name = f"shlo_disc.window{position}"
    _make_function(e.samples.module, name, op.regions[0].blocks[0])
    attributes = {
        "call_target_name": ir.StringAttr.get("stablehlo.dynamic_reduce_window"),
        "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(name)]),
    }
    operands = [*op.operands, *parameters, create("reshape", pairs, [padding])]
    return _custom_call_results(op, operands, attributes)


def _select_and_scatter(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    """The op with its windows as sizes; its own attributes are ones that agree with any types."""
    count = rank(op.operands[0])
    ones, zeros = (Expr.const(1),) * count, (Expr.const(0),) * (2 * count)
    size, stride = (e.attribute(position, name) or ones for name in ("window_dimensions", "window_strides"))
    padding = e.attribute(position, "padding") or zeros
    window = Window(size, stride, ones, ones, padding[::2], padding[1::2])
    copy = op.operation.clone()
    for index, value in enumerate(op.operands):
        copy.operands[index] = value
    copy.attributes[WINDOW] = window_attribute(window)
    result: ir.Value = copy.results[0]
    return result


def _convolution(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    """StableHLO's `dynamic_conv` has its padding as an operand; strides and dilations are numbers.

    The numbers of groups that are sizes have an attribute of ours.
    """
    for name in ("window_strides", "lhs_dilation", "rhs_dilation"):
        if any(size.constant is None for size in e.attribute(position, name)):
            raise NotGeneralError(f"{name} of stablehlo.convolution changes", source_line(op.location))
    padding = e.attribute(position, "padding")
    pairs = ir.RankedTensorType.get([len(padding) // 2, 2], ir.IntegerType.get_signless(64))
    kept = {name: op.attributes[name] for name in op.attributes if name != "padding"}
    groups = group_count_attributes(tuple(e.attribute(position, name)[0] for name in GROUP_COUNTS))
    operands = [*op.operands, create("reshape", pairs, [e.sizes(padding)])]
    return create("dynamic_conv", op.results[0].type, operands, {**kept, **groups})


def _fft(e: Emission, op: ir.OpView, position: int) -> list[ir.Value]:
    """The custom call for lengths that are sizes."""
    kind = KINDS.index(str(stablehlo.FftTypeAttr(op.attributes["fft_type"]).value))
    lengths = e.attribute(position, "fft_length")
    given = e.dims(op.results[0]) if KINDS[kind] == "RFFT" else (*e.dims(op.results[0])[: -len(lengths)], *lengths)
    config: dict[str, ir.Attribute] = {"kind": integer_attr(kind), "rank": integer_attr(len(lengths))}
    attributes = {
        "call_target_name": ir.StringAttr.get(FFT),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        "backend_config": ir.DictAttr.get(config),
        _SHAPE_OPERANDS: _positions(len(op.operands), 1),
    }
    return _custom_call_results(op, [*op.operands, e.sizes(given)], attributes)


def _composite(e: Emission, op: ir.OpView, position: int) -> list[ir.Value]:
    """A call of the function that it is: what its attributes say is in the function's sizes."""
    attributes = {"callee": op.attributes["decomposition"]}
    return list(ir.Operation.create("func.call", [r.type for r in op.results], list(op.operands), attributes).results)


def _rng_bit_generator(e: Emission, op: ir.OpView, position: int) -> list[ir.Value]:
    """The custom call that jax.export has for it."""
    attributes = {
        "call_target_name": ir.StringAttr.get(DYNAMIC_RNG_BIT_GENERATOR),
        "rng_algorithm": op.attributes["rng_algorithm"],
    }
    return _custom_call_results(op, [op.operands[0], e.sizes(e.dims(op.results[1]))], attributes)


def _custom_call(e: Emission, op: ir.OpView, position: int) -> list[ir.Value]:
    """The call of a registered function, or for the largest elements, with its results' sizes, as jax.export has it."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes[_SHAPE_OPERANDS] = _positions(len(op.operands), len(op.results))
    return _custom_call_results(op, [*op.operands, *(e.sizes(e.dims(result)) for result in op.results)], attributes)


def _custom_call_results(
    op: ir.OpView, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute]
) -> list[ir.Value]:
    types = [result.type for result in op.results]
    return list(ir.Operation.create("stablehlo.custom_call", types, operands, attributes).results)


def _positions(first: int, count: int) -> ir.Attribute:
    positions: Any = np.arange(first, first + count)
    return ir.DenseIntElementsAttr.get(positions)


def _make_function(module: ir.Module, name: str, body: ir.Block) -> None:
    """A private function with the body of an op."""
    kind = ir.FunctionType.get([a.type for a in body.arguments], [v.type for v in terminator(body).operands])
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(kind),
    }
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create("func.func", attributes=attributes, regions=1)
    copy_body(body, function.regions[0], "func.return")


DYNAMIC_FORMS: dict[str, Callable[[Emission, ir.OpView, int], ir.Value | list[ir.Value]]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.composite": _composite,
    "stablehlo.constant": _constant,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.fft": _fft,
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reshape": _reshape,
    "stablehlo.rng_bit_generator": _rng_bit_generator,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.slice": _slice,
}
"""Dynamic form of each op that states a size which is no number any more."""

STATED_BY_TYPE = tuple(
    "stablehlo." + name for name in ("broadcast_in_dim", "constant", "iota", "reshape", "rng_bit_generator")
)


def is_call_without_sizes(op: ir.OpView) -> bool:
    """Tells whether an op calls a registered function, and does not say the sizes of its results by operands."""
    return find_custom_call(target_of(op)) is not None and _SHAPE_OPERANDS not in op.attributes


def target_of(op: ir.OpView) -> str:
    """The function that a custom call calls; "" of any other op."""
    is_call = op.operation.name == "stablehlo.custom_call"
    return str(ir.StringAttr(op.attributes["call_target_name"]).value) if is_call else ""


__all__ = ["STATED_BY_TYPE", "DYNAMIC_FORMS", "create", "is_call_without_sizes", "target_of", "tensor"]
