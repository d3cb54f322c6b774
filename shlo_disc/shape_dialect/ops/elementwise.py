# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that compute each element of the result from the elements at the same index."""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.shape_dialect.dialect.types import Dims, bits_of, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.definition import OpDef, define
from shlo_disc.shape_dialect.ops.element_types import ALL, BOOL, COMPLEX, FLOAT, INT, NARROW_FLOAT, NARROW_INT, SIGNED
from shlo_disc.shape_dialect.ops.propagation import Propagation, SizeRule, same_shape, same_shape_of
from shlo_disc.shape_dialect.ops.size_relations import RelationRule, SizeRelations, one_shape, rank
from shlo_disc.shape_dialect.ops.values import Elements, Results, SymbolicValues, ValueRule
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
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


# ---- values of sizes ------------------------------------------------------------------------------------------------


def _provable(function: Callable[..., Expr | None], results: Results = "any") -> ValueRule:
    """A rule that computes an element from the facts and the elements at its index; None where they do not tell."""

    def elements(values: SymbolicValues, op: ir.OpView) -> Elements | None:
        operands = values.operands(op)
        if operands is None:
            return None
        count = max(len(o) for o in operands)
        columns = [o if len(o) == count else o * count for o in operands]
        result = [function(values.facts, *row) for row in zip(*columns, strict=True)]
        return None if any(r is None for r in result) else tuple(r for r in result if r is not None)

    return ValueRule(elements, results)


def _exact(function: Callable[..., Expr], results: Results = "any") -> ValueRule:
    """A rule that computes an element from the elements at its index."""
    return _provable(lambda facts, *operands: function(*operands), results)


def _truth(relation: Relation, facts: Facts) -> Expr:
    """The relation as 0 or 1."""
    proved = facts.prove(relation)
    if proved is not None:
        return Expr.const(int(proved))
    difference = relation.lhs - relation.rhs
    at_least: Callable[[Expr], Expr] = lambda d: Expr.minimum(Expr.maximum(d + 1, 0), 1)  # noqa: E731
    return {
        ">=": at_least(difference),
        ">": at_least(difference - 1),
        "<=": at_least(-difference),
        "<": at_least(-difference - 1),
        "==": at_least(difference) + at_least(-difference) - 1,
        "!=": 2 - at_least(difference) - at_least(-difference),
    }[relation.operator]


def _truncated_quotient(facts: Facts, a: Expr, b: Expr) -> Expr | None:
    """Division that rounds towards zero, for a divisor that is proved positive."""
    if facts.prove(Relation.ge(b, 1)) is not True:
        return None
    if facts.prove(Relation.ge(a, 0)) is True:
        return a // b
    return Expr.maximum(a, 0) // b - Expr.maximum(-a, 0) // b


def _remainder(facts: Facts, a: Expr, b: Expr) -> Expr | None:
    """The remainder of a division that rounds towards zero: `mod` of the magnitude, with the sign of the dividend."""
    if facts.prove(Relation.ge(b, 1)) is True:
        if facts.prove(Relation.ge(a, 0)) is True:
            return a % b
        if facts.prove(Relation.ge(-a, 0)) is True:
            return -(-a % b)
    quotient = _truncated_quotient(facts, a, b)
    return None if quotient is None else a - b * quotient


_SELECTED = _exact(lambda p, x, y: y + p * (x - y))


