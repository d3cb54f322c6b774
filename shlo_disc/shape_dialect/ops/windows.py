# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over sliding windows: convolutions, pooling, cumulative ops, normalisation of batches."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.dialect.window import WINDOW, Window, window_attribute
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.definition import OpDef, define
from shlo_disc.shape_dialect.ops.dynamic_forms import DynamicForm, NoDynamicFormError, StatedSizes, call, create
from shlo_disc.shape_dialect.ops.element_types import ALL, COMPLEX, FLOAT, NARROW_FLOAT
from shlo_disc.shape_dialect.ops.elementwise import check_body, check_called_body
from shlo_disc.shape_dialect.ops.index_maps import ONE, ZERO
from shlo_disc.shape_dialect.ops.linear_algebra import check_operand_kinds
from shlo_disc.shape_dialect.ops.propagation import Propagation
from shlo_disc.shape_dialect.ops.size_relations import Size, SizeRelations, numbers_of, rank, related
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.collectives import module_of
from shlo_disc.shape_dialect.utils.convolution import (
    GROUP_COUNTS,
    convolution_of,
    group_count_attributes,
    static_padding,
)
from shlo_disc.shape_dialect.utils.regions import copy_body, terminator_of
from shlo_disc.shape_dialect.utils.windows import window_of, window_of_operands

_CONVOLUTIONS = "tests/run/test_ops_conv.py"
_WINDOWS = "tests/run/test_ops_window.py"


# ---- convolutions ------------------------------------------------------------------------------------------------


