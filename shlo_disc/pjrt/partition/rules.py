# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that work on parts of their operands: one rule an op, which says how its results lie on the devices.

A rule that returns None leaves the op to be computed whole on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from shlo_disc.shape_dialect.ops import ELEMENTWISE, TABLE
from shlo_disc.shape_dialect.ops.distributed import COLLECTIVES
from shlo_disc.shape_dialect.ops.propagation import same_operands

from .contractions import dot_general
from .reductions import reduce
from .resharding import Placed, bindings, shape_of
from .sharding import Axes, Sharding, are_apart, count, merged

if TYPE_CHECKING:
    from .partitioner import Partitioner

Rule = Callable[["Partitioner", Any], "list[Placed] | None"]


def integers(attribute: Any) -> list[int]:
    """The numbers of a list attribute."""
    return [int(number) for number in bindings().DenseI64ArrayAttr(attribute)]


def integer(attribute: Any) -> int:
    """A number."""
    return int(bindings().IntegerAttr(attribute).value)


def _elementwise(p: Partitioner, op: Any) -> list[Placed] | None:
    shape = shape_of(op.results[0])
    full = [v for v in op.operands if shape_of(v) == shape]
    if any(shape_of(v) not in ([], shape) for v in op.operands) or len(op.results) != 1:
        return None
    sharding = merged((p.placed(v).sharding for v in full), len(shape))
    operands = [p.sharded(v, sharding) if shape_of(v) == shape else p.whole(v) for v in op.operands]
    return p.clone(op, operands, [sharding])


def _broadcast(p: Partitioner, op: Any) -> list[Placed]:
    """Dimensions that are not broadcast keep their axes."""
    (operand,) = op.operands
    source, result = shape_of(operand), shape_of(op.results[0])
    given = p.placed(operand).sharding
    dims: list[Axes] = [()] * len(result)
    kept = []
    for i, target in enumerate(integers(op.attributes["broadcast_dimensions"])):
        if source[i] == result[target]:
            dims[target] = given.dims[i]
            kept.append(i)
    return p.clone(op, [p.sharded(operand, given.only(kept))], [Sharding(tuple(dims))])


def _transpose(p: Partitioner, op: Any) -> list[Placed]:
    value, given, _ = p.placed(op.operands[0])
    order = integers(op.attributes["permutation"])
    return p.clone(op, [value], [Sharding(tuple(given.dims[i] for i in order))])


def _reshape(p: Partitioner, op: Any) -> list[Placed]:
    """Within dimensions of equal products, the first one keeps its axes where both sides are divided evenly."""
    (operand,) = op.operands
    source, result = shape_of(operand), shape_of(op.results[0])
    given = p.placed(operand).sharding
    dims: list[Axes] = [()] * len(result)
    kept = []
    for before, after in _matching(source, result):
        i, j = _first_wide(source, before), _first_wide(result, after)
        if i is None or j is None:
            continue
        if result[j] % count(given.dims[i]) == 0:
            dims[j] = given.dims[i]
            kept.append(i)
    return p.clone(op, [p.sharded(operand, given.only(kept))], [Sharding(tuple(dims))])


def _matching(source: Sequence[int], result: Sequence[int]) -> list[tuple[range, range]]:
    """Runs of dimensions of both shapes, in order, with the same number of elements."""
    runs: list[tuple[range, range]] = []
    i = j = 0
    while i < len(source) and j < len(result):
        first, other = i, j
        a, b = source[i], result[j]
        i, j = i + 1, j + 1
        while a != b and (i < len(source) or j < len(result)):
            if a < b and i < len(source):
                a, i = a * source[i], i + 1
            elif j < len(result):
                b, j = b * result[j], j + 1
            else:
                return runs
        runs.append((range(first, i), range(other, j)))
    return runs


def _first_wide(shape: Sequence[int], dims: range) -> int | None:
    return next((d for d in dims if shape[d] != 1), None)


def _along(dimension: str) -> Rule:
    """An op that mixes elements along one dimension only: the others keep their axes."""

    def rule(p: Partitioner, op: Any) -> list[Placed]:
        rank = len(shape_of(op.operands[0]))
        axis = integer(op.attributes[dimension]) % max(rank, 1)
        together = merged((p.placed(v).sharding for v in op.operands), rank)
        sharding = together.only(d for d in range(rank) if d != axis)
        return p.clone(op, [p.sharded(v, sharding) for v in op.operands], [sharding] * len(op.results))

    return rule


def _slice(p: Partitioner, op: Any) -> list[Placed]:
    names = ("start_indices", "limit_indices", "strides")
    shape = shape_of(op.operands[0])
    starts, limits, strides = (integers(op.attributes[name]) for name in names)
    whole = [d for d, n in enumerate(shape) if (starts[d], limits[d], strides[d]) == (0, n, 1)]
    sharding = p.placed(op.operands[0]).sharding.only(whole)
    placed = p.clone(op, [p.sharded(op.operands[0], sharding)], [sharding])
    _set_sizes(placed[0], "limit_indices", sharding, limits)
    return placed


