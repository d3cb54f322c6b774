# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move elements or make them from sizes. Each dynamic op prints as its static form at given sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.fuzz.builder import DTYPES, FLOATS, INTEGERS, Builder, array, generic
from tests.fuzz.families.elementwise import union
from tests.fuzz.program import Dims, Printer, Value
from tests.fuzz.ranges import Range, full, is_float, rounded


def is_static(dims: Sequence[Expr]) -> bool:
    """Tells whether no size is symbolic."""
    return all(d.constant is not None for d in dims)


def least(b: Builder, dim: Expr) -> int:
    """The smallest value of a size in the calls."""
    return min(b.at(dim))


# ---- broadcast and reshape ------------------------------------------------------------------------------------------


def broadcast(b: Builder, dynamic: bool) -> bool:
    """Into more dimensions, and along dimensions of one element."""
    x = b.pick(lambda v: v.rank <= 3 and (dynamic or is_static(v.dims)))
    if not dynamic and not is_static(x.dims):
        return False
    rank = b.rng.randint(x.rank, 4)
    axes = sorted(b.rng.sample(range(rank), x.rank))
    if b.rng.random() < 0.2:
        b.rng.shuffle(axes)
    dims = list(b.dims(rank)) if dynamic else [Expr.const(b.rng.choice((1, 2, 3, 16, 17))) for _ in range(rank)]
    for axis, dim in zip(axes, x.dims, strict=True):
        if dim != 1 or b.rng.random() < 0.3:
            dims[axis] = dim
    attributes = f"broadcast_dimensions = {array(axes)}"
    result = Value(x.dtype, tuple(dims), x.range)

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        if p.static or not dynamic:
            p.op("broadcast_in_dim", names, [p.type(x)], made, [p.type(result)], attributes)
            return
        shape = p.shape(dims)
        p.op("dynamic_broadcast_in_dim", [names[0], shape], [p.type(x), f"tensor<{rank}xi32>"], made,
             [p.type(result)], attributes)  # fmt: skip

    op = "dynamic_broadcast_in_dim" if dynamic else "broadcast_in_dim"
    return b.fits(dims) and b.add_results(op, [x], [result], render)


def regrouped(b: Builder, dims: Dims) -> Dims:
    """Other sizes with the same product: neighbours merged, constants split, ones put in and left out."""
    out = list(dims)
    for _ in range(b.rng.randint(1, 3)):
        kind = b.rng.random()
        if kind < 0.4 and len(out) >= 2:
            at = b.rng.randrange(len(out) - 1)
            out[at : at + 2] = [out[at] * out[at + 1]]
        elif kind < 0.6 and len(out) <= 4:
            out.insert(b.rng.randint(0, len(out)), Expr.const(1))
        elif kind < 0.75 and any(d == 1 for d in out):
            out.remove(Expr.const(1))
        elif out:
            at = b.rng.randrange(len(out))
            for factor in (2, 3, 4, 8, *(Expr.symbol(s) for s in b.symbols)):
                quotient = divided(out[at], factor)
                if quotient is not None and b.rng.random() < 0.5:
                    out[at : at + 1] = b.rng.sample([Expr.const(factor) if isinstance(factor, int) else factor,
                                                     quotient], 2)  # fmt: skip
                    break
    return tuple(out)


def divided(dim: Expr, factor: Expr | int) -> Expr | None:
    """dim / factor where that is a polynomial without a remainder."""
    quotient = dim // factor
    return quotient if quotient * factor == dim and not any(a.kind == "floordiv" for a in quotient.atoms()) else None


def reshape(b: Builder, dynamic: bool) -> bool:
    """To other sizes with the same product."""
    x = b.pick(lambda v: dynamic or is_static(v.dims), least_rank=1)
    if not dynamic and not is_static(x.dims):
        return False
    result = Value(x.dtype, regrouped(b, x.dims), x.range)

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        if p.static or not dynamic:
            p.op("reshape", names, [p.type(x)], made, [p.type(result)])
            return
        shape = p.shape(result.dims)
        p.op("dynamic_reshape", [names[0], shape], [p.type(x), f"tensor<{result.rank}xi32>"], made, [p.type(result)])

    if result.rank > 5 or not b.fits(result.dims):
        return False
    return b.add_results("dynamic_reshape" if dynamic else "reshape", [x], [result], render)


