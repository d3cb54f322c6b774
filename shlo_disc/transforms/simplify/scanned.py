# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of what a loop scans are computed for all iterations at once, before the loop.

A loop of n iterations that multiplies a slice of an array of length n by a matrix from outside, as the cell of a
recurrent network does with its input, does one large product instead and takes a slice of the result. What lies between
the slice and the product moves along: elementwise ops with values from outside, reshapes and broadcasts. An iteration
may take any slice; only the number of iterations says that the others will be needed too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import broadcast, view
from shlo_disc.shape_dialect.dialect.ops import ShapeOp
from shlo_disc.shape_dialect.dialect.types import dims_attr, dims_of, element_type_of, product, tensor_type
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, RESHAPES
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks, symbols_read_in
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.control_flow.counted_loops import count_of
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.simplify.loop_product import LoopProduct

MOST_GROWTH = 8
"""Limit for the size of the products of all iterations, as a multiple of what is scanned."""

Attributes = dict[str, ir.Attribute]

SLICES = ("stablehlo.dynamic_slice", "stablehlo.real_dynamic_slice")


def hoist_scanned_products(block: ir.Block, decisions: Decisions) -> None:
    """Move such products out of the loops of a block, and of those in it, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            hoist_scanned_products(nested, decisions)
        if op.operation.name == "stablehlo.while":
            _hoist_from(op, decisions)


def _hoist_from(loop: ir.OpView, decisions: Decisions) -> None:
    count = count_of(loop)
    if count is None or count.trip.constant in (0, 1):
        return
    trip = count.trip
    for op in list(nested_blocks(loop)[1].operations):
        if op.operation.name == "stablehlo.dot_general":
            found = SCANNED.match(lambda dot: _scanned(loop, trip, dot), op.operation)
            if found is not None and found.is_worth_it() and decisions.take(SCANNED.name, op):
                _Hoisting(found).run()


# ---- what has to hold -----------------------------------------------------------------------------------------------


@dataclass
class _Scanned(LoopProduct):
    """A product in a loop of `trip` iterations, and what its left-hand side is computed from in the loop.

    `slices` are slices, `others` ops that are neither slices nor ops that can be stacked; `arguments` says that
    something carried is among them.
    """

    trip: Expr
    slices: list[ir.Operation] = field(default_factory=list)
    others: list[ir.Operation] = field(default_factory=list)
    arguments: list[ir.Value] = field(default_factory=list)

    def is_worth_it(self) -> bool:
        """Tells whether the operands are not much larger than a slice, and the products not much larger than they."""
        lhs, slices = product(dims_of(self.dot.operands[0])), [product(dims_of(op.results[0])) for op in self.slices]
        if not any(lhs == growth * size for size in slices for growth in range(1, MOST_GROWTH + 1)):
            return False
        rhs, inner = self.dot.operands[1], list(self.numbers.rhs_contracting_dimensions)
        free = product(d for i, d in enumerate(dims_of(rhs)) if i not in inner)
        depth = product(dims_of(rhs)[i] for i in inner)
        if free.constant is None or depth.constant is None:
            return False
        return free.constant <= MOST_GROWTH * depth.constant


SCANNED: Pattern[_Scanned] = Pattern(
    "hoist-scanned-product", "products of what a loop scans are one product before the loop"
)


def _scanned(loop: ir.OpView, trip: Expr, dot: ir.Operation) -> _Scanned | None:
    """A product whose left-hand side is made in the iteration, with what it is made from."""
    found = _Scanned(loop, dot, trip)
    pending = [dot.operands[0]]
    seen: set[ir.Value] = set()
    while pending:
        value = pending.pop()
        if value in seen or not found.is_inside(value):
            continue
        seen.add(value)
        if isinstance(value.owner, ir.Block):
            found.arguments.append(value)
            continue
        op = value.owner.operation
        if op.name in SLICES:
            found.slices.append(op)
        elif op.name in BROADCASTS or op.name in RESHAPES:
            pending.append(op.operands[0])
        elif op.name in ELEMENTWISE and all(dims_of(v) == dims_of(value) for v in op.operands):
            pending += op.operands
        else:
            found.others.append(op)
    return found if found.slices else None


@SCANNED.requires("the right-hand side comes from outside of the loop")
def _weights_are_from_outside(found: _Scanned) -> bool:
    return not found.is_inside(found.dot.operands[1])


@SCANNED.requires("the sizes of the product are the same in every iteration")
def _has_invariant_sizes(found: _Scanned) -> bool:
    varying = symbols_read_in(found.loop)
    sizes = [*dims_of(found.dot.operands[0]), *dims_of(found.dot.results[0])]
    return all(varying.isdisjoint(size.symbols()) for size in sizes)


@SCANNED.requires("the product has no batch, in front of which the iterations could not stand")
def _has_no_batch(found: _Scanned) -> bool:
    return not list(found.numbers.lhs_batching_dimensions)


@SCANNED.requires("nothing that the loop carries is multiplied")
def _carried_values_are_not_multiplied(found: _Scanned) -> bool:
    return not found.arguments


@SCANNED.requires("what lies between the slices and the product computes element by element, or regroups sizes")
def _steps_can_be_stacked(found: _Scanned) -> bool:
    return not found.others


@SCANNED.requires("a slice is of an array from outside")
def _scans_what_is_outside(found: _Scanned) -> bool:
    return not any(found.is_inside(op.operands[0]) for op in found.slices)


@SCANNED.requires("a slice is one row, all of it, of an array of as many rows as there are iterations")
def _slices_are_rows(found: _Scanned) -> bool:
    def is_row(op: ir.Operation) -> bool:
        whole, part = dims_of(op.operands[0]), dims_of(op.results[0])
        return whole[0] == found.trip and part[0].constant == 1 and whole[1:] == part[1:]

    return all(map(is_row, found.slices))


@SCANNED.requires("all slices are taken at one place: arrays of as many rows clamp it alike")
def _slices_are_at_one_place(found: _Scanned) -> bool:
    return len({(op.name, op.operands[1]) for op in found.slices}) == 1


# ---- the rewrite ----------------------------------------------------------------------------------------------------


class _Hoisting:
    """One product. A stacked value has the number of iterations in front of its sizes."""

    def __init__(self, found: _Scanned):
        self.found = found
        self.trip = found.trip
        self.slice = found.slices[0]

    def run(self) -> None:
        """Replace the product by a slice of a larger one."""
        dot, numbers = self.found.dot, self.found.numbers
        lhs, rhs = dot.operands
        with ir.InsertionPoint(self.found.loop), dot.location:
            moved = [axis + 1 for axis in numbers.lhs_contracting_dimensions]
            attributes = {name: dot.attributes[name] for name in dot.attributes}
            attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get(
                [], [], moved, list(numbers.rhs_contracting_dimensions)
            )
            whole = ir.Operation.create(
                "stablehlo.dot_general",
                results=[self._stacked_type(dot.results[0])],
                operands=[self._stacked(lhs), rhs],
                attributes=attributes,
            )
        with ir.InsertionPoint(dot), dot.location:
            dot.results[0].replace_all_uses_with(self._slice_of(whole.results[0], dot.results[0]))

    def _stacked_type(self, value: ir.Value) -> ir.RankedTensorType:
        return tensor_type((self.trip, *dims_of(value)), element_type_of(value))

    def _stacked(self, value: ir.Value) -> ir.Value:
        """The value of all iterations, before the loop."""
        dims = (self.trip, *dims_of(value))
        if not self.found.is_inside(value):
            return broadcast(value, dims, range(1, len(dims)))
        op = value.owner.operation  # type: ignore[union-attr]
        if op.name in SLICES:
            return view(op.operands[0], dims)
        if op.name in RESHAPES:
            return view(self._stacked(op.operands[0]), dims)
        if op.name in BROADCASTS:
            places = [0, *(1 + axis for axis in integers(op.attributes["broadcast_dimensions"]))]
            return broadcast(self._stacked(op.operands[0]), dims, places)
        operands = [self._stacked(v) for v in op.operands]
        attributes = {name: op.attributes[name] for name in op.attributes}
        new = ir.Operation.create(
            op.name, results=[self._stacked_type(value)], operands=operands, attributes=attributes
        )
        return new.results[0]

    def _slice_of(self, whole: ir.Value, part: ir.Value) -> ir.Value:
        """The part of a stacked value that the iteration needs: the row where its own slice is."""
        rest = list(dims_of(part))
        row = tensor_type([Expr.const(1), *rest], element_type_of(part))
        start = self.slice.operands[1]
        if self.slice.name == SLICES[0] and row.has_static_shape:
            starts = [start, *([_integers(start.type, 0)] * len(rest))]
            sizes: Attributes = {"slice_sizes": ir.DenseI64ArrayAttr.get(list(row.shape))}
            new = ir.Operation.create(SLICES[0], results=[row], operands=[whole, *starts], attributes=sizes)
            return view(new.results[0], rest)
        first = _first_element(start)
        element = element_type_of(start)
        vector = ir.RankedTensorType.get([1 + len(rest)], element)
        axis: Attributes = {"dimension": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}
        zeros = [_integers(ir.RankedTensorType.get([1], element), 0)] * len(rest)
        begin = ir.Operation.create(
            "stablehlo.concatenate", results=[vector], operands=[first, *zeros], attributes=axis
        )
        size = ShapeOp(dims_attr([Expr.const(1), *rest]), result=vector).results[0]
        end = ir.Operation.create("stablehlo.add", results=[vector], operands=[begin.results[0], size])
        operands = [whole, begin.results[0], end.results[0], _integers(vector, 1)]
        return view(ir.Operation.create(SLICES[1], results=[row], operands=operands).results[0], rest)


def _first_element(start: ir.Value) -> ir.Value:
    """A scalar, or element 0 of a vector, as a vector of one element."""
    one = ir.RankedTensorType.get([1], element_type_of(start))
    if not dims_of(start):
        return ir.Operation.create("stablehlo.reshape", results=[one], operands=[start]).results[0]
    bounds = {"start_indices": [0], "limit_indices": [1], "strides": [1]}
    attributes: Attributes = {name: ir.DenseI64ArrayAttr.get(numbers) for name, numbers in bounds.items()}
    return ir.Operation.create("stablehlo.slice", results=[one], operands=[start], attributes=attributes).results[0]


def _integers(type_: ir.Type, number: int) -> ir.Value:
    """A constant of equal integers."""
    tensor = ir.RankedTensorType(type_)
    value = ir.DenseElementsAttr.get_splat(tensor, ir.IntegerAttr.get(tensor.element_type, number))
    return build.dense(value)
