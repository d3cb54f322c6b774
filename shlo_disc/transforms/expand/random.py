# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random bits: the counter-based generators ThreeFry-2x32 and Philox-4x32 as integer ops on an index.

Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011). Which counter and which word of a
block an element gets, and the state that is left behind, are XLA's: bits and states agree with it at every shape. Every
element computes its block on its own, so that the bits need no buffer and fuse with what reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import convert
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir, rewrite
from shlo_disc.shape_dialect.ops.random import DYNAMIC
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.transforms.simplify.data_movement import NO_MATCH, Pattern

_THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA
_PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)
_PHILOX_SCRAMBLE = (0x3EC8F720, 0x02461E29)

Words = list[ir.Value]


def _unsigned(width: int) -> ir.Type:
    return ir.IntegerType.get_unsigned(width)


def _number(n: int, like: ir.Value) -> ir.Value:
    return build.constant(n, element_type_of(like), dims_of(like))


def _halves(value: ir.Value) -> Words:
    """The low and the high half of 64-bit integers."""
    high = build.shift_right_logical(value, _number(32, value))
    return [convert(value, _unsigned(32)), convert(high, _unsigned(32))]


def _joined(low: ir.Value, high: ir.Value) -> ir.Value:
    wide = convert(high, _unsigned(64))
    return build.or_(convert(low, _unsigned(64)), build.shift_left(wide, _number(32, wide)))


def _linear_index(indices: Sequence[ir.Value], sizes: Dims, dims: Dims) -> ir.Value:
    """The row-major index of `indices` in a tensor of `sizes`, at every place of `dims`."""
    total = build.constant(0, _unsigned(64), dims)
    for axis, index in enumerate(indices):
        stride = build.size(product(sizes[axis + 1 :]), _unsigned(64), dims)
        total = build.add(total, build.multiply(index, stride))
    return total


def _iotas(dims: Dims) -> list[ir.Value]:
    return [build.iota(dims, _unsigned(64), axis) for axis in range(len(dims))]


# ---- ThreeFry -------------------------------------------------------------------------------------------------------


def _rotate(x: ir.Value, distance: int) -> ir.Value:
    left = build.shift_left(x, _number(distance, x))
    return build.or_(left, build.shift_right_logical(x, _number(32 - distance, x)))


def _threefry_block(counter: ir.Value, key: Words) -> Words:
    """20 rounds; a word of the key is added after every fourth."""
    parity = build.xor(build.xor(*key), _number(_THREEFRY_PARITY, key[0]))
    keys = [build.broadcast_scalar(k, dims_of(counter)) for k in (*key, parity)]
    x = [build.add(word, k) for word, k in zip(_halves(counter), keys, strict=False)]
    for group in range(5):
        for distance in _THREEFRY_ROTATIONS[group % 2]:
            x[0] = build.add(*x)
            x[1] = build.xor(x[0], _rotate(x[1], distance))
        x[0] = build.add(x[0], keys[(group + 1) % 3])
        x[1] = build.add(x[1], keys[(group + 2) % 3])
        x[1] = build.add(x[1], _number(group + 1, x[1]))
    return x


def _split_axis(dims: Dims) -> list[Expr]:
    """1 for the axis that XLA splits in two halves, 0 for the others: the first even size, else the first largest."""
    odd = [d % 2 for d in dims]
    none_even = product(odd)
    chosen = []
    for axis, own in enumerate(dims):
        is_first_even = (1 - odd[axis]) * product(odd[:axis])
        larger = [Expr.minimum(Expr.maximum(own - d, 0), 1) for d in dims[:axis]]
        at_least = [Expr.minimum(Expr.maximum(own - d + 1, 0), 1) for d in dims[axis + 1 :]]
        chosen.append(is_first_even + none_even * product([*larger, *at_least]))
    return chosen


