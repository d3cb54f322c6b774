# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic values of small integer tensors: which sizes does a shape computation produce?

Producers compute shapes with ordinary scalar ops (`get_dimension_size`, arithmetic, `concatenate`). Every such op has
an exact counterpart on expressions, booleans being 0 and 1: `a >= b` is `min(max(a - b + 1, 0), 1)`, and
`select(p, x, y)` is `y + p*(x - y)`. The fact engine then removes what it can prove, so that JAX's sign-correcting code
for a floor division comes back as one `floordiv`. Arithmetic is on exact integers; a program whose shape arithmetic
overflows its integer type is rejected at call time by the overflow checks on sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field

from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation

MAX_ELEMENTS = 64

Elements = Dims


@dataclass
class SymbolicValues:
    """Known element values (row-major) of integer and boolean tensors with at most `MAX_ELEMENTS` elements.

    `relations` keeps, for a scalar comparison, the relation itself: it reads better than its 0/1 form. Booleans are
    found when they are asked for: JAX computes many to decide the sign of a remainder, which the facts know.
    """

    facts: Facts
    elements: MutableMapping[ir.Value, Elements] = field(default_factory=dict)
    relations: MutableMapping[ir.Value, Relation] = field(default_factory=dict)
    _booleans: dict[ir.Value, ir.OpView] = field(default_factory=dict)

    def get(self, value: ir.Value) -> Elements | None:
        """The elements of `value`, or None when some element is data."""
        op = self._booleans.pop(value, None)
        if op is not None:
            self._evaluate(op)
        return self.elements.get(value)

    def relation(self, value: ir.Value) -> Relation | None:
        """The comparison that the scalar `value` is, or None when it is no comparison of sizes."""
        self.get(value)
        return self.relations.get(value)

    def is_known(self, value: ir.Value) -> bool:
        """Tells whether `get` may find the elements of `value`; it does for all but booleans."""
        return value in self._booleans or value in self.elements

    def visit(self, op: ir.OpView) -> None:
        """Record the results of `op`, if it is a shape computation, or what a `disc.bind` names."""
        if op.operation.name == "disc.bind":
            self.elements[op.operands[0]] = bound_elements(op)
            return
        name = op.operation.name
        if name not in _RULES or len(op.results) != 1 or not is_shape_like(op.results[0].type) or not _applies(op):
            return
        if name in _DEFERRED and is_boolean(op.results[0]):
            if all(map(self.is_known, op.operands)):
                self._booleans[op.results[0]] = op
            return
        self._evaluate(op)

    def _evaluate(self, op: ir.OpView) -> None:
        elements = _RULES[op.operation.name](self, op)
        if elements is None:
            return
        type_ = ir.IntegerType(ir.RankedTensorType(op.results[0].type).element_type)
        held = [_held_by(type_, e, self.facts) for e in elements]
        if None not in held:
            self.elements[op.results[0]] = tuple(self.facts.simplify(e) for e in held if e is not None)

    def operands(self, op: ir.OpView) -> list[Elements] | None:
        """The elements of all operands, or None."""
        found = [self.get(v) for v in op.operands]
        return None if any(e is None for e in found) else [e for e in found if e is not None]


def erase_unused_sizes(block: ir.Block) -> None:
    """Erase what is computed from sizes and read by nothing."""
    for op in reversed(list(block.operations)):
        is_size = op.operation.name in _RULES and all(is_shape_like(r.type) for r in op.results)
        if is_size and not any(True for r in op.results for _ in r.uses):
            op.operation.erase()


def known_elements(value: ir.Value) -> Elements:
    """The elements of a shape operand after shape computations were set apart.

    It is a constant, a `disc.shape`, a view, or data that a `disc.bind` names. Raises ValueError for anything else.
    """
    owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if owner is not None and owner.name in ("disc.shape", "stablehlo.constant"):
        return dims_of_attr(owner.attributes["dims"]) if owner.name == "disc.shape" else constant_elements(owner)
    bind = next((use.owner for use in value.uses if use.owner.operation.name == "disc.bind"), None)
    if bind is not None:
        return bound_elements(bind)
    if owner is not None and owner.name in ("stablehlo.concatenate", "stablehlo.convert", "stablehlo.reshape"):
        return tuple(e for operand in owner.operands for e in known_elements(operand))
    raise ValueError(f"the elements of {value} are not known")


