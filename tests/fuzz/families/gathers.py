# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers and scatters along one axis, with and without batching dimensions; indices out of range included."""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.fuzz.builder import FLOATS, INTEGERS, Builder, array
from tests.fuzz.families.contractions import combiner, reduced
from tests.fuzz.families.elementwise import union
from tests.fuzz.families.movement import index_dtype, is_static, least
from tests.fuzz.program import Dims, Printer, Value
from tests.fuzz.ranges import Range, is_float


def indices(b: Builder, dims: Dims, axis: Expr) -> Value:
    """Integers of any value, mostly near those of an axis."""
    dtype = index_dtype(b, (axis,))
    range_ = None if dtype != "ui32" and b.rng.random() < 0.2 else Range(0, 9) if dtype == "ui32" else Range(-3, 20)
    return b.like(Value(dtype, dims, Range(0, 9)), lambda v: v.range.hi < 2**31, range_)


def gather(b: Builder, dynamic: bool) -> bool:
    """Slices along an axis, taken whole or in part elsewhere."""
    x = b.pick(least_rank=1)
    axis = b.rng.randrange(x.rank)
    batch = b.rng.choice([a for a in range(x.rank) if a != axis]) if x.rank > 1 and b.rng.random() < 0.3 else None
    place_dims = list(b.dims(b.rng.choice((0, 1, 1, 2))))
    if batch is not None:
        place_dims.insert(0, x.dims[batch])
    places = indices(b, tuple(place_dims), x.dims[axis])
    taken: list[Expr] = []
    for a, dim in enumerate(x.dims):
        part = Expr.const(b.rng.randint(0, least(b, dim))) if b.rng.random() < 0.3 else dim
        taken.append(Expr.const(1) if a in (axis, batch) else part if dynamic or part.constant is not None
                     else Expr.const(least(b, dim)))  # fmt: skip
    if min(least(b, x.dims[a]) for a in (axis, *([] if batch is None else [batch]))) < 1:
        return False
    window = [d for a, d in enumerate(taken) if a not in (axis, batch)]
    rank = len(window) + len(place_dims)
    offset = sorted(b.rng.sample(range(rank), len(window)))
    rest, inside = iter(place_dims), iter(window)
    dims = tuple(next(inside) if i in offset else next(rest) for i in range(rank))
    if rank > 6 or not b.fits(dims) or (dynamic and is_static(dims)):
        return False
    result = Value(x.dtype, dims, x.range)
    batching = "" if batch is None else f"operand_batching_dims = [{batch}], start_indices_batching_dims = [0], "
    numbers = (f"dimension_numbers = #stablehlo.gather<offset_dims = {offset}, collapsed_slice_dims = [{axis}], "
               f"{batching}start_index_map = [{axis}], index_vector_dim = {len(place_dims)}>")  # fmt: skip

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        types = [p.type(x), p.type(places)]
        if p.sizes is not None or not dynamic:
            sizes = array([d.evaluate(p.sizes or {}) for d in taken])
            p.op("gather", names, types, made, [p.type(result)], f"{numbers}, slice_sizes = {sizes}")
            return
        p.op("dynamic_gather", [*names, p.shape(taken)], [*types, f"tensor<{x.rank}xi32>"], made, [p.type(result)],
             numbers)  # fmt: skip

    # Nothing is required along the axis itself and the batch: without indices there is nothing to read.
    b.required += [d - t for a, (d, t) in enumerate(zip(x.dims, taken, strict=True))
                   if d != t and a not in (axis, batch)]  # fmt: skip
    return b.add_results("dynamic_gather" if dynamic else "gather", [x, places], [result], render)


def scatter(b: Builder) -> bool:
    """Slices combined into the operand; places out of range are left out."""
    x = b.pick(lambda v: not v.range.wild, (*FLOATS, *INTEGERS), least_rank=1)
    if x.range.wild:
        return False
    axis = b.rng.randrange(x.rank)
    place_dims = b.dims(b.rng.choice((0, 1, 1, 2)))
    places = indices(b, place_dims, x.dims[axis])
    window = [d for a, d in enumerate(x.dims) if a != axis]
    rank = len(window) + len(place_dims)
    offset = sorted(b.rng.sample(range(rank), len(window)))
    rest, inside = iter(place_dims), iter(window)
    dims = tuple(next(inside) if i in offset else next(rest) for i in range(rank))
    if rank > 6 or not b.fits(dims):
        return False
    small = Range(-2, 2, 0) if is_float(x.dtype) else Range(0, 3)
    updates = b.like(Value(x.dtype, dims, small), lambda v: not v.range.wild, small)
    op = b.rng.choice(("add", "add", "maximum", "minimum"))
    found = reduced(op, x.dtype, union(x.range, updates.range), b.most(place_dims) + 1)
    if found is None:
        return False
    result = Value(x.dtype, x.dims, found)
    attributes = (f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {offset}, "
                  f"inserted_window_dims = [{axis}], scatter_dims_to_operand_dims = [{axis}], "
                  f"index_vector_dim = {len(place_dims)}>")  # fmt: skip

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        types = [p.type(x), p.type(places), p.type(updates)]
        p.op("scatter", names, types, made, [p.type(result)], attributes, combiner(op, x.dtype))

    return b.add_results("scatter", [x, places, updates], [result], render)


OPS: dict[str, Callable[[Builder], bool]] = {
    "gather": lambda b: gather(b, False), "dynamic_gather": lambda b: gather(b, True), "scatter": scatter,
}  # fmt: skip
