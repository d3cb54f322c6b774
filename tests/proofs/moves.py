# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The semantics of the ops of StableHLO that move elements."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from tests.proofs.elements import literal, width
from tests.proofs.scope import Index, Scope, Term, constant_of, is_same, maximum, minimum, number, product
from tests.proofs.semantics import Call, Rule, Tensor, numbers_in


def transpose(call: Call) -> Tensor:
    """`transpose`: result index r, operand index o with r[d] = o[permutation[d]]."""
    permutation = call.numbers("permutation")
    call.same("sizes", call.dims, [call.operands[0].dims[p] for p in permutation])
    call.require("a permutation", z3.BoolVal(sorted(permutation) == list(range(len(call.dims)))))

    def at(index: Index) -> Term:
        source = [number(0)] * len(index)
        for d, p in enumerate(permutation):
            source[p] = index[d]
        return call.read(0, tuple(source))

    return call.tensor(at)


def broadcast_in_dim(call: Call) -> Tensor:
    """`broadcast_in_dim` and `dynamic_broadcast_in_dim`: index 0 along sizes of 1."""
    targets, source = call.numbers("broadcast_dimensions"), call.operands[0].dims
    call.require("distinct axes", z3.BoolVal(len(set(targets)) == len(targets) == len(source)))
    for size, target in zip(source, targets, strict=True):
        call.require("a size is 1 or the result's", z3.Or(size == 1, size == call.dims[target]))
    _has_shape(call, 1)

    def at(index: Index) -> Term:
        pairs = zip(source, targets, strict=True)
        return call.read(0, tuple(z3.If(size == 1, 0, index[target]) for size, target in pairs))

    return call.tensor(at)


def broadcast(call: Call) -> Tensor:
    """`broadcast`: axes in front."""
    added = call.numbers("broadcast_sizes")
    call.same("sizes", call.dims, [*map(number, added), *call.operands[0].dims])
    return call.tensor(lambda index: call.read(0, index[len(added) :]))


def _has_shape(call: Call, operand: int) -> None:
    """The shape operand of a dynamic form is the result's."""
    if len(call.operands) > operand:
        call.same("the shape is the result's", call.entries(operand), call.dims)


def reshape(call: Call) -> Tensor:
    """`reshape` and `dynamic_reshape`: the same row-major position."""
    source, result = call.operands[0].dims, call.dims
    call.scope.require_same("reshape: as many elements", product(source), product(result))
    _has_shape(call, 1)
    groups = _groups(source, result)
    return call.tensor(lambda index: call.read(0, _regrouped(index, source, result, groups, call.scope)))


def _groups(source: Sequence[Term], result: Sequence[Term]) -> list[tuple[list[int], list[int]]]:
    """Runs of axes of both shapes that hold as many elements, the axes of size 1 left out."""
    wide = [[axis for axis, size in enumerate(dims) if constant_of(size) != 1] for dims in (source, result)]
    groups: list[tuple[list[int], list[int]]] = []
    first = second = 0
    for i in range(1, len(wide[0]) + 1):
        for j in range(second + 1, len(wide[1]) + 1):
            left, right = wide[0][first:i], wide[1][second:j]
            if is_same(product([source[a] for a in left]), product([result[a] for a in right])):
                groups.append((left, right))
                first, second = i, j
                break
    if first < len(wide[0]) or second < len(wide[1]):
        groups.append((wide[0][first:], wide[1][second:]))
    return groups


def _regrouped(
    index: Index,
    source: Sequence[Term],
    result: Sequence[Term],
    groups: Sequence[tuple[list[int], list[int]]],
    scope: Scope,
) -> Index:
    found = [number(0)] * len(source)
    for left, right in groups:
        sizes, given = [source[a] for a in left], [result[a] for a in right]
        if len(left) == len(right) and all(is_same(a, b) for a, b in zip(sizes, given, strict=True)):
            places: Sequence[Term] = [index[a] for a in right]
        else:
            part = tuple(index[a] for a in right)
            where = z3.And([z3.And(i >= 0, i < n) for i, n in zip(part, given, strict=True)])
            places = scope.digits(scope.offset(part, given), sizes, where)
        for axis, place in zip(left, places, strict=True):
            found[axis] = place
    return tuple(found)


def reverse(call: Call) -> Tensor:
    """`reverse`."""
    axes, dims = call.numbers("dimensions"), call.operands[0].dims
    call.same("sizes", dims, call.dims)

    def at(index: Index) -> Term:
        pairs = enumerate(zip(index, dims, strict=True))
        return call.read(0, tuple(n - 1 - i if axis in axes else i for axis, (i, n) in pairs))

    return call.tensor(at)


def _columns(call: Call, count: int, names: Sequence[str]) -> list[tuple[Term, ...]]:
    """For each axis the numbers of an op, which are attributes, or operands after `count` others, and the sizes of its
    operand and its result."""
    is_static = len(call.operands) == count
    rows = (
        [number(n) for n in call.numbers(name)] if is_static else call.entries(i) for i, name in enumerate(names, count)
    )
    return list(zip(*rows, call.operands[0].dims, call.dims, strict=True))


