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
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Literal

from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation

MAX_ELEMENTS = 64

Elements = Dims

Results = Literal["any", "booleans", "integers"]
"""Results that a rule is right for: those of bitwise ops have to be booleans, and those of sums integers."""


@dataclass(frozen=True)
class ValueRule:
    """The elements of the result of an op that computes with sizes.

    elements: None where it cannot tell. results: those for which it is asked. arranges: the elements are those of the
    operands.
    """

    elements: Callable[[SymbolicValues, ir.OpView], Elements | None]
    results: Results = "any"
    arranges: bool = False


@dataclass
class SymbolicValues:
    """Known element values (row-major) of integer and boolean tensors with at most `MAX_ELEMENTS` elements.

    `rules` are those of the ops, by name. `relations` keeps, for a scalar comparison, the relation itself: it reads
    better than its 0/1 form. Booleans are found when they are asked for: JAX computes many to decide the sign of a
    remainder, which the facts know.
    """

    facts: Facts
    rules: Mapping[str, ValueRule]
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
        rule = self.rules.get(op.operation.name)
        if rule is None or len(op.results) != 1 or not is_shape_like(op.results[0].type):
            return
        if rule.results == "booleans" and is_boolean(op.results[0]):
            if all(map(self.is_known, op.operands)):
                self._booleans[op.results[0]] = op
        elif rule.results == "any" or (rule.results == "integers" and not is_boolean(op.results[0])):
            self._evaluate(op)

    def _evaluate(self, op: ir.OpView) -> None:
        elements = self.rules[op.operation.name].elements(self, op)
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


def is_boolean(value: ir.Value) -> bool:
    """Tells whether the elements of a tensor are booleans."""
    element = ir.RankedTensorType(value.type).element_type
    return isinstance(element, ir.IntegerType) and element.width == 1
