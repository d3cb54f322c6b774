# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move elements without computing any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from shlo_disc.shape_dialect.build import shape_tensor
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, as_expr, ceildiv

from .graph import Graph, axis_of, numbers_of
from .index_ranges import check_equal, check_in_range, check_not_one
from .table import translates

_ZERO, _ONE = Expr.const(0), Expr.const(1)
_END = (1 << 63) - 1
"""The end that PyTorch writes for a slice that has none."""


@translates(
    "view", "_unsafe_view", "reshape", "unsqueeze", "view_copy", "unsqueeze_copy", "flatten.using_ints",
    "unflatten.int",
)  # fmt: skip
def reshaped(t: Graph, x: ir.Value, *_: Any) -> ir.Value:
    """The same elements in the shape of the result."""
    return t.reshape(x, t.dims)


@translates("squeeze", "squeeze.dim", "squeeze.dims", "squeeze_copy", "squeeze_copy.dim", "squeeze_copy.dims")
def squeezed(t: Graph, x: ir.Value, axes: int | Sequence[int] | None = None) -> ir.Value:
    """Axes of size 1 left out. A size with a name is kept, and each call checks that it is not 1."""
    dims = dims_of(x)
    rank = len(dims)
    chosen = range(rank) if axes is None else [axis_of(a, rank) for a in ([axes] if isinstance(axes, int) else axes)]
    for axis in chosen if rank else ():
        text = f"{t.line} squeezes an axis of size {dims[axis]}, whose result has another rank where that is 1"
        check_not_one(t, dims[axis], f"{text}: squeeze only axes that are always 1, such as squeeze(-1)")
    return t.reshape(x, t.dims)


@translates("permute", "permute_copy")
def permuted(t: Graph, x: ir.Value, order: Sequence[int]) -> ir.Value:
    """The axes in another order."""
    return t.transpose(x, [axis_of(a, len(order)) for a in order])


@translates("t", "numpy_T")
def turned(t: Graph, x: ir.Value) -> ir.Value:
    """A transposed matrix; a vector does not change."""
    return t.transpose(x, list(range(len(dims_of(x))))[::-1])


@translates("transpose.int")
def transposed(t: Graph, x: ir.Value, first: int, second: int) -> ir.Value:
    """Two axes swapped."""
    rank = len(dims_of(x))
    order = list(range(rank))
    if rank:
        a, b = axis_of(first, rank), axis_of(second, rank)
        order[a], order[b] = order[b], order[a]
    return t.transpose(x, order)


@translates("expand", "expand_copy", "broadcast_to")
def expanded(t: Graph, x: ir.Value, *_: Any) -> ir.Value:
    """Axes of size 1, and new leading axes, broadcast."""
    return t.stretch(x, t.dims)


@translates("copy")
def copied(t: Graph, _: Any, source: Any, *__: Any) -> ir.Value:
    """The second tensor in the shape and the dtype of the first."""
    return t.operand(source, t.dtype)


# ---- pieces ---------------------------------------------------------------------------------------------------------


def piece(t: Graph, x: ir.Value, axis: int, start: Expr, size: Expr, step: int = 1) -> ir.Value:
    """`size` elements along an axis from `start` on, each `step` after the one before."""
    source = dims_of(x)
    dims = tuple(size if a == axis else d for a, d in enumerate(source))
    if dims == source and step == 1:
        return x
    starts = [start if a == axis else _ZERO for a in range(len(source))]
    reach = start + size * step
    ends = [Expr.minimum(reach, d) if a == axis else d for a, d in enumerate(source)]
    steps = [Expr.const(step if a == axis else 1) for a in range(len(source))]
    if all(e.constant is not None for e in (*starts, *ends, *source)):
        attributes: dict[str, ir.Attribute] = {
            name: numbers_of(values)
            for name, values in (("start_indices", starts), ("limit_indices", ends), ("strides", steps))
        }
        return t.op("slice", [x], dims, element_type_of(x), **attributes)
    operands = [x, shape_tensor(starts), shape_tensor(ends), shape_tensor(steps)]
    return t.op("real_dynamic_slice", operands, dims, element_type_of(x))


