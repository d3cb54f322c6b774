# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products that a loop accumulates are one product after the loop.

The gradient of a recurrent network's weights is such a sum: each iteration adds what its step contributes, a product
over the batch. One factor is a slice of what the forward loop has saved, so that all of them are there already; the
other is written to a new array, a slice an iteration. What is left in the loop are rows that need no other row.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.build import broadcast, constant, transpose, view
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, product, tensor_type
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops import RESHAPES
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.ops.values import known_elements
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import terminator_of
from shlo_disc.transforms.control_flow.carried import drop_carried
from shlo_disc.transforms.control_flow.counted_loops import Affine, Count, affine, count_of
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.simplify.scanned import MOST_GROWTH, SLICES

DOT = "stablehlo.dot_general"


def hoist_accumulated_products(block: ir.Block, decisions: Decisions) -> None:
    """Move such sums out of the loops of a block, and of those in it, in place."""
    drop_carried(block)
    _hoist(block, decisions)


def _hoist(block: ir.Block, decisions: Decisions) -> None:
    before = decisions.taken
    for op in list(block.operations):
        for nested in nested_blocks(op):
            _hoist(nested, decisions)
        if op.operation.name == "stablehlo.while":
            count = count_of(op)
            if count is not None and count.trip.constant not in (0, 1):
                _Accumulation(op, count).run(decisions)
    if decisions.taken > before:
        drop_carried(block)  # what has no sum to carry any more; a loop around it may have one more then


# ---- what has to hold -----------------------------------------------------------------------------------------------


@dataclass
class _Saved:
    """A factor, of the sizes `rest`, that is the slice `part` of `whole`, and where it is along axis 0."""

    whole: ir.Value
    part: ir.Value
    rest: Dims
    place: ir.Value


@dataclass
class _Sum:
    """Carried value `position` grows by `term`: a product, transposed by `permutation`.

    `saved` are the factors that are slices, by side.
    """

    accumulation: _Accumulation
    position: int
    argument: ir.Value
    add: ir.Operation
    term: ir.Value
    dot: ir.Operation
    permutation: list[int] | None
    saved: dict[int, _Saved]

    @property
    def numbers(self) -> stablehlo.DotDimensionNumbers:
        """The product's dimension numbers."""
        return stablehlo.DotDimensionNumbers(self.dot.attributes["dot_dimension_numbers"])

    def at_hand(self) -> dict[int, _Saved]:
        """The factors of which an array from outside has those of all iterations, one after the other."""
        return {side: s for side, s in self.saved.items() if self.accumulation.has_all_rows(s)}

    @property
    def place(self) -> ir.Value:
        """The position of the iteration's row of the first factor at hand."""
        found = self.at_hand()
        return found[min(found)].place

    @property
    def order(self) -> Affine | None:
        """The place in terms of the counter: in this order the product goes through the iterations."""
        return affine(self.place, self.accumulation.counter)

    def in_order(self) -> dict[int, ir.Value]:
        """The arrays at hand, by side, whose rows are in that order."""
        order, counter = self.order, self.accumulation.counter
        return {side: s.whole for side, s in self.at_hand().items() if affine(s.place, counter) == order}

    def is_worth_it(self) -> bool:
        """Tells whether what has to be written, in place of the sum, is not much larger than what is there."""
        sides = (self.numbers.lhs_contracting_dimensions, self.numbers.rhs_contracting_dimensions)
        inner = [list(side) for side in sides]
        factors = list(self.dot.operands)
        free = [product(d for i, d in enumerate(dims_of(v)) if i not in inner[s]) for s, v in enumerate(factors)]
        first = min(self.at_hand())
        saved, other = free[first].constant, free[1 - first].constant
        return saved is not None and other is not None and other <= MOST_GROWTH * saved


ACCUMULATED: Pattern[_Sum] = Pattern(
    "hoist-accumulated-product", "a sum of products over a loop's iterations is one product after the loop"
)


@ACCUMULATED.requires("only the sum reads what it adds to, and only the next iteration reads the sum")
def _sum_is_read_at_the_end(found: _Sum) -> bool:
    condition = found.accumulation.condition.arguments[found.position]
    return [len(list(v.uses)) for v in (found.argument, found.add.results[0], condition)] == [1, 1, 0]


@ACCUMULATED.requires("only the sum reads the product")
def _product_is_read_by_the_sum(found: _Sum) -> bool:
    return all(len(list(v.uses)) == 1 for v in (found.term, found.dot.results[0]))


@ACCUMULATED.requires("products are of floats that the sum is of, too: in another order it differs by rounding")
def _types_are_those_of_the_sum(found: _Sum) -> bool:
    types = {str(element_type_of(v)) for v in (*found.dot.operands, found.dot.results[0])}
    return types in ({"f32"}, {"f64"})


@ACCUMULATED.requires("the product has no batch")
def _has_no_batch(found: _Sum) -> bool:
    return not list(found.numbers.lhs_batching_dimensions)