def transpose(b: Builder) -> bool:
    """Any permutation."""
    x = b.pick(least_rank=2)
    order = b.rng.sample(range(x.rank), x.rank)
    dims = [x.dims[i] for i in order]
    return b.add("transpose", [x], x.dtype, dims, x.range, f"permutation = {array(order)}")


def reverse(b: Builder) -> bool:
    """Reverses any dimensions."""
    x = b.pick(least_rank=1)
    axes = sorted(b.rng.sample(range(x.rank), b.rng.randint(1, x.rank)))
    return b.add("reverse", [x], x.dtype, x.dims, x.range, f"dimensions = {array(axes)}")


def concatenate(b: Builder) -> bool:
    """Concatenates two or three values, one of them twice at times."""
    x = b.pick(least_rank=1)
    axis = b.rng.randrange(x.rank)
    parts, range_ = [x], x.range
    for _ in range(b.rng.randint(1, 2)):
        dims = list(x.dims)
        if b.rng.random() < 0.6:
            dims[axis] = b.dim()
        like = Value(x.dtype, tuple(dims), x.range)
        part = b.like(like) if b.fits(dims) else x
        parts.append(part)
        range_ = union(range_, part.range)
    dims = list(x.dims)
    dims[axis] = sum((p.dims[axis] for p in parts), Expr.const(0))
    return b.add("concatenate", parts, x.dtype, dims, range_, f"dimension = {axis} : i64")


# ---- pad and slice --------------------------------------------------------------------------------------------------


def padded(dim: Expr, low: Expr | int, high: Expr | int, interior: int) -> Expr:
    """The size after padding."""
    return dim + low + high if not interior else dim + interior * Expr.maximum(dim - 1, 0) + low + high


def pad(b: Builder, dynamic: bool) -> bool:
    """Edges of either sign, interior padding; sizes of edges too where `dynamic`."""
    x = b.pick(least_rank=1)
    value = b.argument(x.dtype, (), None if is_float(x.dtype) else Range(0, 1))
    edges = (0, 0, 0, 1, 2, 3, 15, -1, -2)
    low: list[Expr] = [Expr.const(b.rng.choice(edges)) for _ in x.dims]
    high: list[Expr] = [Expr.const(b.rng.choice(edges)) for _ in x.dims]
    interior = [b.rng.choice((0, 0, 0, 1, 2)) for _ in x.dims]
    if dynamic:
        low[b.rng.randrange(x.rank)] = Expr.symbol(b.rng.choice(b.symbols))
    dims = tuple(padded(*parts) for parts in zip(x.dims, low, high, interior, strict=True))
    if not b.fits(dims):
        return False
    result = Value(x.dtype, dims, union(x.range, value.range))

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        types = [p.type(x), p.type(value)]
        if p.sizes is not None or not dynamic:
            sizes = p.sizes or {}
            ends = [array([d.evaluate(sizes) for d in edge]) for edge in (low, high)]
            attributes = (f"edge_padding_low = {ends[0]}, edge_padding_high = {ends[1]}, "
                          f"interior_padding = {array(interior)}")  # fmt: skip
            p.op("pad", names, types, made, [p.type(result)], attributes)
            return
        ends = [p.shape(edge) for edge in (low, high, [Expr.const(i) for i in interior])]
        p.op("dynamic_pad", [*names, *ends], [*types, *[f"tensor<{x.rank}xi32>"] * 3], made, [p.type(result)])

    b.required += [d for d in dims if d.constant is None]
    return b.add_results("dynamic_pad" if dynamic else "pad", [x, value], [result], render)


