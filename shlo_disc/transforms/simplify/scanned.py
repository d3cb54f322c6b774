# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of what a loop scans are computed for all iterations at once, before the loop.

A loop of n iterations that multiplies a slice of an array of length n by a matrix from outside, as the cell of a
recurrent network does with its input, does one large product instead and takes a slice of the result. What lies between
the slice and the product moves along: elementwise ops with values from outside, reshapes and broadcasts. An iteration
may take any slice; only the number of iterations says that the others will be needed too.
"""

from __future__ import annotations

from shlo_disc.mlir import ir, stablehlo
from shlo_disc.shape_dialect.dialect import ShapeOp
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.op_sets import ELEMENTWISE
from shlo_disc.shape_dialect.propagation import integers
from shlo_disc.shape_dialect.regions import nested_blocks
from shlo_disc.shape_dialect.types import dims_attr, dims_of, element_type_of, product, tensor_type
from shlo_disc.transforms.counted_loops import count_of
from shlo_disc.transforms.simplify.data_movement import BROADCASTS, RESHAPES
from shlo_disc.transforms.views import broadcast, view

MOST_GROWTH = 8
"""How much larger than what is scanned the products of all iterations may be."""

Attributes = dict[str, ir.Attribute]

SLICES = ("stablehlo.dynamic_slice", "stablehlo.real_dynamic_slice")


def hoist_scanned_products(block: ir.Block) -> None:
    """Move such products out of the loops of a block, and of those in it, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            hoist_scanned_products(nested)
        if op.operation.name == "stablehlo.while":
            count = count_of(op)
            if count is not None and count.trip.constant not in (0, 1):
                _Hoisting(op, count.trip).run()


class _NotScanned(Exception):
    """A value that cannot be computed for all iterations at once."""


class _Hoisting:
    """One loop. A stacked value has the number of iterations in front of its sizes."""

    def __init__(self, loop: ir.OpView, trip: Expr):
        self.loop = loop
        self.trip = trip
        self.body = nested_blocks(loop)[1]
        self.slice: ir.Operation | None = None

    def run(self) -> None:
        """Replace each product by a slice of a larger one."""
        for op in list(self.body.operations):
            if op.operation.name == "stablehlo.dot_general":
                self._hoist(op.operation)

    def _hoist(self, dot: ir.Operation) -> None:
        lhs, rhs = dot.operands
        numbers = stablehlo.DotDimensionNumbers(dot.attributes["dot_dimension_numbers"])
        if list(numbers.lhs_batching_dimensions) or self._is_inside(rhs) or not self._is_scanned(lhs):
            return
        free = product(d for i, d in enumerate(dims_of(rhs)) if i not in list(numbers.rhs_contracting_dimensions))
        depth = product(dims_of(rhs)[i] for i in numbers.rhs_contracting_dimensions)
        if free.constant is None or depth.constant is None or free.constant > MOST_GROWTH * depth.constant:
            return
        with ir.InsertionPoint(self.loop), dot.location:
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

    def _is_inside(self, value: ir.Value) -> bool:
        owner = value.owner
        return owner == self.body if isinstance(owner, ir.Block) else owner.operation.block == self.body

    # ---- what can be stacked ----------------------------------------------------------------------------------------

    def _is_scanned(self, value: ir.Value) -> bool:
        """Whether a value can be stacked, from slices that one iteration takes at one place; remembers a slice."""
        self.slice = None
        try:
            self._check(value)
        except _NotScanned:
            return False
        return self.slice is not None

    def _check(self, value: ir.Value) -> None:
        if not self._is_inside(value):
            return
        if isinstance(value.owner, ir.Block):
            raise _NotScanned
        op = value.owner.operation
        if op.name in SLICES:
            self._check_slice(op)
        elif op.name in BROADCASTS or op.name in RESHAPES:
            self._check(op.operands[0])
        elif op.name in ELEMENTWISE and all(dims_of(v) == dims_of(value) for v in op.operands):
            for operand in op.operands:
                self._check(operand)
        else:
            raise _NotScanned

    def _check_slice(self, op: ir.Operation) -> None:
        whole, part = dims_of(op.operands[0]), dims_of(op.results[0])
        is_row = whole[0] == self.trip and part[0].constant == 1 and whole[1:] == part[1:]
        if self._is_inside(op.operands[0]) or not is_row:
            raise _NotScanned
        if self.slice is not None and list(self.slice.operands)[1:2] != list(op.operands)[1:2]:
            raise _NotScanned
        self.slice = op

    # ---- stacking ---------------------------------------------------------------------------------------------------

    def _stacked_type(self, value: ir.Value) -> ir.RankedTensorType:
        return tensor_type((self.trip, *dims_of(value)), element_type_of(value))

    def _stacked(self, value: ir.Value) -> ir.Value:
        """The value of all iterations, before the loop."""
        dims = (self.trip, *dims_of(value))
        if not self._is_inside(value):
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
        """What the iteration needs of a stacked value: the row where its own slice is."""
        if self.slice is None:
            raise _NotScanned
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
    return ir.Operation.create("stablehlo.constant", results=[tensor], attributes={"value": value}).results[0]
