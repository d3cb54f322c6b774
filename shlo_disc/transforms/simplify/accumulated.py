# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products that a loop accumulates are one product after the loop.

The gradient of a recurrent network's weights is such a sum: each iteration adds what its step contributes, a product
over the batch. One factor is a slice of what the forward loop has saved, so that all of them are there already; the
other is written to a new array, a slice an iteration. What is left in the loop are rows that need no other row.

Products of rows with a transposed matrix from outside, the other half of such a gradient, get the matrix the way in
which a kernel for rows reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.mlir import ir, stablehlo
from shlo_disc.shape_dialect.carried import carry_less
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.propagation import integers
from shlo_disc.shape_dialect.regions import nested_blocks, terminator_of
from shlo_disc.shape_dialect.types import dims_of, element_type_of, product, tensor_type
from shlo_disc.transforms.counted_loops import Count, affine, count_of
from shlo_disc.transforms.expand.build import constant
from shlo_disc.transforms.simplify.data_movement import RESHAPES
from shlo_disc.transforms.simplify.scanned import MOST_GROWTH, SLICES
from shlo_disc.transforms.views import broadcast, transpose, view

MOST_WEIGHTS = 1 << 18
"""Elements of a matrix that is transposed before a loop."""


@dataclass
class _Sum:
    """Carried value `position` grows by a product, transposed by `permutation`; all of one factor are at hand."""

    position: int
    dot: ir.Operation
    permutation: list[int] | None
    place: ir.Value
    saved: dict[int, ir.Value]


def hoist_accumulated_products(block: ir.Block) -> None:
    """Move such sums out of the loops of a block, and of those in it, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            hoist_accumulated_products(nested)
        if op.operation.name == "stablehlo.while":
            count = count_of(op)
            if count is not None and count.trip.constant not in (0, 1):
                _Accumulation(op, count).run()
    carry_less(block)


def turn_weights(block: ir.Block) -> None:
    """Transpose small matrices by whose rows the loops of a block multiply before the loops, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            turn_weights(nested)
        if op.operation.name == "stablehlo.while":
            body = nested_blocks(op)[1]
            for inner in [i.operation for i in body.operations if i.operation.name == "stablehlo.dot_general"]:
                _turn_weights(op, body, inner)


def _turn_weights(loop: ir.OpView, body: ir.Block, dot: ir.Operation) -> None:
    lhs, rhs = dot.operands
    numbers = stablehlo.DotDimensionNumbers(dot.attributes["dot_dimension_numbers"])
    inner = [list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)]
    is_inside = rhs.owner == body or not isinstance(rhs.owner, ir.Block) and rhs.owner.operation.block == body
    size = product(dims_of(rhs)).constant
    if is_inside or inner != [[1], [1]] or [len(dims_of(v)) for v in (lhs, rhs)] != [2, 2] or size is None:
        return
    if size > MOST_WEIGHTS or list(numbers.lhs_batching_dimensions):
        return
    with ir.InsertionPoint(loop), dot.location:
        turned = transpose(rhs, [1, 0])
    dot.operands[1] = turned
    dot.attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get([], [], [1], [0])