def bound_elements(bind: ir.OpView | ir.Operation) -> Elements:
    """The symbols that a `disc.bind` gives the elements of its operand."""
    return dims_of_attr(bind.attributes["symbols"])


@remembered
def is_shape_like(type_: ir.Type) -> bool:
    """True for static integer or boolean tensors that are small enough to be shapes."""
    if not isinstance(type_, ir.RankedTensorType) or not isinstance(type_.element_type, ir.IntegerType):
        return False
    return type_.has_static_shape and math.prod(type_.shape) <= MAX_ELEMENTS


def _held_by(type_: ir.IntegerType, e: Expr, facts: Facts) -> Expr | None:
    """The value that an integer type holds of an exact result: constants wrap around, sizes are kept while they fit.

    A size is taken to fit 32 bits; anything narrower, and unsigned differences, must be proved to.
    """
    low = 0 if type_.is_unsigned or type_.width == 1 else -(1 << (type_.width - 1))
    if e.constant is not None:
        return Expr.const((e.constant - low) % (1 << type_.width) + low)
    if type_.width == 1 or (low and type_.width >= 32):
        return e  # the rules for booleans give 0 or 1
    smallest, largest = facts.range(e)
    fits_below = smallest is not None and smallest >= low
    fits_above = type_.width >= 32 or (largest is not None and largest < low + (1 << type_.width))
    return e if fits_below and fits_above else None


def truncated_quotient(a: Expr, b: Expr, facts: Facts) -> Expr | None:
    """Division that rounds towards zero, for a divisor that is proved positive."""
    if facts.prove(Relation.ge(b, 1)) is not True:
        return None
    if facts.prove(Relation.ge(a, 0)) is True:
        return a // b
    return Expr.maximum(a, 0) // b - Expr.maximum(-a, 0) // b


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


def constant_elements(op: ir.OpView | ir.Operation) -> Elements:
    """The elements of an integer `stablehlo.constant`, row-major."""
    attribute = ir.DenseElementsAttr(op.attributes["value"])
    tensor = ir.RankedTensorType(op.results[0].type)
    count = math.prod(tensor.shape)
    if attribute.is_splat:
        return (Expr.const(int(attribute.get_splat_value().value)),) * count
    if ir.IntegerType(tensor.element_type).width in (2, 4):
        return tuple(Expr.const(int(element)) for element in array_of(op).flat)
    elements = ir.DenseIntElementsAttr(attribute)
    return tuple(Expr.const(int(elements[i])) for i in range(count))