def slice_(call: Call) -> Tensor:
    """`slice` and `real_dynamic_slice`: start + index * stride."""
    columns = _columns(call, 1, ("start_indices", "limit_indices", "strides"))
    for start, limit, stride, size, result in columns:
        call.require("0 <= start <= limit <= size", start >= 0, start <= limit, limit <= size)
        call.require("a stride", stride >= 1)
        # The result has ceil((limit - start) / stride) elements, said without a division.
        call.require("the size", result * stride >= limit - start, (result - 1) * stride < limit - start, result >= 0)

    def at(index: Index) -> Term:
        pairs = zip(index, columns, strict=True)
        return call.read(0, tuple(start + i * stride for i, (start, _, stride, *_) in pairs))

    return call.tensor(at)


def _clamped(start: Term, size: Term, extent: Term) -> Term:
    return minimum(maximum(start, number(0)), size - extent)


def dynamic_slice(call: Call) -> Tensor:
    """`dynamic_slice`: starts clamped so that the slice lies inside."""
    sizes, whole = [number(n) for n in call.numbers("slice_sizes")], call.operands[0].dims
    call.same("sizes", sizes, call.dims)
    for size, of in zip(sizes, whole, strict=True):
        call.require("the slice fits", size <= of)

    def at(index: Index) -> Term:
        starts = [call.read(1 + axis, ()) for axis in range(len(whole))]
        columns = zip(index, starts, whole, sizes, strict=True)
        return call.read(0, tuple(i + _clamped(start, n, size) for i, start, n, size in columns))

    return call.tensor(at)


def dynamic_update_slice(call: Call) -> Tensor:
    """`dynamic_update_slice`: the update where it lies, the operand elsewhere."""
    whole, part = call.operands[0].dims, call.operands[1].dims
    call.same("sizes", whole, call.dims)
    for size, of in zip(part, whole, strict=True):
        call.require("the update fits", size <= of)

    def at(index: Index) -> Term:
        pairs = enumerate(zip(whole, part, strict=True))
        starts = [_clamped(call.read(2 + axis, ()), n, size) for axis, (n, size) in pairs]
        moved = tuple(i - start for i, start in zip(index, starts, strict=True))
        lies = z3.And([z3.And(i >= 0, i < n) for i, n in zip(moved, part, strict=True)])
        with call.scope.under(lies):
            update = call.read(1, moved)
        return z3.If(lies, update, call.read(0, index))

    return call.tensor(at)


def concatenate(call: Call) -> Tensor:
    """`concatenate`."""
    axis = call.number("dimension")
    for operand in call.operands:
        others = [n for a, n in enumerate(operand.dims) if a != axis]
        call.same("other sizes", others, [n for a, n in enumerate(call.dims) if a != axis])
    total = sum((v.dims[axis] for v in call.operands), start=number(0))
    call.same("the sum of the sizes", [total], [call.dims[axis]])

    def at(index: Index) -> Term:
        def rest(first: int, place: Term) -> Term:
            moved = (*index[:axis], place, *index[axis + 1 :])
            if first == len(call.operands) - 1:
                return call.read(first, moved)
            here = place < call.operands[first].dims[axis]
            with call.scope.under(here):
                value = call.read(first, moved)
            with call.scope.under(z3.Not(here)):
                return z3.If(here, value, rest(first + 1, place - call.operands[first].dims[axis]))

        return rest(0, index[axis])

    return call.tensor(at)


def pad(call: Call) -> Tensor:
    """`pad` and `dynamic_pad`: result = low + operand * (interior + 1), the padding value elsewhere."""
    columns = _columns(call, 2, ("edge_padding_low", "edge_padding_high", "interior_padding"))
    for before, after, holes, size, result in columns:
        call.require("interior padding", holes >= 0)
        inner = size + maximum(size - 1, number(0)) * holes
        call.require("the size", result == before + inner + after, result >= 0)

    def at(index: Index) -> Term:
        places, lies = [], []
        for i, (before, _, holes, size, _) in zip(index, columns, strict=True):
            step = z3.simplify(holes + 1)
            place = i - before if constant_of(step) == 1 else (i - before) / step
            places.append(place)
            lies += [i - before == place * step, place >= 0, place < size]
        condition = z3.And(lies)
        with call.scope.under(condition):
            element = call.read(0, tuple(places))
        return z3.If(condition, element, call.read(1, ()))

    return call.tensor(at)


def iota(call: Call) -> Tensor:
    """`iota` and `dynamic_iota`."""
    axis = call.number("iota_dimension")
    _has_shape(call, 0)

    def at(index: Index) -> Term:
        if not call.scope.has_bits:
            return index[axis]
        value = literal(0, call.element, call.scope)
        for i in range(1, constant_of(call.dims[axis]) or 0):
            value = z3.If(index[axis] == i, literal(i, call.element, call.scope), value)
        return value

    return call.tensor(at)


