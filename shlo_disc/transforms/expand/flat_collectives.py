# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives for a library that moves whole arrays, one behind the other, and combines little: NCCL.

Arrays are gathered, divided and exchanged along a first axis of members; transposes around the call bring it where the
program wants it. NCCL adds and multiplies as StableHLO does, and has maxima and minima of integers; its maxima and
minima of floats pass over NaN, and it knows no logic of bits and no products of complex numbers. What it has not is
gathered (or exchanged), and combined by ops in the order of the members, as on CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

from shlo_disc.errors import Unsupported, UnsupportedError
from shlo_disc.shape_dialect.build import ONE, convert, elementwise, transpose, view, window
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.collectives import REDUCTIONS, combined_type, groups_of, reduction_of
from shlo_disc.shape_dialect.utils.locations import source_line
from shlo_disc.transforms.expand.library_call import library_call

_ZERO = Expr.const(0)


def all_gather(op: ir.OpView, axis: int) -> list[ir.Value]:
    """The members' arrays behind each other along `axis`."""
    return [
        _joined(_gathered(op, operand), axis, dims_of(result))
        for operand, result in zip(op.operands, op.results, strict=True)
    ]


def all_to_all(op: ir.OpView, split: int, axis: int) -> list[ir.Value]:
    """The members' pieces for this one behind each other along `axis`; pieces are cut along `split`."""
    return [
        _joined(_exchanged(op, operand, split), axis, dims_of(result))
        for operand, result in zip(op.operands, op.results, strict=True)
    ]


def all_reduce(op: ir.OpView) -> list[ir.Value]:
    """The members' arrays, combined. Raises UnsupportedError."""
    name = reduction_of(op) or ""
    found = []
    for operand, result in zip(op.operands, op.results, strict=True):
        combined = combined_type(element_type_of(operand))
        if _library_combines(name, combined):
            value = convert(operand, combined)
            (sums,) = _call(op, "all_reduce", value, value.type, {"reduction": REDUCTIONS[name]})
            found.append(convert(sums, element_type_of(result)))
            continue
        if len({len(group) for group in groups_of(op)}) != 1:
            raise UnsupportedError([_uneven(op, name)])
        found.append(_combined(_gathered(op, operand), name, dims_of(result)))
    return found


def reduce_scatter(op: ir.OpView, axis: int) -> list[ir.Value]:
    """This member's piece of what `all_reduce` gives, cut along `axis`."""
    name, (operand,), (result,) = reduction_of(op) or "", op.operands, op.results
    combined = combined_type(element_type_of(operand))
    if not _library_combines(name, combined):
        return [_combined(_exchanged(op, operand, axis), name, dims_of(result))]
    pieces = _pieces(convert(operand, combined), axis, _members(op))
    of_one = tensor_type((ONE, *dims_of(pieces)[1:]), combined)
    (sums,) = _call(op, "reduce_scatter", pieces, of_one, {"reduction": REDUCTIONS[name], "axis": 0})
    return [convert(view(sums, dims_of(result)), element_type_of(result))]


def _library_combines(name: str, element: ir.Type) -> bool:
    """Tells whether NCCL has the reduction, and means by it what StableHLO does."""
    if name == "stablehlo.multiply":
        return not isinstance(element, ir.ComplexType)
    is_integer = isinstance(element, ir.IntegerType)
    return name == "stablehlo.add" or (is_integer and name in ("stablehlo.maximum", "stablehlo.minimum"))


def _uneven(op: ir.OpView, name: str) -> Unsupported:
    return Unsupported(
        op.operation.name,
        str(element_type_of(op.operands[0])),
        source_line(op.location),
        f"on GPUs, groups of different sizes are not combined by {name.removeprefix('stablehlo.')}",
        "use groups of one size, or compile with target='cpu'",
    )


def _members(op: ir.OpView) -> int:
    return len(groups_of(op)[0])


def _call(
    op: ir.OpView, target: str, operand: ir.Value, result: ir.Type, parameters: dict[str, int]
) -> Sequence[ir.Value]:
    return library_call(f"collective_{target}", [operand], [result], parameters, _ZERO, groups_of(op))


def _gathered(op: ir.OpView, value: ir.Value) -> ir.Value:
    """[members, *dims]."""
    dims = dims_of(value)
    result = tensor_type((Expr.const(_members(op)), *dims), element_type_of(value))
    (found,) = _call(op, "all_gather", view(value, (ONE, *dims)), result, {"axis": 0})
    return found


def _exchanged(op: ir.OpView, value: ir.Value, axis: int) -> ir.Value:
    """[members, *dims of a piece]: the pieces for this member, of those that each member's array is cut into."""
    pieces = _pieces(value, axis, _members(op))
    (found,) = _call(op, "all_to_all", pieces, pieces.type, {"split": 0, "axis": 0})
    return found


def _pieces(value: ir.Value, axis: int, count: int) -> ir.Value:
    """[count, *dims of a piece]."""
    dims = dims_of(value)
    cut = view(value, (*dims[:axis], Expr.const(count), dims[axis] // count, *dims[axis + 1 :]))
    rest = [i for i in range(len(dims) + 1) if i != axis]
    return transpose(cut, [axis, *rest]) if axis else cut


def _joined(pieces: ir.Value, axis: int, dims: Dims) -> ir.Value:
    """The parts that lie along the first axis of `pieces`, joined along `axis` to an array of the sizes `dims`."""
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(dims) + 1)]
    return view(transpose(pieces, order) if axis else pieces, dims)


def _combined(parts: ir.Value, name: str, dims: Dims) -> ir.Value:
    """The parts along the first axis, combined in their order."""
    count, *piece = dims_of(parts)
    starts = [(Expr.const(number), *(_ZERO for _ in piece)) for number in range(count.constant or 0)]
    values = [view(window(parts, start, (ONE, *piece)), dims) for start in starts]
    return reduce(partial(elementwise, name.removeprefix("stablehlo.")), values)


FLAT: dict[str, Callable[..., list[ir.Value]]] = {
    "all_gather": all_gather,
    "all_reduce": all_reduce,
    "all_to_all": all_to_all,
    "reduce_scatter": reduce_scatter,
}
"""By the names of the runtime's functions. Those that are not here move whole arrays in any case."""

__all__ = ["FLAT"]
