# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices that are computed from sizes alone, such as those of an arange, and the checks that they are in range.

PyTorch raises an IndexError for an index out of range. Where the indices follow from sizes, being in range is a
relation of these sizes, which each call checks; where they are data, ops read the nearest element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .graph import Graph
from .relations import state

Range = tuple[Expr, Expr]
"""The least and the greatest element of a tensor of integers, both among its elements unless it is empty."""


def check_in_range(t: Graph, index: ir.Value, size: Expr, may_be_negative: bool) -> None:
    """Check at each call that indices of an axis of some size are in range, where they are computed from sizes.

    Inside loops and branches, which a call may not reach, nothing is checked.
    """
    found = (_range_of(index) or _of_literal(t, index)) if _is_always_run() else None
    if found is None:
        return
    low, high = found
    _check(t, high, "LT", size, f"{t.line} reads indices up to {high}, which are out of range for an axis of {size}")
    least = -size if may_be_negative else Expr.const(0)
    if low.constant is None or low.constant < 0:
        _check(
            t, low, "GE", least, f"{t.line} reads indices from {low} on, which are out of range for an axis of {size}"
        )


def ends_of_literal(place: int, value: torch.Tensor | None) -> dict[int, tuple[int, int]]:
    """The least and the greatest element of a tensor of integers in the user's code, by its place; {} for others."""
    if value is None or isinstance(value, FakeTensor) or value.dtype not in (torch.int64, torch.int32):
        return {}
    if not 0 < value.numel() <= _MOST_READ:
        return {}
    with unset_fake_temporarily():
        return {place: (int(value.min()), int(value.max()))}


_MOST_READ = 1 << 20
"""Larger tensors are tables, and not numbers in code."""


def _of_literal(t: Graph, value: ir.Value) -> Range | None:
    """The range of numbers in the user's code; None for all else."""
    while not isinstance(value.owner, ir.Block):
        if _RULES.get(value.owner.name) not in (_same, _converted):
            return None
        value = value.owner.operands[0]
    ends = t.literals.get(ir.BlockArgument(value).arg_number)
    return None if ends is None else (Expr.const(ends[0]), Expr.const(ends[1]))


def check_elements(t: Graph, dims: Dims, axes: Sequence[int]) -> None:
    """Check at each call that axes have elements, of which an op picks one: eager raises an error where they have none.

    Nothing is checked of what PyTorch has taken apart into the op, which may be right of nothing, nor inside loops.
    """
    whole = t.node.meta.get("original_aten")
    if whole is not None and str(whole) not in (str(t.node.target), "aten.aminmax.default"):
        return
    for axis in axes or range(len(dims)):
        size = dims[axis]
        if size.constant is None and _is_always_run():
            _check(t, size, "GE", Expr.const(1), f"Expected {size} >= 1, which {t.line} requires.")


def check_equal(t: Graph, size: Expr, wanted: Expr, what: str) -> None:
    """Check at each call that two sizes are equal, outside of loops and branches."""
    if size != wanted and _is_always_run():
        _check(t, size, "EQ", wanted, f"{what} is {size}, and has to be {wanted}")


def check_not_one(t: Graph, size: Expr, message: str) -> None:
    """Check at each call that a size is not 1.

    Raises UnsupportedError inside loops and branches, where no call checks it.
    """
    if size.constant is not None:
        return
    if not _is_always_run():
        raise t.refuse(f"{message}, which cannot be checked in a loop or branch")
    _check(t, size, "NE", Expr.const(1), message)


def check_not_negative(t: Graph, number: Expr, message: str) -> None:
    """Check at each call that an expression over sizes is not negative.

    Inside loops and branches nothing is checked, as PyTorch lets no size of a result be negative. Raises
    UnsupportedError there for an expression that is no size of the op's result.
    """
    if number.constant is not None and number.constant >= 0:
        return
    if _is_always_run():
        _check(t, number, "GE", Expr.const(0), message)
    elif number not in t.dims:
        raise t.refuse(f"{message}, which cannot be checked in a loop or branch")


def _is_always_run() -> bool:
    """Tells whether a call always reaches what is translated: it is in no loop or branch."""
    return bool(ir.InsertionPoint.current.block.owner.operation.name == "func.func")


def _check(t: Graph, left: Expr, direction: str, right: Expr, message: str) -> None:
    state(t, t.compare(direction, t.size(left, torch.int64), t.size(right, torch.int64)), message)


def _range_of(value: ir.Value) -> Range | None:
    """The range of a tensor whose elements are computed from sizes; None for any other."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    rule = _RULES.get(owner.name)
    return None if rule is None else rule(owner)


def _iota(op: ir.Operation) -> Range:
    axis = ir.IntegerAttr(op.attributes["iota_dimension"]).value
    return Expr.const(0), dims_of(op.results[0])[axis] - 1


def _same(op: ir.Operation) -> Range | None:
    return _range_of(op.operands[0])


def _converted(op: ir.Operation) -> Range | None:
    """The operand's, where both types hold all sizes."""
    elements = [ir.RankedTensorType(v.type).element_type for v in (op.operands[0], op.results[0])]
    is_kept = all(isinstance(e, ir.IntegerType) and e.width >= _WIDTH_OF_SIZES for e in elements)
    return _range_of(op.operands[0]) if is_kept else None


_WIDTH_OF_SIZES = 32


def _constant(op: ir.Operation) -> Range | None:
    value = op.attributes["value"]
    if not isinstance(value, ir.DenseIntElementsAttr) or not value.is_splat:
        return None
    number = Expr.const(int(value.get_splat_value().value))
    return number, number


def _shape(op: ir.Operation) -> Range | None:
    dims = dims_of_attr(op.attributes["dims"])
    return (dims[0], dims[0]) if len(dims) == 1 else None


def _sum(op: ir.Operation) -> Range | None:
    left, right = map(_range_of, op.operands)
    if left is None or right is None or not _one_varies(left, right):
        return None
    return left[0] + right[0], left[1] + right[1]


def _difference(op: ir.Operation) -> Range | None:
    left, right = map(_range_of, op.operands)
    if left is None or right is None or not _one_varies(left, right):
        return None
    return left[0] - right[1], left[1] - right[0]


def _one_varies(left: Range, right: Range) -> bool:
    """Tells whether one of two is one number, so that the ends of a sum are among its elements."""
    return left[0] == left[1] or right[0] == right[1]


def _product(op: ir.Operation) -> Range | None:
    ranges = [_range_of(v) for v in op.operands]
    for one, other in (ranges, ranges[::-1]):
        if one is None or other is None or one[0] != one[1] or one[0].constant is None:
            continue
        ends = other[0] * one[0], other[1] * one[0]
        return ends if one[0].constant >= 0 else ends[::-1]
    return None


_RULES: Mapping[str, Callable[[ir.Operation], Range | None]] = {
    "disc.shape": _shape,
    "stablehlo.add": _sum,
    "stablehlo.broadcast_in_dim": _same,
    "stablehlo.constant": _constant,
    "stablehlo.convert": _converted,
    "stablehlo.dynamic_broadcast_in_dim": _same,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_reshape": _same,
    "stablehlo.iota": _iota,
    "stablehlo.multiply": _product,
    "stablehlo.reshape": _same,
    "stablehlo.reverse": _same,
    "stablehlo.subtract": _difference,
    "stablehlo.transpose": _same,
}