def slice_(b: Builder) -> bool:
    """Static bounds, which every admissible size holds."""
    x = b.pick(least_rank=1)
    bounds = []
    for dim in x.dims:
        limit = b.rng.randint(0, least(b, dim)) if b.rng.random() < 0.5 else least(b, dim)
        bounds.append((b.rng.randint(0, limit), limit, b.rng.choice((1, 1, 2, 3))))
    dims = [Expr.const(-(-(limit - start) // stride)) for start, limit, stride in bounds]
    start, limit, stride = zip(*bounds, strict=True)
    attributes = f"start_indices = {array(start)}, limit_indices = {array(limit)}, strides = {array(stride)}"
    b.required += [d - top for d, top in zip(x.dims, limit, strict=True) if d.constant is None]
    return b.add("slice", [x], x.dtype, dims, x.range, attributes)


def real_dynamic_slice(b: Builder) -> bool:
    """Bounds that are expressions of sizes."""
    x = b.pick(least_rank=1)
    starts, limits, strides = [], [], []
    for dim in x.dims:
        start = Expr.const(b.rng.choice((0, 0, 0, 1)))
        limit = b.rng.choice((dim, dim, dim - 1, dim // 2 + start, Expr.minimum(dim, Expr.symbol(b.symbols[0]))))
        if any(not 0 <= s <= e <= d for s, e, d in zip(b.at(start), b.at(limit), b.at(dim), strict=True)):
            start, limit = Expr.const(0), dim
        starts.append(start)
        limits.append(limit)
        strides.append(b.rng.choice((1, 1, 1, 2, 3)))
    dims = [(e - s + (k - 1)) // k for s, e, k in zip(starts, limits, strides, strict=True)]
    if not b.fits(dims) or is_static(dims):
        return False
    result = Value(x.dtype, tuple(dims), x.range)

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        if p.sizes is not None:
            ends = [array([d.evaluate(p.sizes) for d in edge]) for edge in (starts, limits)]
            attributes = f"start_indices = {ends[0]}, limit_indices = {ends[1]}, strides = {array(strides)}"
            p.op("slice", names, [p.type(x)], made, [p.type(result)], attributes)
            return
        ends = [p.shape(edge) for edge in (starts, limits, [Expr.const(k) for k in strides])]
        p.op("real_dynamic_slice", [*names, *ends], [p.type(x), *[f"tensor<{x.rank}xi32>"] * 3], made,
             [p.type(result)])  # fmt: skip

    b.required += [limit - start for start, limit in zip(starts, limits, strict=True)]
    return b.add_results("real_dynamic_slice", [x], [result], render)


def index_dtype(b: Builder, dims: Dims) -> str:
    """A dtype of indices into these sizes. XLA clamps in it, so it must hold them."""
    dtype: str = b.rng.choice(("i32", "i32", "i64", "ui32", "i8"))
    return "i32" if dtype == "i8" and max(max(b.at(d)) for d in dims) > full(dtype).hi else dtype


def index_scalars(b: Builder, dims: Dims) -> list[Value]:
    """Integer scalars of one dtype, one for each size, of any value: indices are clamped."""
    dtype = index_dtype(b, dims)
    small = Range(0, 40) if dtype == "ui32" else None  # the interpreter reads large ones as negative
    found = [v for v in b.pool if v.dtype == dtype and not v.rank and v.range.hi < 2**31]
    return [b.rng.choice(found) if found and b.rng.random() < 0.6 else b.argument(dtype, (), small) for _ in dims]


def dynamic_slice(b: Builder) -> bool:
    """Static sizes at a place that the elements decide."""
    x = b.pick(least_rank=1)
    sizes = [b.rng.randint(0, least(b, d)) if b.rng.random() < 0.5 else least(b, d) for d in x.dims]
    b.required += [d - size for d, size in zip(x.dims, sizes, strict=True) if d.constant is None]
    operands = [x, *index_scalars(b, x.dims)]
    dims = [Expr.const(size) for size in sizes]
    return b.add("dynamic_slice", operands, x.dtype, dims, x.range, f"slice_sizes = {array(sizes)}")


def dynamic_update_slice(b: Builder) -> bool:
    """An update as large as the operand, or smaller by an expression of the size."""
    x = b.pick(least_rank=1)
    dims = tuple(b.rng.choice((d, d, d // 2, Expr.const(b.rng.randint(0, least(b, d))))) for d in x.dims)
    update = b.like(Value(x.dtype, dims, x.range))
    b.required += [d - u for d, u in zip(x.dims, dims, strict=True) if d != u]
    operands = [x, update, *index_scalars(b, x.dims)]
    return b.add("dynamic_update_slice", operands, x.dtype, x.dims, union(x.range, update.range))


# ---- values from nothing --------------------------------------------------------------------------------------------


def iota(b: Builder, dynamic: bool) -> bool:
    """Counting up along one dimension."""
    rank = b.rng.randint(1, 3)
    dims = b.dims(rank) if dynamic else tuple(Expr.const(b.rng.choice((1, 2, 3, 8, 17, 33))) for _ in range(rank))
    axis = b.rng.randrange(rank)
    dtype = b.rng.choice((*FLOATS, *INTEGERS))
    largest = max(0, *(n - 1 for n in b.at(dims[axis])))
    range_ = rounded(dtype, 0, largest, 0) if is_float(dtype) else Range(0, largest)
    if range_ is None or not is_float(dtype) and largest > full(dtype).hi or (dynamic and is_static(dims)):
        return False
    result = Value(dtype, dims, range_)

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        attributes = f"iota_dimension = {axis} : i64"
        if p.static or not dynamic:
            p.op("iota", [], [], made, [p.type(result)], attributes)
        else:
            p.op("dynamic_iota", [p.shape(dims)], [f"tensor<{rank}xi32>"], made, [p.type(result)], attributes)

    return b.fits(dims) and b.add_results("dynamic_iota" if dynamic else "iota", [], [result], render)


def literal(dtype: str, number: float) -> str:
    """A number as MLIR's attributes spell it."""
    if dtype == "i1":
        return "true" if number else "false"
    return f"{number:.6f}" if is_float(dtype) else str(int(number))


def constant(b: Builder) -> bool:
    """A splat, or different numbers in a small tensor."""
    dtype = b.rng.choice(DTYPES)
    dims = tuple(Expr.const(b.rng.choice((1, 2, 3, 5, 16, 17))) for _ in range(b.rng.randint(0, 2)))
    range_ = Range(0, 1) if dtype == "i1" else Range(0, 4, 1) if is_float(dtype) else Range(0, 9)
    scale = 2 if is_float(dtype) else 1
    shape = [d.evaluate({}) for d in dims]

    def number() -> float:
        return b.rng.randint(int(range_.lo) * scale, int(range_.hi) * scale) / scale

    def nested(axes: list[int]) -> str:
        if not axes:
            return literal(dtype, number())
        return f"[{', '.join(nested(axes[1:]) for _ in range(axes[0]))}]"

    text = literal(dtype, number()) if b.rng.random() < 0.5 else nested(shape)
    type_ = f"tensor<{'x'.join([*map(str, shape), dtype])}>"
    return b.add("constant", [], dtype, dims, range_, f"value = dense<{text}> : {type_}")


def get_dimension_size(b: Builder) -> bool:
    """A size as an element."""
    x = b.pick(least_rank=1)
    axis = b.rng.randrange(x.rank)
    return b.add("get_dimension_size", [x], "i32", (), Range(0, max(b.at(x.dims[axis]))), f"dimension = {axis} : i64")


def optimization_barrier(b: Builder) -> bool:
    """Adds a barrier for one or two values."""
    values = [b.pick() for _ in range(b.rng.randint(1, 2))]
    results = [Value(v.dtype, v.dims, v.range) for v in values]
    return b.add_results("optimization_barrier", values, results, generic("optimization_barrier", values, results))


OPS: dict[str, Callable[[Builder], bool]] = {
    "broadcast_in_dim": lambda b: broadcast(b, False), "dynamic_broadcast_in_dim": lambda b: broadcast(b, True),
    "reshape": lambda b: reshape(b, False), "dynamic_reshape": lambda b: reshape(b, True),
    "transpose": transpose, "reverse": reverse, "concatenate": concatenate,
    "pad": lambda b: pad(b, False), "dynamic_pad": lambda b: pad(b, True),
    "slice": slice_, "real_dynamic_slice": real_dynamic_slice, "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "iota": lambda b: iota(b, False), "dynamic_iota": lambda b: iota(b, True), "constant": constant,
    "get_dimension_size": get_dimension_size, "optimization_barrier": optimization_barrier,
}  # fmt: skip