def _threefry_32(key: Words, state: ir.Value, dims: Dims) -> tuple[ir.Value, Expr]:
    """A block has two words: neighbours along the split axis."""
    split = _split_axis(dims)
    half = tuple(d - c * (d // 2) for c, d in zip(split, dims, strict=True))
    indices, second = [], build.constant(0, _unsigned(64), dims)
    for index, chosen in zip(_iotas(dims), split, strict=True):
        shift = build.size(chosen, _unsigned(64), dims)
        indices.append(build.shift_right_logical(index, shift))
        second = build.or_(second, build.and_(index, shift))
    counter = build.add(build.broadcast_scalar(state, dims), _linear_index(indices, half, dims))
    words = _threefry_block(counter, key)
    is_first = build.compare("EQ", second, _number(0, second))
    return build.select(is_first, *words), product(half)


def _threefry_64(key: Words, state: ir.Value, dims: Dims) -> tuple[ir.Value, Expr]:
    counter = build.add(build.broadcast_scalar(state, dims), _linear_index(_iotas(dims), dims, dims))
    return _joined(*_threefry_block(counter, key)), product(dims)


def _threefry(state: Words, width: int, dims: Dims) -> tuple[ir.Value, Words]:
    generate = _threefry_64 if width == 64 else _threefry_32
    bits, used = generate(_halves(state[0]), state[1], dims)
    return bits, [state[0], build.add(state[1], build.size(used, _unsigned(64)))]


# ---- Philox ---------------------------------------------------------------------------------------------------------


def _philox_block(x: Words, key: Words) -> Words:
    """10 rounds."""
    for _ in range(10):
        products = []
        for word, multiplier in zip((x[0], x[2]), _PHILOX_MULTIPLIERS, strict=True):
            wide = convert(word, _unsigned(64))
            products.append(_halves(build.multiply(wide, _number(multiplier, wide))))
        (low0, high0), (low1, high1) = products
        first = build.xor(build.xor(high1, x[1]), key[0])
        second = build.xor(build.xor(high0, x[3]), key[1])
        x = [first, low1, second, low0]
        key = [build.add(k, _number(w, k)) for k, w in zip(key, _PHILOX_WEYL, strict=True)]
    return x


def _add_128(low: ir.Value, high: ir.Value, n: ir.Value) -> Words:
    total = build.add(low, n)
    carried = build.add(high, _number(1, high))
    return [total, build.select(build.compare("LT", total, low), carried, high)]


def _philox(state: Words, width: int, dims: Dims) -> tuple[ir.Value, Words]:
    """A block has four words of 32 bits or two of 64: neighbours in row-major order."""
    key, low, high = _philox_key_and_counter(state)
    words = 2 if width == 64 else 4
    index = _linear_index(_iotas(dims), dims, dims)
    block = build.shift_right_logical(index, _number(words.bit_length() - 1, index))
    counter = _add_128(build.broadcast_scalar(low, dims), build.broadcast_scalar(high, dims), block)
    found = _philox_block([h for c in counter for h in _halves(c)], [build.broadcast_scalar(k, dims) for k in key])
    if width == 64:
        found = [_joined(*found[:2]), _joined(*found[2:])]
    place = build.and_(index, _number(words - 1, index))
    bits = found[0]
    for i, word in enumerate(found[1:], 1):
        bits = build.select(build.compare("EQ", place, _number(i, place)), word, bits)
    used = build.size(ceildiv(product(dims), words), _unsigned(64))
    return bits, [state[0], *_add_128(low, high, used)][: len(state)]


def _philox_key_and_counter(state: Words) -> tuple[Words, ir.Value, ir.Value]:
    """The state holds the key and the counter; where the counter's high half is left out, the key stands for it."""
    return _halves(state[0]), state[1], state[2] if len(state) == 3 else state[0]


# ---- the op ---------------------------------------------------------------------------------------------------------


def rng_bit_generator(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Integer ops on the index; the default algorithm is Philox, as on XLA's CPU."""
    if op.operation.name == "stablehlo.custom_call":
        if ir.StringAttr(op.attributes["call_target_name"]).value != DYNAMIC:
            return NO_MATCH
    algorithm = _threefry if "THREE_FRY" in str(op.attributes["rng_algorithm"]) else _philox
    result = op.results[1]
    dims, kind = dims_of(result), element_type_of(result)
    width = 8 * bytes_of(kind)
    with rewriter.ip, op.location:
        count = dims_of(op.results[0])[0].constant or 0
        state = [build.column(op.operands[0], i) for i in range(count)]
        bits, new_state = algorithm(state, width, dims)
        bits = convert(bits, _unsigned(width))
        bits = convert(bits, kind, "convert" if isinstance(kind, ir.IntegerType) else "bitcast_convert")
        rewriter.replace_op(op, [build.stack(new_state), bits])
    return None


PATTERNS: list[tuple[str, Pattern]] = [
    ("stablehlo.custom_call", rng_bit_generator),
    ("stablehlo.rng_bit_generator", rng_bit_generator),
]