def _get_dimension_size(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    return (dims_of(op.operands[0])[ir.IntegerAttr(op.attributes["dimension"]).value],)


def _elementwise(function: Callable[..., Expr | None]) -> Callable[[SymbolicValues, ir.OpView], Elements | None]:
    def rule(values: SymbolicValues, op: ir.OpView) -> Elements | None:
        operands = values.operands(op)
        if operands is None:
            return None
        count = max(len(o) for o in operands)
        columns = [o if len(o) == count else o * count for o in operands]
        result = [function(values.facts, *row) for row in zip(*columns, strict=True)]
        return None if any(r is None for r in result) else tuple(r for r in result if r is not None)

    return rule


def _remainder(facts: Facts, a: Expr, b: Expr) -> Expr | None:
    """The remainder of a division that rounds towards zero: `mod` of the magnitude, with the sign of the dividend."""
    if facts.prove(Relation.ge(b, 1)) is True:
        if facts.prove(Relation.ge(a, 0)) is True:
            return a % b
        if facts.prove(Relation.ge(-a, 0)) is True:
            return -(-a % b)
    quotient = truncated_quotient(a, b, facts)
    return None if quotient is None else a - b * quotient


def _select(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    """One of two, by a boolean; `mod` where that makes a remainder one that rounds towards minus infinity."""
    division = _divided(values, op)
    if division is not None:
        a, b = (values.get(v) for v in division)
        pairs = list(zip(a, b, strict=True)) if a is not None and b is not None else []
        if pairs and all(values.facts.prove(Relation.ge(b, 1)) is True for _, b in pairs):
            return tuple(a % b for a, b in pairs)
    return _same_values(lambda p, x, y: y + p * (x - y))(values, op)


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


def _compare(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    operands = values.operands(op)
    if operands is None:
        return None
    relations = [Relation(_OPERATOR[_direction(op)], a, b) for a, b in zip(*operands, strict=True)]
    if len(relations) == 1:
        values.relations[op.results[0]] = relations[0]
    return tuple(_truth(r, values.facts) for r in relations)


def _moved(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    """`reshape` and scalar broadcasts: the same elements, or one element repeated."""
    source = values.get(op.operands[0])
    count = math.prod(ir.RankedTensorType(op.results[0].type).shape)
    if source is None or (len(source) != count and len(source) != 1):
        return None
    return source if len(source) == count else source * count


def _convert(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    source = values.get(op.operands[0])
    if source is None or str(ir.RankedTensorType(op.results[0].type).element_type) != "i1":
        return source
    return tuple(_truth(Relation("!=", e, Expr.const(0)), values.facts) for e in source)


def _broadcast(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    rank = len(ir.RankedTensorType(op.results[0].type).shape)
    return _moved(values, op) if rank <= 1 else None


def _concatenate(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    operands = values.operands(op)
    if operands is None or ir.IntegerAttr(op.attributes["dimension"]).value != 0:
        return None
    return tuple(e for o in operands for e in o)


def _slice(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    source = values.get(op.operands[0])
    if source is None or len(ir.RankedTensorType(op.results[0].type).shape) != 1:
        return None
    start, limit, stride = (list(op.attributes[n])[0] for n in ("start_indices", "limit_indices", "strides"))
    return source[start:limit:stride]


def _shape(values: SymbolicValues, op: ir.OpView) -> Elements | None:
    return dims_of_attr(op.attributes["dims"])


def _same_values(function: Callable[..., Expr]) -> Callable[[SymbolicValues, ir.OpView], Elements | None]:
    return _elementwise(lambda facts, *operands: function(*operands))


_RULES: dict[str, Callable[[SymbolicValues, ir.OpView], Elements | None]] = {
    "disc.shape": _shape,
    "stablehlo.abs": _same_values(lambda a: Expr.maximum(a, -a)),
    "stablehlo.add": _same_values(lambda a, b: a + b),
    "stablehlo.and": _same_values(Expr.minimum),
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.clamp": _same_values(lambda low, x, high: Expr.minimum(Expr.maximum(x, low), high)),
    "stablehlo.compare": _compare,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": lambda values, op: constant_elements(op),
    "stablehlo.convert": _convert,
    "stablehlo.divide": _elementwise(lambda facts, a, b: truncated_quotient(a, b, facts)),
    "stablehlo.get_dimension_size": _get_dimension_size,
    "stablehlo.maximum": _same_values(Expr.maximum),
    "stablehlo.minimum": _same_values(Expr.minimum),
    "stablehlo.multiply": _same_values(lambda a, b: a * b),
    "stablehlo.negate": _same_values(lambda a: -a),
    "stablehlo.not": _same_values(lambda a: 1 - a),
    "stablehlo.or": _same_values(Expr.maximum),
    "stablehlo.remainder": _elementwise(_remainder),
    "stablehlo.reshape": _moved,
    "stablehlo.select": _select,
    "stablehlo.sign": _same_values(lambda a: Expr.minimum(Expr.maximum(a, -1), 1)),
    "stablehlo.slice": _slice,
    "stablehlo.subtract": _same_values(lambda a, b: a - b),
}

_DEFERRED = frozenset({"stablehlo.and", "stablehlo.compare", "stablehlo.not", "stablehlo.or"})
_BOOLEAN_ONLY = frozenset({"stablehlo.and", "stablehlo.or", "stablehlo.not"})
_BOOLEAN_UNSAFE = frozenset({"stablehlo.add", "stablehlo.multiply", "stablehlo.negate", "stablehlo.subtract"})


def _applies(op: ir.OpView) -> bool:
    """Tells whether an op's integer semantics are those of its rule (bitwise ops on booleans, sums on integers)."""
    name = op.operation.name
    boolean = len(op.results) == 1 and is_boolean(op.results[0])
    return (name not in _BOOLEAN_ONLY or boolean) and (name not in _BOOLEAN_UNSAFE or not boolean)


def is_boolean(value: ir.Value) -> bool:
    """Tells whether the elements of a tensor are booleans."""
    element = ir.RankedTensorType(value.type).element_type
    return isinstance(element, ir.IntegerType) and element.width == 1