class _Accumulation:
    """One loop."""

    def __init__(self, loop: ir.OpView, count: Count):
        self.loop = loop
        self.trip = count.trip
        self.condition, self.body = nested_blocks(loop)
        self.counter = self.body.arguments[count.position]

    def run(self) -> None:
        """Give the loop what the products need, and compute them behind it."""
        returned = list(terminator_of(self.body).operands)
        sums = [s for i, value in enumerate(returned) if (s := self._match(i, value)) is not None]
        if not sums:
            return
        stacks: dict[ir.Value, int] = {}
        updates: list[ir.Value] = []
        starts: list[ir.Value] = []
        for found in sums:
            for side, factor in enumerate(found.dot.operands):
                if side not in found.saved and factor not in stacks:
                    stacks[factor] = len(returned) + len(updates)
                    starts.append(self._zeros(factor))
                    updates.append(self._update(factor, found.place))
            returned[found.position] = self.body.arguments[found.position]
        results = self._replace([*returned, *updates], starts)
        for found in sums:
            factors = [found.saved.get(side) or results[stacks[v]] for side, v in enumerate(found.dot.operands)]
            self._add_product(found, factors, results[found.position])
        self.loop.operation.erase()

    # ---- what is a sum ----------------------------------------------------------------------------------------------

    def _match(self, position: int, value: ir.Value) -> _Sum | None:
        argument = self.body.arguments[position]
        uses = [list(v.uses) for v in (argument, value, self.condition.arguments[position])]
        add = self._op(value)
        if add is None or add.name != "stablehlo.add" or [len(u) for u in uses] != [1, 1, 0]:
            return None
        operands = list(add.operands)
        if argument not in operands:
            return None
        term = operands[1 - operands.index(argument)]
        permutation = None
        op = self._op(term)
        if op is not None and op.name == "stablehlo.transpose" and len(list(term.uses)) == 1:
            permutation = integers(op.attributes["permutation"])
            op = self._op(op.operands[0])
        if op is None or op.name != "stablehlo.dot_general" or len(list(op.results[0].uses)) != 1:
            return None
        return self._match_factors(position, op, permutation)

    def _match_factors(self, position: int, dot: ir.Operation, permutation: list[int] | None) -> _Sum | None:
        numbers = stablehlo.DotDimensionNumbers(dot.attributes["dot_dimension_numbers"])
        types = {str(element_type_of(v)) for v in (*dot.operands, dot.results[0])}
        if list(numbers.lhs_batching_dimensions) or types not in ({"f32"}, {"f64"}):
            return None
        found = {side: pair for side, v in enumerate(dot.operands) if (pair := self._saved(v)) is not None}
        if not found or any(self._op(v) is None for v in dot.operands):
            return None
        inner = [list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)]
        free = [product(d for i, d in enumerate(dims_of(v)) if i not in inner[s]) for s, v in enumerate(dot.operands)]
        first = min(found)
        saved, other = free[first].constant, free[1 - first].constant
        if saved is None or other is None or other > MOST_GROWTH * saved:
            return None
        place = found[first][1]
        here = affine(place, self.counter)
        same = {side: whole for side, (whole, start) in found.items() if affine(start, self.counter) == here}
        return _Sum(position, dot, permutation, place, same)

    def _op(self, value: ir.Value) -> ir.Operation | None:
        """The op of the body that computes a value."""
        owner = value.owner
        return None if isinstance(owner, ir.Block) or owner.operation.block != self.body else owner.operation

    def _saved(self, value: ir.Value) -> tuple[ir.Value, ir.Value] | None:
        """The array of which each iteration takes another row, this one here, and where it is."""
        op = self._op(value)
        while op is not None and op.name in RESHAPES:
            op = self._op(op.operands[0])
        if op is None or op.name not in SLICES:
            return None
        whole, rest = op.operands[0], dims_of(value)
        start = self._start(op.operands[1])
        is_row = dims_of(whole) == (self.trip, *rest) and dims_of(op.results[0]) == (Expr.const(1), *rest)
        if self._is_inside(whole) or not is_row or start is None:
            return None
        steps = ((1, Expr.const(0)), (-1, self.trip - 1))
        return (whole, start) if affine(start, self.counter) in steps else None

    def _is_inside(self, value: ir.Value) -> bool:
        return value.owner == self.body or self._op(value) is not None

    def _start(self, start: ir.Value) -> ir.Value | None:
        """The first element of a vector of starts as a scalar; clamping changes nothing where all rows are taken."""
        while dims_of(start):
            op = self._op(start)
            if op is None or op.name not in ("stablehlo.clamp", "stablehlo.concatenate", "stablehlo.reshape"):
                return None
            start = op.operands[1 if op.name == "stablehlo.clamp" else 0]
        return start

    # ---- the new loop -----------------------------------------------------------------------------------------------

    def _zeros(self, factor: ir.Value) -> ir.Value:
        dims = (self.trip, *dims_of(factor))
        with ir.InsertionPoint(self.loop), self.loop.location:
            return broadcast(constant(0.0, element_type_of(factor)), dims, [])

    def _update(self, factor: ir.Value, place: ir.Value) -> ir.Value:
        """Writes the iteration's factor to a new argument of the body."""
        dims = dims_of(factor)
        type_ = tensor_type((self.trip, *dims), element_type_of(factor))
        self.condition.add_argument(type_, self.loop.location)
        stack = self.body.add_argument(type_, self.loop.location)
        with ir.InsertionPoint(terminator_of(self.body)), self.loop.location:
            window = view(factor, (Expr.const(1), *dims))
            operands = [stack, window, place, *([constant(0, element_type_of(place))] * len(dims))]
            return ir.Operation.create("stablehlo.dynamic_update_slice", results=[type_], operands=operands).results[0]

    def _replace(self, returned: list[ir.Value], starts: list[ir.Value]) -> list[ir.Value]:
        """The loop with more carried values, in place; gives its results."""
        old = terminator_of(self.body)
        with ir.InsertionPoint(old):
            ir.Operation.create("stablehlo.return", operands=returned, loc=old.location)
        old.operation.erase()
        new = ir.Operation.create(
            "stablehlo.while",
            results=[v.type for v in returned],
            operands=[*self.loop.operands, *starts],
            attributes={name: self.loop.attributes[name] for name in self.loop.attributes},
            regions=2,
            loc=self.loop.location,
            ip=ir.InsertionPoint(self.loop),
        )
        for block, region in zip((self.condition, self.body), new.regions, strict=True):
            block.append_to(region)
        for before, after in zip(self.loop.results, new.results, strict=False):
            before.replace_all_uses_with(after)
        return list(new.results)

    def _add_product(self, found: _Sum, factors: list[ir.Value], start: ir.Value) -> None:
        dot = found.dot
        numbers = stablehlo.DotDimensionNumbers(dot.attributes["dot_dimension_numbers"])
        sides = (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)
        inner = [[0, *(axis + 1 for axis in side)] for side in sides]
        attributes = {name: dot.attributes[name] for name in dot.attributes}
        attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get([], [], *inner)
        uses = [(use.owner.operation, use.operand_number) for use in start.uses]
        with ir.InsertionPoint(self.loop), dot.location:
            total = ir.Operation.create(
                dot.name, results=[dot.results[0].type], operands=factors, attributes=attributes
            ).results[0]
            if found.permutation is not None:
                total = transpose(total, found.permutation)
            added = ir.Operation.create("stablehlo.add", results=[start.type], operands=[start, total])
        for user, number in uses:
            user.operands[number] = added.results[0]