@ACCUMULATED.requires("both factors are made in the iteration")
def _factors_are_made_inside(found: _Sum) -> bool:
    return all(found.accumulation.op_of(v) is not None for v in found.dot.operands)


@ACCUMULATED.requires("one factor is a row of an array from outside, another one in each iteration, in order")
def _a_factor_is_at_hand(found: _Sum) -> bool:
    return bool(found.at_hand())


# ---- sums -----------------------------------------------------------------------------------------------------------


class _Accumulation:
    """One loop."""

    def __init__(self, loop: ir.OpView, count: Count):
        self.loop = loop
        self.trip = count.trip
        self.condition, self.body = nested_blocks(loop)
        self.counter = self.body.arguments[count.position]

    def run(self, decisions: Decisions) -> None:
        """Give the loop what the products need, and compute them behind it."""
        returned = list(terminator_of(self.body).operands)
        sums = []
        for position in range(len(returned)):
            found = ACCUMULATED.match(self._sum, position)
            if found is not None and found.is_worth_it() and decisions.take(ACCUMULATED.name, found.dot):
                sums.append(found)
        if not sums:
            return
        stacks: dict[tuple[ir.Value, Affine | None], int] = {}
        updates: list[ir.Value] = []
        starts: list[ir.Value] = []
        for found in sums:
            for side, factor in enumerate(found.dot.operands):
                if side not in found.in_order() and (factor, found.order) not in stacks:
                    stacks[factor, found.order] = len(returned) + len(updates)
                    starts.append(self._zeros(factor))
                    updates.append(self._update(factor, found.place))
            returned[found.position] = self.body.arguments[found.position]
        arrays = [found.in_order() for found in sums]
        orders = [found.order for found in sums]
        results = self._replace([*returned, *updates], starts)
        for found, whole, order in zip(sums, arrays, orders, strict=True):
            factors = [whole.get(side) or results[stacks[v, order]] for side, v in enumerate(found.dot.operands)]
            self._add_product(found, factors, results[found.position])
        self.loop.operation.erase()

    # ---- what is a sum ----------------------------------------------------------------------------------------------

    def _sum(self, position: int) -> _Sum | None:
        """A carried value that grows by a product."""
        argument = self.body.arguments[position]
        add = self.op_of(terminator_of(self.body).operands[position])
        if add is None or add.name != "stablehlo.add" or argument not in list(add.operands):
            return None
        operands = list(add.operands)
        term = operands[1 - operands.index(argument)]
        permutation = None
        op = self.op_of(term)
        if op is not None and op.name == "stablehlo.transpose":
            permutation = integers(op.attributes["permutation"])
            op = self.op_of(op.operands[0])
        if op is None or op.name != DOT:
            return None
        saved = {side: s for side, v in enumerate(op.operands) if (s := self._saved(v)) is not None}
        return _Sum(self, position, argument, add, term, op, permutation, saved)

    def op_of(self, value: ir.Value) -> ir.Operation | None:
        """The op of the body that computes a value."""
        owner = value.owner
        return None if isinstance(owner, ir.Block) or owner.operation.block != self.body else owner.operation

    def _saved(self, value: ir.Value) -> _Saved | None:
        """The slice that a factor is."""
        op = self.op_of(value)
        while op is not None and op.name in RESHAPES:
            op = self.op_of(op.operands[0])
        if op is None or op.name not in SLICES:
            return None
        place = self._start(op.operands[1])
        return None if place is None else _Saved(op.operands[0], op.results[0], dims_of(value), place)

    def has_all_rows(self, saved: _Saved) -> bool:
        """Tells whether each iteration takes another row of an array from outside that has as many, in order."""
        if saved.whole.owner == self.body or self.op_of(saved.whole) is not None:
            return False
        sizes = (dims_of(saved.whole), dims_of(saved.part))
        if sizes != ((self.trip, *saved.rest), (Expr.const(1), *saved.rest)):
            return False
        return affine(saved.place, self.counter) in ((1, Expr.const(0)), (-1, self.trip - 1))

    def _start(self, start: ir.Value) -> ir.Value | None:
        """The first element of a vector of starts as a scalar, where nothing but the last row limits it."""
        while dims_of(start):
            op = self.op_of(start)
            if op is None or op.name not in ("stablehlo.clamp", "stablehlo.concatenate", "stablehlo.reshape"):
                return None
            if op.name == "stablehlo.clamp" and not self._clamps_to_rows(op):
                return None
            start = op.operands[1 if op.name == "stablehlo.clamp" else 0]
            if any(d.constant == 0 for d in dims_of(start)):
                return None
        return start

    def _clamps_to_rows(self, clamp: ir.Operation) -> bool:
        """Tells whether a clamp leaves the numbers from 0 up to the last iteration's alone."""
        bounds = [clamp.operands[i] for i in (0, 2)]
        if not all(_is_known(v) for v in bounds):
            return False
        low, high = (known_elements(v)[0] for v in bounds)
        return low == Expr.const(0) and high == self.trip - 1

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


def _is_known(value: ir.Value) -> bool:
    """Sizes or a constant."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name in ("disc.shape", "stablehlo.constant")