def corner(t: Graph, x: ir.Value, dims: Sequence[Expr]) -> ir.Value:
    """The first elements along each axis."""
    for axis, size in enumerate(dims):
        x = piece(t, x, axis, _ZERO, size)
    return x


def place(index: Any, size: Expr) -> Expr:
    """An index counted from the front, of one that may be negative."""
    e = as_expr(index)
    if e.constant is not None:
        return e if e.constant >= 0 else e + size
    is_negative = Expr.maximum(0, Expr.minimum(1, -e))
    return e + size * is_negative


def bounded(index: Any, size: Expr) -> Expr:
    """As `place`, and between 0 and the size, as the ends of slices are."""
    found = place(index, size)
    return Expr.maximum(0, Expr.minimum(found, size))


def start_of(start: Any, size: Expr) -> Expr:
    """The start of a slice along an axis of a size."""
    return _ZERO if start is None or start == 0 else bounded(start, size)


@translates("slice.Tensor", "slice_copy.Tensor")
def sliced(t: Graph, x: ir.Value, axis: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> ir.Value:
    """A slice as in Python; PyTorch determines its number of elements, or leaves it open where an end is data."""
    axis = axis_of(axis, len(t.dims))
    size, count = dims_of(x)[axis], t.dims[axis]
    first = start_of(start, size)
    own = count_of(first, end, size, step_of(t, step))
    if not t.knows(count):
        count = own
        symbol = t.node.meta["val"].shape[axis].node.expr
        t.sizes.named[symbol] = count
        t.sources[str(symbol)] = f"the size of axis {axis} of the piece that is taken at {t.line}"
    elif not t.bound.isdisjoint(own.symbols()):
        check_equal(t, own, count, "the number of elements of a slice")
    return piece(t, x, axis, first, count, step_of(t, step))


def count_of(start: Expr, end: Any, size: Expr, step: int) -> Expr:
    """The number of elements of a slice from `start` on, which `start_of` gives, along an axis of a size."""
    last = size if end is None or as_expr(end).constant == _END else bounded(end, size)
    return Expr.maximum(0, ceildiv(last - start, Expr.const(step)))


def step_of(t: Graph, step: Any) -> int:
    """The step of a slice. Raises UnsupportedError for a symbolic one."""
    if not isinstance(step, int):
        raise t.refuse("a slice with a symbolic step has no lowering", "use a number")
    return step


@translates("narrow")
def narrowed(t: Graph, x: ir.Value, axis: int, start: Any, _: Any) -> ir.Value:
    """Some elements along an axis."""
    axis = axis_of(axis, len(t.dims))
    return piece(t, x, axis, place(start, dims_of(x)[axis]), t.dims[axis])


@translates("select.int", "select_copy.int")
def selected(t: Graph, x: ir.Value, axis: int, index: Any) -> ir.Value:
    """The elements at one index of an axis, which is removed."""
    axis = axis_of(axis, len(dims_of(x)))
    return t.reshape(piece(t, x, axis, place(index, dims_of(x)[axis]), _ONE), t.dims)


def _pieces(t: Graph, x: ir.Value, axis: int, sizes: Sequence[Expr]) -> list[ir.Value]:
    found, start = [], _ZERO
    for size in sizes:
        found.append(piece(t, x, axis, start, size))
        start = start + size
    return found


@translates("split_with_sizes", "split_with_sizes_copy", "split.Tensor", "split_copy.Tensor", "chunk")
def split(t: Graph, x: ir.Value, _: Any, axis: int = 0) -> tuple[ir.Value, ...]:
    """Consecutive pieces along an axis, of the sizes that PyTorch determines."""
    axis = axis_of(axis, len(dims_of(x)))
    return tuple(_pieces(t, x, axis, [out.dims[axis] for out in t.outs]))


@translates("unbind.int", "unbind_copy.int")
def unbound(t: Graph, x: ir.Value, axis: int = 0) -> tuple[ir.Value, ...]:
    """The elements at each index of an axis."""
    axis = axis_of(axis, len(dims_of(x)))
    return tuple(t.reshape(part, t.dims) for part in slices(t, x, axis, len(t.outs)))


def slices(t: Graph, x: ir.Value, axis: int, count: int) -> list[ir.Value]:
    """The first `count` slices of size 1 along an axis."""
    return _pieces(t, x, axis, [_ONE] * count)


# ---- putting together -----------------------------------------------------------------------------------------------


@translates("cat")
def concatenated(t: Graph, parts: Sequence[ir.Value], axis: int = 0) -> ir.Value:
    """Tensors concatenated; vectors of size 0 are skipped, as in PyTorch."""
    rank = len(t.dims)
    fitting = [p for p in parts if len(dims_of(p)) == rank and (rank == 1 or dims_of(p) != (_ZERO,))]
    values = [t.convert(p, t.dtype) for p in fitting]
    if len(values) == 1:
        return values[0]
    return join(t, values, axis_of(axis, rank), t.dims)


def join(t: Graph, values: Sequence[ir.Value], axis: int, dims: Dims) -> ir.Value:
    """Values of one dtype one after the other along an axis; together they have the sizes `dims`."""
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
    return t.op("concatenate", values, dims, element_type_of(values[0]), dimension=attribute)


@translates("stack")
def stacked(t: Graph, parts: Sequence[ir.Value], axis: int = 0) -> ir.Value:
    """Tensors stacked along a new axis."""
    axis = axis_of(axis, len(t.dims))
    dims = (*t.dims[:axis], _ONE, *t.dims[axis + 1 :])
    values = [t.reshape(t.convert(p, t.dtype), dims) for p in parts]
    return values[0] if len(values) == 1 else join(t, values, axis, t.dims)


def pad(t: Graph, x: ir.Value, fill: ir.Value, low: Sequence[Expr], high: Sequence[Expr], dims: Dims) -> ir.Value:
    """A value with elements more at both ends of its axes, or fewer where numbers are negative; `dims` in all."""
    if all(e.constant == 0 for e in (*low, *high)):
        return x
    zeros = [_ZERO] * len(dims)
    if all(e.constant is not None for e in (*low, *high)):
        attributes: dict[str, ir.Attribute] = {
            name: numbers_of(values)
            for name, values in (("edge_padding_low", low), ("edge_padding_high", high), ("interior_padding", zeros))
        }
        return t.op("pad", [x, fill], dims, element_type_of(x), **attributes)
    operands = [x, fill, *(shape_tensor(tuple(values)) for values in (low, high, zeros))]
    return t.op("dynamic_pad", operands, dims, element_type_of(x))


@translates("repeat")
def repeated(t: Graph, x: ir.Value, times: Sequence[Any]) -> ir.Value:
    """A tensor repeated along each axis."""
    source = (*[_ONE] * (len(times) - len(dims_of(x))), *dims_of(x))
    wide = [e for count, d in zip(times, source, strict=True) for e in (as_expr(count), d)]
    spread = t.broadcast(t.reshape(x, source), wide, range(1, 2 * len(source), 2))
    return t.reshape(spread, t.dims)


@translates("flip")
def flipped(t: Graph, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The elements in reverse order along axes."""
    numbers = sorted({axis_of(a, len(t.dims)) for a in axes})
    if not numbers or not t.dims:
        return x
    return t.op("reverse", [x], t.dims, element_type_of(x), dimensions=ir.DenseI64ArrayAttr.get(numbers))


@translates("select_scatter")
def index_replaced(t: Graph, x: ir.Value, source: ir.Value, axis: int, index: Any) -> ir.Value:
    """A tensor whose elements at one index of an axis are replaced."""
    axis = axis_of(axis, len(t.dims))
    check_in_range(t, t.number(as_expr(index), torch.int64), t.dims[axis], may_be_negative=True)
    dims = tuple(_ONE if a == axis else d for a, d in enumerate(t.dims))
    at = t.compare("EQ", t.iota(t.dims, axis, torch.int64), t.operand(place(index, t.dims[axis]), torch.int64))
    return t.select(at, t.stretch(t.reshape(t.convert(source, t.dtype), dims), t.dims), x)