def bitcast_convert(call: Call) -> Tensor:
    """`bitcast_convert` of integers: a further last axis has the parts of an element, the lowest first."""
    source, bits = call.operands[0], (width(call.operands[0].element), width(call.element))
    if bits[0] == bits[1]:
        call.same("sizes", source.dims, call.dims)
        return call.tensor(lambda index: call.read(0, index))
    parts = max(bits) // min(bits)
    whole, split = (source.dims, call.dims) if bits[0] > bits[1] else (call.dims, source.dims)
    call.same("sizes", (*whole, number(parts)), split)

    def at(index: Index) -> Term:
        if bits[0] < bits[1]:
            return z3.Concat(*(call.read(0, (*index, number(i))) for i in reversed(range(parts))))
        value = call.read(0, index[:-1])
        found = z3.Extract(bits[1] - 1, 0, value)
        for i in range(1, parts):
            found = z3.If(index[-1] == i, z3.Extract((i + 1) * bits[1] - 1, i * bits[1], value), found)
        return found

    return call.tensor(at)


def gather(call: Call) -> Tensor:
    """`gather` and `dynamic_gather`: slices whose starts are clamped so that they lie inside."""
    text = str(call.op.attributes["dimension_numbers"])
    offset_dims, collapsed, mapped = (
        numbers_in(text, name) for name in ("offset_dims", "collapsed_slice_dims", "start_index_map")
    )
    batching, of_indices = (numbers_in(text, name) for name in ("operand_batching_dims", "start_indices_batching_dims"))
    (vector_axis,) = numbers_in(text, "index_vector_dim") or [0]
    whole, places = call.operands[0].dims, call.operands[1].dims
    sizes = call.entries(2) if len(call.operands) > 2 else [number(n) for n in call.numbers("slice_sizes")]
    kept = [a for a in range(len(whole)) if a not in (*collapsed, *batching)]
    batch_dims = [a for a in range(len(call.dims)) if a not in offset_dims]
    call.same("slices", [sizes[a] for a in kept], [call.dims[a] for a in offset_dims])
    call.same("batches", [n for a, n in enumerate(places) if a != vector_axis], [call.dims[a] for a in batch_dims])
    call.same("batching sizes", [whole[a] for a in batching], [places[a] for a in of_indices])
    nonempty = z3.And([call.dims[a] > 0 for a in batch_dims])
    for axis, (size, of) in enumerate(zip(sizes, whole, strict=True)):
        if axis in (*collapsed, *batching):
            call.require("slices of one", size <= 1)
        call.require("slices fit", size >= 0, z3.Implies(nonempty, size <= of))

    def at(index: Index) -> Term:
        batch = [index[a] for a in batch_dims]
        source = [number(0)] * len(whole)
        for component, axis in enumerate(mapped):
            where = list(batch)
            if vector_axis < len(places):
                where.insert(vector_axis, number(component))
            source[axis] = _clamped(call.read(1, tuple(where)), whole[axis], sizes[axis])
        for axis, other in zip(batching, of_indices, strict=True):
            source[axis] += batch[other - (other > vector_axis)]
        for axis, place in zip(kept, (index[a] for a in offset_dims), strict=True):
            source[axis] += place
        return call.read(0, tuple(source))

    return call.tensor(at)


def torch_index_select(call: Call) -> Tensor:
    """`torch_index_select`: slices along an axis, at indices that are clamped."""
    axis, batch = call.number("dim"), call.number("batch_dims")
    whole, places = call.operands[0].dims, call.operands[1].dims
    call.same("sizes", call.dims, (*whole[:axis], *places[batch:], *whole[axis + 1 :]))
    call.same("batches", whole[:batch], places[:batch])
    call.require("an axis with elements", whole[axis] >= 1)
    count = len(places) - batch

    def at(index: Index) -> Term:
        where = (*index[:batch], *index[axis : axis + count])
        start = _clamped(call.read(1, where), whole[axis], number(1))
        return call.read(0, (*index[:axis], start, *index[axis + count :]))

    return call.tensor(at)


MOVES: dict[str, Rule] = {
    "bitcast_convert": bitcast_convert,
    "broadcast": broadcast,
    "broadcast_in_dim": broadcast_in_dim,
    "concatenate": concatenate,
    "dynamic_broadcast_in_dim": broadcast_in_dim,
    "dynamic_gather": gather,
    "dynamic_iota": iota,
    "dynamic_pad": pad,
    "dynamic_reshape": reshape,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "gather": gather,
    "iota": iota,
    "pad": pad,
    "real_dynamic_slice": slice_,
    "reshape": reshape,
    "reverse": reverse,
    "slice": slice_,
    "torch_index_select": torch_index_select,
    "transpose": transpose,
}
"""Rules by the names of the ops."""