def _set_sizes(placed: Placed, name: str, sharding: Sharding, sizes: Sequence[int]) -> None:
    """Make sizes that are those of whole dimensions the sizes of their parts."""
    placed.value.owner.attributes[name] = bindings().DenseI64ArrayAttr.get(sharding.local(sizes))


def _dynamic_slice(p: Partitioner, op: Any) -> list[Placed]:
    value, *starts = op.operands
    sizes = integers(op.attributes["slice_sizes"])
    whole = [d for d, n in enumerate(shape_of(value)) if sizes[d] == n]
    sharding = p.placed(value).sharding.only(whole)
    placed = p.clone(op, [p.sharded(value, sharding), *map(p.whole, starts)], [sharding])
    _set_sizes(placed[0], "slice_sizes", sharding, sizes)
    return placed


def _dynamic_update_slice(p: Partitioner, op: Any) -> list[Placed]:
    value, update, *starts = op.operands
    shape = shape_of(value)
    whole = [d for d, n in enumerate(shape_of(update)) if shape[d] == n]
    sharding = merged((p.placed(v).sharding for v in (value, update)), len(shape)).only(whole)
    return p.clone(op, [p.sharded(value, sharding), p.sharded(update, sharding), *map(p.whole, starts)], [sharding])


def _pad(p: Partitioner, op: Any) -> list[Placed]:
    value, filler = op.operands
    amounts = [integers(op.attributes[f"{name}"]) for name in ("edge_padding_low", "edge_padding_high")]
    inner = integers(op.attributes["interior_padding"])
    whole = [d for d, n in enumerate(inner) if not n and not any(a[d] for a in amounts)]
    sharding = p.placed(value).sharding.only(whole)
    return p.clone(op, [p.sharded(value, sharding), p.whole(filler)], [sharding])


def _reverse(p: Partitioner, op: Any) -> list[Placed]:
    """Each device turns the part that lies as far from the other end as its own."""
    value, sharding, _ = p.placed(op.operands[0])
    axes = tuple(axis for d in integers(op.attributes["dimensions"]) for axis in sharding.dims[d])
    return p.clone(op, [p.resharder.mirrored(value, axes) if axes else value], [sharding])


def _same_shape(p: Partitioner, op: Any) -> list[Placed]:
    """Collectives of manual computations that move or combine whole arrays."""
    placed = [p.placed(v) for v in op.operands]
    return p.clone(op, [x.value for x in placed], [x.sharding for x in placed])


def _gather(p: Partitioner, op: Any) -> list[Placed] | None:
    """Rows of a table by indices: the indices' dimensions keep their axes, and those that are taken whole."""
    table, indices = op.operands
    text = str(op.attributes["dimension_numbers"])
    if "batching" in text:
        return None
    offsets, collapsed, vector = _listed(text, "offset_dims"), _listed(text, "collapsed_slice_dims"), _vector(text)
    sizes, shape = integers(op.attributes["slice_sizes"]), shape_of(table)
    rank = len(shape_of(op.results[0]))
    taken = [d for d in range(len(shape)) if d not in collapsed]
    given = p.placed(table).sharding.only(d for d in taken if sizes[d] == shape[d])
    rows = p.placed(indices).sharding
    rows = rows.only(d for d in range(len(rows.dims)) if d != vector)
    if not are_apart(rows.axes, given.axes):
        given = Sharding.replicated(len(shape))
    dims: list[Axes] = [()] * rank
    for position, d in zip(offsets, taken, strict=True):
        dims[position] = given.dims[d]
    places = [d for d in range(rank) if d not in offsets]
    for position, axes in zip(places, (a for d, a in enumerate(rows.dims) if d != vector), strict=True):
        dims[position] = axes
    placed = p.clone(op, [p.sharded(table, given), p.sharded(indices, rows)], [Sharding(tuple(dims))])
    _set_sizes(placed[0], "slice_sizes", given, sizes)
    return placed


def _listed(text: str, name: str) -> list[int]:
    if f"{name} = [" not in text:
        return []
    numbers = text.split(f"{name} = [")[1].split("]")[0]
    return [int(n) for n in numbers.split(",") if n.strip()]


def _vector(text: str) -> int:
    name = "index_vector_dim = "
    return int(text.split(name)[1].rstrip(">").split(",")[0]) if name in text else 0


_CHLO = (
    "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf "
    "lgamma next_after polygamma sinh square tan zeta"
)

RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **{f"chlo.{name}": _elementwise for name in _CHLO.split()},
    **dict.fromkeys((name for name in COLLECTIVES if TABLE[name].infer is same_operands), _same_shape),
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _along("dimension"),
    "stablehlo.dot_general": dot_general,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.pad": _pad,
    "stablehlo.reduce": reduce,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.sort": _along("dimension"),
    "stablehlo.transpose": _transpose,
}