def _elements_of_select(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    """One of two, by a boolean; `mod` where that makes a remainder one that rounds towards minus infinity."""
    division = _divided(values, op)
    if division is not None:
        a, b = (values.get(v) for v in division)
        pairs = list(zip(a, b, strict=True)) if a is not None and b is not None else []
        if pairs and all(values.facts.prove(Relation.ge(b, 1)) is True for _, b in pairs):
            return tuple(a % b for a, b in pairs)
    return _SELECTED.elements(values, op)


def _divided(values: SymbolicValues, op: ir.OpView) -> tuple[ir.Value, ir.Value] | None:
    """(a, b) where `op` is select((r < 0) != (b < 0) and r != 0, r + b, r) with the remainder r of a / b, else None."""
    condition, shifted, rest = op.operands
    remainder, sum_, both = (_made_by(*pair) for pair in ((rest, "remainder"), (shifted, "add"), (condition, "and")))
    if remainder is None or sum_ is None or both is None:
        return None
    a, b = remainder.operands
    if set(sum_.operands) != {rest, b}:
        return None
    for signs, nonzero in (tuple(both.operands), tuple(both.operands)[::-1]):
        differ = _made_by(signs, "compare", "NE")
        if differ is None or not _is_comparison_with_zero(values, nonzero, "NE", rest):
            continue
        first, second = differ.operands
        if all(_is_comparison_with_zero(values, v, "LT", of) for v, of in ((first, rest), (second, b))):
            return a, b
    return None


def _made_by(value: ir.Value, name: str, direction: str = "") -> ir.Operation | None:
    """The op that makes `value`, if it is the one named (of this comparison direction)."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is None or op.name != f"stablehlo.{name}":
        return None
    return op if not direction or _direction(op) == direction else None


def _is_comparison_with_zero(values: SymbolicValues, value: ir.Value, direction: str, of: ir.Value) -> bool:
    op = _made_by(value, "compare", direction)
    if op is None or op.operands[0] != of:
        return False
    return all(e.constant == 0 for e in values.get(op.operands[1]) or (Expr.const(1),))


def _direction(op: ir.OpView | ir.Operation) -> str:
    return str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")


_OPERATOR = {"EQ": "==", "NE": "!=", "GE": ">=", "GT": ">", "LE": "<=", "LT": "<"}


def _elements_of_compare(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    operands = values.operands(op)
    if operands is None:
        return None
    relations = [Relation(_OPERATOR[_direction(op)], a, b) for a, b in zip(*operands, strict=True)]
    if len(relations) == 1:
        values.relations[op.results[0]] = relations[0]
    return tuple(_truth(r, values.facts) for r in relations)


def _elements_of_convert(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    source = values.get(op.operands[0])
    if source is None or str(ir.RankedTensorType(op.results[0].type).element_type) != "i1":
        return source
    return tuple(_truth(Relation("!=", e, Expr.const(0)), values.facts) for e in source)


# ---- definitions --------------------------------------------------------------------------------------------------


def _elementwise(
    names: str,
    dtypes: frozenset[str],
    tests: str,
    *,
    spec: frozenset[str] | None = None,
    lowering: str = "elementwise",
    infer: SizeRule = same_shape,
    relate: RelationRule = one_shape,
    values: ValueRule | None = None,
    code: int = 1,
    cost: int = 1,
    is_function: bool = False,
) -> tuple[OpDef, ...]:
    return define(
        lowering, names, dtypes, spec=spec, tests=tests, infer=infer, relate=relate, values=values, is_elementwise=True,
        code=code, cost=cost, is_function=is_function,
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
    *_elementwise("abs", _ANY_FLOAT | _ANY_SIGNED | COMPLEX, _FLOATS, values=_exact(lambda a: Expr.maximum(a, -a))),
    *_elementwise(
        "sign", _ANY_FLOAT | _ANY_SIGNED | COMPLEX, _FLOATS,
        values=_exact(lambda a: Expr.minimum(Expr.maximum(a, -1), 1)),
    ),
    *_elementwise("negate", _ANY_FLOAT | _ANY_INT | COMPLEX, _INTS, values=_exact(lambda a: -a, "integers")),
    *_elementwise("add", ALL, _INTS, values=_exact(lambda a, b: a + b, "integers")),
    *_elementwise("maximum", ALL, _INTS, values=_exact(Expr.maximum)),
    *_elementwise("minimum", ALL, _INTS, values=_exact(Expr.minimum)),
    *_elementwise("multiply", ALL, _INTS, values=_exact(lambda a, b: a * b, "integers")),
    *_elementwise("subtract", ALL - BOOL, _INTS, values=_exact(lambda a, b: a - b, "integers")),
    *_elementwise("divide", ALL - BOOL, _INTS, values=_provable(_truncated_quotient), cost=4),
    *_elementwise("power", ALL - BOOL, _INTS, code=90, cost=40, is_function=True),
    *_elementwise(
        "remainder", ALL - BOOL - COMPLEX, _INTS, spec=ALL - BOOL, values=_provable(_remainder), code=60, cost=60,
    ),
    *_elementwise("and", BOOL | _ANY_INT, _INTS, values=_exact(Expr.minimum, "booleans")),
    *_elementwise("not", BOOL | _ANY_INT, _INTS, values=_exact(lambda a: 1 - a, "booleans")),
    *_elementwise("or", BOOL | _ANY_INT, _INTS, values=_exact(Expr.maximum, "booleans")),
    *_elementwise("xor", BOOL | _ANY_INT, _INTS),
    *_elementwise("count_leading_zeros popcnt shift_left shift_right_arithmetic shift_right_logical", _ANY_INT, _INTS),
    *_elementwise(
        "clamp", ALL, _INTS, infer=_infer_clamp,
        values=_exact(lambda low, x, high: Expr.minimum(Expr.maximum(x, low), high)),
    ),
    *_elementwise("compare", ALL, _INTS, values=ValueRule(_elements_of_compare, "booleans")),
    *_elementwise("convert", ALL, _INTS, values=ValueRule(_elements_of_convert, arranges=True)),
    *_elementwise("select", ALL, _INTS, infer=_infer_select, values=ValueRule(_elements_of_select)),
    *_elementwise("bitcast_convert", ALL, _INTS, infer=_infer_bitcast_convert, relate=_relate_bitcast_convert),
    *_elementwise("complex imag real", _PARTS, _COMPLEX, lowering="expand"),
)  # fmt: skip

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