def _infer_convolution(p: Propagation, op: ir.OpView) -> list[Dims]:
    conv = convolution_of(op)
    is_dynamic = op.operation.name == "stablehlo.dynamic_conv"
    window = conv.window(op, p.sizes(op.operands[2]) if is_dynamic else static_padding(op))
    lhs, rhs = dims_of(op.operands[0]), dims_of(op.operands[1])
    batch, *space, feature = (lhs[a] for a in conv.input)
    outputs = rhs[conv.kernel[-1]]
    p.equal(feature, rhs[conv.kernel[-2]] * conv.feature_groups, op)
    for groups, wholes in ((conv.feature_groups, [outputs]), (conv.batch_groups, [batch, outputs])):
        if groups != 1:
            p.require(Relation.ge(groups, 1), op)
            for whole in wholes:
                p.require(Relation.eq(whole % groups, 0), op)
    if conv.batch_groups != 1:
        batch = p.facts.simplify(batch // conv.batch_groups)
    for padded in window.padded(tuple(space), p.facts):
        p.require(Relation.ge(padded, 0), op)
    sizes = (batch, *window.result(tuple(space), p.facts), outputs)
    return [tuple(sizes[conv.output.index(a)] for a in range(len(sizes)))]


def _relate_convolution(r: SizeRelations, op: ir.OpView) -> None:
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    groups = [ir.IntegerAttr(op.attributes[n]).value for n in ("feature_group_count", "batch_group_count")]
    (lhs, rhs), result = op.operands, op.results[0]
    if groups != [1, 1]:
        r.fix(lhs, [numbers.input_batch_dimension, numbers.input_feature_dimension])
        r.fix(rhs, [numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension])
    r.same_axes(lhs, [numbers.input_feature_dimension], rhs, [numbers.kernel_input_feature_dimension])
    r.same_axes(lhs, [numbers.input_batch_dimension], result, [numbers.output_batch_dimension])
    r.same_axes(rhs, [numbers.kernel_output_feature_dimension], result, [numbers.output_feature_dimension])
    spatial = (numbers.input_spatial_dimensions, numbers.kernel_spatial_dimensions, numbers.output_spatial_dimensions)
    for i, j, k in zip(*spatial, strict=True):
        r.computed(Size(result, k), [Size(lhs, i), Size(rhs, j)])


def _form_of_convolution(s: StatedSizes, op: ir.OpView) -> ir.Value:
    """StableHLO's `dynamic_conv` has its padding as an operand; strides and dilations are numbers.

    The numbers of groups that are sizes have an attribute of ours.
    """
    for name in ("window_strides", "lhs_dilation", "rhs_dilation"):
        if any(size.constant is None for size in s.numbers(op, name)):
            raise NoDynamicFormError(f"{name} of stablehlo.convolution changes")
    kept = {name: op.attributes[name] for name in op.attributes if name != "padding"}
    groups = group_count_attributes(tuple(s.numbers(op, name)[0] for name in GROUP_COUNTS))
    operands = [*op.operands, _pairs(s, s.numbers(op, "padding"))]
    return create("dynamic_conv", op.results[0].type, operands, {**kept, **groups})


def _pairs(s: StatedSizes, padding: Dims) -> ir.Value:
    """A tensor of two numbers, low and high, for each dimension."""
    pairs = ir.RankedTensorType.get([len(padding) // 2, 2], ir.IntegerType.get_signless(64))
    return create("reshape", pairs, [s.sizes(padding)])


def _flops_of_convolution(op: ir.OpView) -> Expr:
    kernel = dims_of(op.operands[1])
    features = kernel[convolution_of(op).kernel[-1]]
    return 2 * product(dims_of(op.results[0])) * product(kernel) // features


# ---- reductions of windows ---------------------------------------------------------------------------------------


def _same_shapes(p: Propagation, op: ir.OpView, inputs: list[ir.Value]) -> Dims:
    first, *others = (dims_of(v) for v in inputs)
    for other in others:
        for a, b in zip(first, other, strict=True):
            p.equal(a, b, op)
    return first


def _reduced(p: Propagation, op: ir.OpView, window: Window) -> list[Dims]:
    dims = _same_shapes(p, op, list(op.operands)[: len(op.results)])
    return [window.result(dims, p.facts)] * len(op.results)


def _infer_reduce_window(p: Propagation, op: ir.OpView) -> list[Dims]:
    return _reduced(p, op, window_of(op))


def _infer_dynamic_reduce_window(p: Propagation, op: ir.OpView) -> list[Dims]:
    window = window_of_operands([p.sizes(v) for v in list(op.operands)[-5:]])
    for size in window.size:  # a window as large as what it slides over may have no elements
        p.require(Relation.ge(size, 0), op)
    for step in (*window.stride, *window.base_dilation, *window.dilation):
        p.require(Relation.ge(step, 1), op)
    return _reduced(p, op, window)


def _relate_reduce_window(r: SizeRelations, op: ir.OpView) -> None:
    inputs = list(op.operands)[: len(op.results)]
    r.same_shape(inputs)
    r.same_shape(list(op.results))
    source, result = inputs[0], op.results[0]
    for axis in range(rank(source)):
        related(r, Size(source, axis), Size(result, axis), unchanged=_is_trivial_window(op, axis))


def _is_trivial_window(op: ir.OpView, axis: int) -> bool:
    names = ("window_dimensions", "window_strides", "base_dilations")
    if any(values and values[axis] != 1 for values in (numbers_of(op, n) for n in names)):
        return False
    if "padding" not in op.attributes:
        return True
    amounts = list(ir.DenseIntElementsAttr(op.attributes["padding"]))
    return not any(amounts[2 * axis : 2 * axis + 2])


_DYNAMIC_REDUCE_WINDOW = "stablehlo.dynamic_reduce_window"


def _form_of_reduce_window(s: StatedSizes, op: ir.OpView) -> list[ir.Value]:
    """A custom call, whose computation is a function: StableHLO has no op with windows that are operands."""
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    count = rank(op.operands[0])
    parameters = [s.sizes(s.numbers(op, name) or (ONE,) * count) for name in names]
    padding = _pairs(s, s.numbers(op, "padding") or (ZERO,) * (2 * count))
    attributes = {
        "call_target_name": ir.StringAttr.get(_DYNAMIC_REDUCE_WINDOW),
        "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(_make_function(op))]),
    }
    return call(op, [*op.operands, *parameters, padding], attributes)


def _make_function(op: ir.OpView) -> str:
    """The name of a new private function with the body of an op."""
    body, functions = op.regions[0].blocks[0], module_of(op).regions[0].blocks[0]
    kind = ir.FunctionType.get([a.type for a in body.arguments], [v.type for v in terminator_of(body).operands])
    name = f"shlo_disc.window{len(functions.operations)}"
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(kind),
    }
    with ir.InsertionPoint(functions):
        function = ir.Operation.create("func.func", attributes=attributes, regions=1)
    copy_body(body, function.regions[0], "func.return")
    return name


def _infer_select_and_scatter(p: Propagation, op: ir.OpView) -> list[Dims]:
    """There is one source element for each window."""
    dims = dims_of(op.operands[0])
    for count, size in zip(window_of(op).result(dims, p.facts), dims_of(op.operands[1]), strict=True):
        p.equal(count, size, op)
    return [dims]


def _relate_select_and_scatter(r: SizeRelations, op: ir.OpView) -> None:
    r.same_shape([op.operands[0], op.results[0]])


def _form_of_select_and_scatter(s: StatedSizes, op: ir.OpView) -> ir.Value:
    """The op with its windows as sizes; its own attributes are ones that agree with any types."""
    count = rank(op.operands[0])
    ones, zeros = (ONE,) * count, (ZERO,) * (2 * count)
    size, stride = (s.numbers(op, name) or ones for name in ("window_dimensions", "window_strides"))
    padding = s.numbers(op, "padding") or zeros
    window = Window(size, stride, ones, ones, padding[::2], padding[1::2])
    copy = op.operation.clone()
    for index, value in enumerate(op.operands):
        copy.operands[index] = value
    copy.attributes[WINDOW] = window_attribute(window)
    result: ir.Value = copy.results[0]
    return result


def _flops_of_windows(op: ir.OpView) -> Expr:
    window = integers(op.attributes["window_dimensions"]) if "window_dimensions" in op.attributes else ()
    return product(dims_of(op.results[0])) * product(map(Expr.const, window))


# ---- normalisation of batches ------------------------------------------------------------------------------------


def _infer_batch_norm(p: Propagation, op: ir.OpView) -> list[Dims]:
    """All that goes by feature has one size; a gradient's last operand has the first one's shape."""
    whole = dims_of(op.operands[0])
    features = whole[ir.IntegerAttr(op.attributes["feature_index"]).value]
    for value in list(op.operands)[1:]:
        dims = dims_of(value)
        for a, b in zip(dims, whole if len(dims) == len(whole) != 1 else (features,), strict=True):
            p.equal(a, b, op)
    return [whole, (features,), (features,)][: len(op.results)]


def _relate_batch_norm(r: SizeRelations, op: ir.OpView) -> None:
    """All that goes by feature has one size; the rest has the shape of the first operand."""
    axis = ir.IntegerAttr(op.attributes["feature_index"]).value
    whole = op.operands[0]
    for value in [*list(op.operands)[1:], *op.results]:
        if rank(value) == rank(whole):
            r.same_shape([whole, value])
        else:
            r.same(Size(value, 0), Size(whole, axis))


OPS = (
    *define(
        "kernel", "convolution", ALL, check=check_operand_kinds, infer=_infer_convolution, relate=_relate_convolution,
        dynamic_form=DynamicForm(_form_of_convolution), flops=_flops_of_convolution, cost=400, tests=_CONVOLUTIONS,
    ),
    *define(
        "expand", "dynamic_conv", ALL, check=check_operand_kinds, infer=_infer_convolution,
        size_operands=(2,), flops=_flops_of_convolution, tests=_CONVOLUTIONS,
    ),
    *define(
        "index", "reduce_window", ALL, check=check_body, infer=_infer_reduce_window, relate=_relate_reduce_window,
        dynamic_form=DynamicForm(_form_of_reduce_window), flops=_flops_of_windows, cost=16, tests=_WINDOWS,
    ),
    OpDef(
        f"@{_DYNAMIC_REDUCE_WINDOW}", "expand", ALL, ALL, check=check_called_body,
        infer=_infer_dynamic_reduce_window, tests=_WINDOWS,
    ),
    *define(
        "kernel", "select_and_scatter", ALL - COMPLEX, spec=ALL, check=check_body,
        infer=_infer_select_and_scatter, relate=_relate_select_and_scatter,
        dynamic_form=DynamicForm(_form_of_select_and_scatter), flops=_flops_of_windows, tests=_WINDOWS,
    ),
    *define(
        "expand", "batch_norm_grad batch_norm_inference batch_norm_training", FLOAT | NARROW_FLOAT,
        infer=_infer_batch_norm, relate=_relate_batch_norm, tests="tests/run/test_ops_batch_norm.py",
    ),
)  # fmt: skip
