# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants, sizes, and ops that only arrange values."""

from __future__ import annotations

from shlo_disc.shape_dialect.dense import text_alone
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import OpDef, define, no_flops, refuse
from shlo_disc.shape_dialect.ops.dynamic_forms import (
    DynamicForm,
    StatedSizes,
    call,
    create,
    kept_attributes,
    shape_operands_attribute,
    spread,
)
from shlo_disc.shape_dialect.ops.element_types import ALL, BOOL
from shlo_disc.shape_dialect.ops.lapack import LAPACK
from shlo_disc.shape_dialect.ops.lapack_sizes import lapack_sizes, shape_operands
from shlo_disc.shape_dialect.ops.propagation import DataDependentSize, Propagation, same_operands
from shlo_disc.shape_dialect.ops.size_relations import SizeRelations, one_to_one, splat_text
from shlo_disc.shape_dialect.ops.values import Elements, SymbolicValues, ValueRule, constant_elements
from shlo_disc.shape_dialect.symbolic.facts import Relation

_REFUSED = "tests/run/test_ops_refused.py"
_TESTS = "tests/run/test_ops_movement.py"


def _infer_stated(_: Propagation, op: ir.OpView) -> list[Dims]:
    return [dims_of(r) for r in op.results]


def _infer_dynamic_iota(p: Propagation, op: ir.OpView) -> list[Dims]:
    return [p.sizes(op.operands[0])]


def _infer_custom_call(p: Propagation, op: ir.OpView) -> list[Dims]:
    if ir.StringAttr(op.attributes["call_target_name"]).value in LAPACK:
        return lapack_sizes(p, op)
    shapes = shape_operands(op)
    if not shapes:
        raise DataDependentSize
    return [p.sizes(op.operands[i]) for i in shapes]


def infer_nonzero(p: Propagation, op: ir.OpView) -> list[Dims]:
    """The sizes of `disc.nonzero`: as many elements as are true. The size has its symbol from the importer."""
    (count,), (length,) = dims_of(op.results[0]), dims_of(op.operands[0])
    p.require(Relation.le(count, length), op)
    return [(count,)]


def _elements_of_get_dimension_size(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    return (dims_of(op.operands[0])[ir.IntegerAttr(op.attributes["dimension"]).value],)


def _elements_of_shape(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    return dims_of_attr(op.attributes["dims"])


def _elements_of_constant(_: SymbolicValues, op: ir.OpView) -> Elements:
    return constant_elements(op)


def _relate_constant(r: SizeRelations, op: ir.OpView) -> None:
    if not splat_text(op):
        r.fix(op.results[0])


def _relate_stated(r: SizeRelations, op: ir.OpView) -> None:
    """The attributes alone state the sizes, and other ops say what they must equal."""


def _form_of_constant(s: StatedSizes, op: ir.OpView) -> ir.Value:
    kind = ir.RankedTensorType.get([], ir.RankedTensorType(op.results[0].type).element_type)
    size = s.element(op)
    if size is not None:
        return spread(s, s.sizes([size], kind), op)
    scalar = ir.Operation.parse(f"stablehlo.constant dense<{splat_text(op)}> : {kind}")
    ir.InsertionPoint(op).insert(scalar)
    return spread(s, scalar.result, op)


def _form_of_iota(s: StatedSizes, op: ir.OpView) -> ir.Value:
    result = op.results[0]
    return create("dynamic_iota", result.type, [s.sizes(s.dims(result))], kept_attributes(op, "iota_dimension"))


def _form_of_custom_call(s: StatedSizes, op: ir.OpView) -> list[ir.Value]:
    """The call of a registered function, or for the largest elements, with its results' sizes, as jax.export has it."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes |= shape_operands_attribute(len(op.operands), len(op.results))
    return call(op, [*op.operands, *(s.sizes(s.dims(result)) for result in op.results)], attributes)


def _form_of_composite(s: StatedSizes, op: ir.OpView) -> list[ir.Value]:
    """A call of the function that it is: what its attributes say is in the function's sizes."""
    attributes = {"callee": op.attributes["decomposition"]}
    return list(ir.Operation.create("func.call", [r.type for r in op.results], list(op.operands), attributes).results)


def _check_constant(op: ir.OpView) -> str | None:
    if isinstance(ir.RankedTensorType(op.results[0].type).element_type, ir.ComplexType):
        inline = " dense<" in text_alone(op)  # the bindings cannot read the attribute
    else:
        inline = isinstance(op.attributes["value"], ir.DenseElementsAttr)
    return None if inline else "a constant whose elements are not in the program has no lowering"


OPS = (
    *define(
        "index", "constant", ALL, check=_check_constant, infer=_infer_stated, relate=_relate_constant,
        dynamic_form=DynamicForm(_form_of_constant, of_type=True), values=ValueRule(_elements_of_constant),
        is_generator=True, flops=no_flops, cost=0, code=0, tests=_TESTS,
    ),
    *define(
        "index", "iota", ALL - BOOL, infer=_infer_stated, relate=_relate_stated,
        dynamic_form=DynamicForm(_form_of_iota, of_type=True), is_generator=True, flops=no_flops, tests=_TESTS,
    ),
    *define(
        "index", "dynamic_iota", ALL - BOOL, infer=_infer_dynamic_iota, is_generator=True, size_operands=(0,),
        flops=no_flops, tests=_TESTS,
    ),
    *define(
        "shape", "get_dimension_size", ALL, infer=_infer_stated, relate=_relate_stated,
        values=ValueRule(_elements_of_get_dimension_size), tests=_TESTS,
    ),
    *define(
        "import", "custom_call", ALL, infer=_infer_custom_call, dynamic_form=DynamicForm(_form_of_custom_call),
        tests="tests/run/test_bad_input.py",
    ),
    *define("import", "composite", ALL, dynamic_form=DynamicForm(_form_of_composite), tests=_TESTS),
    *define("import", "return", ALL, flops=no_flops, tests=_TESTS),
    *define(
        "order", "optimization_barrier", ALL, infer=same_operands, relate=one_to_one,
        tests="tests/run/test_checkpoint.py",
    ),
    # Of the dialect, not of the specification.
    *refuse(
        "set_dimension_size", (), "bounded dimensions have no lowering", "use a symbolic dimension", _REFUSED,
        size_operands=(1,),
    ),
    *define("import", "tuple get_tuple_element", ALL, tests="tests/run/test_ops_distributed.py"),
    OpDef(
        "@shlo_disc.nonzero", "import", BOOL | {"i32", "i64"}, frozenset(),
        infer=_infer_custom_call, tests="tests/run/test_numpy_sizes.py",
    ),
    OpDef(
        "disc.shape", "shape", frozenset({"i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"}), frozenset(),
        infer=_infer_stated, values=ValueRule(_elements_of_shape), is_generator=True, flops=no_flops, code=0,
    ),
)  # fmt: skip
