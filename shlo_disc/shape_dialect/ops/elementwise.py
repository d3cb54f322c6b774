# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that compute each element of the result from the elements at the same index."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.types import Dims, bits_of, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import OpDef, define
from shlo_disc.shape_dialect.ops.element_types import ALL, BOOL, COMPLEX, FLOAT, INT, NARROW_FLOAT, NARROW_INT, SIGNED
from shlo_disc.shape_dialect.ops.propagation import Propagation, SizeRule, same_shape, same_shape_of
from shlo_disc.shape_dialect.ops.size_relations import RelationRule, SizeRelations, one_shape, rank
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import called_function, captured, constant_of

_FLOATS = "tests/run/test_ops_float.py"
_INTS = "tests/run/test_ops_integer.py"
_COMPLEX = "tests/run/test_ops_complex.py"
_PARTS = COMPLEX | {"f32", "f64"}
_ANY_FLOAT = FLOAT | NARROW_FLOAT
_ANY_SIGNED = SIGNED | {"i2", "i4"}
_ANY_INT = INT | NARROW_INT


def _infer_select(p: Propagation, op: ir.OpView) -> list[Dims]:
    scalar_predicate = not dims_of(op.operands[0])
    return same_shape_of((1, 2) if scalar_predicate else (0, 1, 2))(p, op)


def _infer_clamp(p: Propagation, op: ir.OpView) -> list[Dims]:
    return same_shape_of([i for i in range(3) if i == 1 or dims_of(op.operands[i])])(p, op)


def _infer_bitcast_convert(p: Propagation, op: ir.OpView) -> list[Dims]:
    """A last axis holds the parts of the wider type."""
    dims = dims_of(op.operands[0])
    source, result = (ir.RankedTensorType(v.type) for v in (op.operands[0], op.results[0]))
    ratio = bits_of(source.element_type) / bits_of(result.element_type)
    if ratio == 1:
        return [dims]
    if ratio > 1:
        return [(*dims, Expr.const(int(ratio)))]
    p.equal(dims[-1], Expr.const(int(1 / ratio)), op)
    return [dims[:-1]]


def _relate_bitcast_convert(r: SizeRelations, op: ir.OpView) -> None:
    source, result = op.operands[0], op.results[0]
    common = range(min(rank(source), rank(result)))
    r.same_axes(source, common, result, common)
    for value in (source, result):
        r.fix(value, range(len(common), rank(value)))


def _elementwise(
    names: str,
    dtypes: frozenset[str],
    tests: str,
    *,
    spec: frozenset[str] | None = None,
    lowering: str = "elementwise",
    infer: SizeRule = same_shape,
    relate: RelationRule = one_shape,
    code: int = 1,
    cost: int = 1,
    is_function: bool = False,
) -> tuple[OpDef, ...]:
    return define(
        lowering, names, dtypes, spec=spec, tests=tests, infer=infer, relate=relate, is_elementwise=True, code=code,
        cost=cost, is_function=is_function,
    )  # fmt: skip


def _function(name: str, *, code: int, cost: int = 1) -> tuple[OpDef, ...]:
    """A function of `vector_math`."""
    return _elementwise(name, _ANY_FLOAT | COMPLEX, _FLOATS, code=code, cost=cost, is_function=True)


_SCALAR_OPS = (
    *_function("cosine", code=160, cost=25),
    *_function("exponential", code=20, cost=12),
    *_function("exponential_minus_one", code=30),
    *_function("log", code=40, cost=15),
    *_function("log_plus_one", code=45),
    *_function("logistic", code=40, cost=16),
    *_elementwise("rsqrt", _ANY_FLOAT | COMPLEX, _FLOATS, code=5, cost=6),
    *_function("sine", code=160, cost=25),
    *_elementwise("sqrt", _ANY_FLOAT | COMPLEX, _FLOATS, cost=6),
    *_function("tan", code=160),
    *_function("tanh", code=28, cost=20),
    *_function("cbrt", code=40),
    *_function("atan2", code=45),
    *_elementwise("ceil floor round_nearest_afz round_nearest_even", _ANY_FLOAT, _FLOATS),
    *_elementwise("is_finite", _ANY_FLOAT | BOOL, _FLOATS),
    *_elementwise("reduce_precision", _ANY_FLOAT, _FLOATS),
    *_elementwise("abs", _ANY_FLOAT | _ANY_SIGNED | COMPLEX, _FLOATS),
    *_elementwise("sign", _ANY_FLOAT | _ANY_SIGNED | COMPLEX, _FLOATS),
    *_elementwise("negate", _ANY_FLOAT | _ANY_INT | COMPLEX, _INTS),
    *_elementwise("add maximum minimum multiply", ALL, _INTS),
    *_elementwise("subtract", ALL - BOOL, _INTS),
    *_elementwise("divide", ALL - BOOL, _INTS, cost=4),
    *_elementwise("power", ALL - BOOL, _INTS, code=90, cost=40, is_function=True),
    *_elementwise("remainder", ALL - BOOL - COMPLEX, _INTS, spec=ALL - BOOL, code=60, cost=60),
    *_elementwise("and not or xor", BOOL | _ANY_INT, _INTS),
    *_elementwise("count_leading_zeros popcnt shift_left shift_right_arithmetic shift_right_logical", _ANY_INT, _INTS),
    *_elementwise("clamp", ALL, _INTS, infer=_infer_clamp),
    *_elementwise("compare convert", ALL, _INTS),
    *_elementwise("select", ALL, _INTS, infer=_infer_select),
    *_elementwise("bitcast_convert", ALL, _INTS, infer=_infer_bitcast_convert, relate=_relate_bitcast_convert),
    *_elementwise("complex imag real", _PARTS, _COMPLEX, lowering="expand"),
)

ELEMENTWISE = frozenset(op.name for op in _SCALAR_OPS)
"""Ops of which an element of the result needs the elements of the operands at its own index, and nothing else."""


# ---- bodies -------------------------------------------------------------------------------------------------------


def check_body(op: ir.OpView) -> str | None:
    """The bodies of a map, reduction, scatter or sort: scalar ops on their own arguments and constants."""
    for region in op.regions:
        blocks = list(region.blocks)
        if len(blocks) != 1:
            return "a body of several blocks has no lowering"
        names = {inner.operation.name for inner in blocks[0].operations}
        foreign = sorted(names - ELEMENTWISE - {"stablehlo.constant", "stablehlo.return", "func.return"})
        if foreign:
            return f"a body with {', '.join(foreign)} has no lowering"
        if any(constant_of(value) is None for _, _, value in captured(blocks[0])):
            return "a body that uses values from outside has no lowering"
    return None


def check_called_body(op: ir.OpView) -> str | None:
    """The function that a custom call names as its body."""
    if "called_computations" not in op.attributes:
        return "a custom call without its computation has no lowering"
    return check_body(called_function(op))


def _check_map(op: ir.OpView) -> str | None:
    """As `check_body`; a map of no tensors would have no size."""
    return check_body(op) if op.operands else "a map without operands has no lowering"


OPS = (
    *_SCALAR_OPS,
    *define("expand", "map", ALL, check=_check_map, infer=same_shape, relate=one_shape, tests=_INTS),
)

__all__ = ["ELEMENTWISE", "OPS", "check_body", "check_called_body"]
