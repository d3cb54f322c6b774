# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Words of narrow integers, or of floats of 8 bits, as floats, several elements at a time.

An integer becomes the last bits of a power of two, from which that is subtracted: two instructions where a conversion
takes one, but of the kinds of which the most are done at once. By pairs of 16 bits that is two elements at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shlo_disc.lowering.element_types import Element, constant_like, like
from shlo_disc.lowering_gpu.index_math import times
from shlo_disc.shape_dialect.mlir import arith, ir, vector

_BASES = {"f32": (1 << 23, 0x4B000000), "f16": (1 << 10, 0x64646464), "bf16": (1 << 7, 0x43434343)}
"""Powers of two by the types that have all integers from there to the next one, and words of their first bytes."""

_LARGEST_ZERO = 1 << 20
"""The largest zero point whose sum with the power of two for f32 is exact."""

_LARGEST_E4M3, _OF_E4M3 = 448.0, 256.0
"""The largest E4M3FN; each is an f16 with the same bits, less one of the exponent, times 256."""

Values = list[ir.Value]


def byte_words(words: Sequence[ir.Value], code: Element, half: int, which: ir.Value | None) -> list[Values]:
    """Words of i32 each of whose bytes has one element in its last bits, for each word one or, where both halves of
    bytes are elements, two. half: as of a weight. which: the half of all bytes, where it is that of one."""
    mask = 0x0F0F0F0F
    if half == 1:
        return [[_and(word, mask), _and(arith.shrui(word, constant_like(word, 4)), mask)] for word in words]
    if which is not None:
        amount = arith.index_cast(ir.IntegerType.get_signless(32), times(which, 4))
        return [[_and(arith.shrui(word, amount), mask)] for word in words]
    return [[_and(word, mask) if code.bits < 8 else word] for word in words]


def floats_of(words: Sequence[Values], code: Element, zero: float = 0) -> Values:
    """The elements of byte words, in the order of bytes and then of halves, as f32; integers less a zero point that
    `is_exact`."""
    found: Values = []
    for some in words:
        if code.is_float:
            lanes = [_floats(word, code) for word in some]
        else:
            lanes = [[_integer(word, byte, code, zero) for byte in range(4)] for word in _without_signs(some, code)]
        found += [lane[byte] for byte in range(4) for lane in lanes]
    return found


def is_exact(code: Element, zero: float) -> bool:
    """Tells whether integers less a zero point are exact as f32, however they are computed."""
    return not code.is_float and abs(zero) <= _LARGEST_ZERO and zero == int(zero)


def fits_pairs(code: Element, element: Element, zero: float) -> bool:
    """Tells whether integers less a zero point can be made as elements of 16 bits, and are exact."""
    if not is_exact(code, zero) or element.name not in ("f16", "bf16"):
        return False
    base, _ = _BASES[element.name]
    return base >= 1 << code.bits and 0 <= _bias(code) + zero < base


def pairs_of(words: Sequence[Values], code: Element, element: Element, zero: float) -> ir.Value:
    """The elements of byte words less a zero point that fits, in the order of `floats_of`, as a vector of 16 bits."""
    base, bytes_ = _BASES[element.name]
    found: Values = []
    for some in words:
        low, *high = _without_signs(some, code)
        pattern = constant_like(low, bytes_)
        if not high:
            found += [_bytes_of(low, pattern, (byte, 4, byte + 1, 4)) for byte in (0, 2)]
            continue
        for byte in range(4):
            both = _bytes_of(low, high[0], (byte, byte, byte + 4, byte + 4))
            found.append(arith.ori(_and(both, 0x00FF00FF), constant_like(low, bytes_ & 0xFF00FF00)))
    type_ = ir.VectorType.get([2 * len(found)], element.exact())
    word = ir.IntegerType.get_signless(32)
    pairs = vector.bitcast(type_, vector.from_elements(ir.VectorType.get([len(found)], word), found))
    return arith.subf(pairs, constant_like(pairs, base + _bias(code) + zero))


def _bias(code: Element) -> int:
    """The number that is added to integers, so that none has a sign."""
    return 0 if code.is_unsigned else 1 << (code.bits - 1)


def _without_signs(words: Values, code: Element) -> Values:
    bias = _bias(code)
    return [arith.xori(word, constant_like(word, bias * 0x01010101)) if bias else word for word in words]


def _integer(word: ir.Value, byte: int, code: Element, zero: float) -> ir.Value:
    """A byte of a word, to which the bias was added."""
    base, bits = _BASES["f32"]
    placed = _bytes_of(word, constant_like(word, bits), (byte, 4, 4, 7))
    number = arith.bitcast(like(word, ir.F32Type.get()), placed)
    return arith.subf(number, constant_like(number, base + _bias(code) + zero))


def _floats(word: ir.Value, code: Element) -> Values:
    """The floats of a word's bytes, whose bits begin those of an f16, or nearly so."""
    zero, found = constant_like(word, 0), Values()
    for byte in (0, 2):
        pair = _bytes_of(word, zero, (4, byte, 4, byte + 1))
        if code.name == "f8E4M3FN":
            magnitude = arith.shrui(_and(pair, 0x7F007F00), constant_like(word, 1))
            pair = arith.ori(_and(pair, 0x80008000), magnitude)
        halves = vector.bitcast(
            ir.VectorType.get([2], ir.F16Type.get()),
            vector.from_elements(ir.VectorType.get([1], word.type), [pair]),
        )
        for number in range(2):
            value = arith.extf(ir.F32Type.get(), vector.extract(halves, [], [number]))
            found.append(_of_e4m3(value) if code.name == "f8E4M3FN" else value)
    return found


def _of_e4m3(value: ir.Value) -> ir.Value:
    """An f16 with the bits of an E4M3FN as the number that it is; the one behind the largest is NaN."""
    number = arith.mulf(value, constant_like(value, _OF_E4M3))
    most = constant_like(value, _LARGEST_E4M3)
    is_number = arith.andi(
        arith.cmpf(arith.CmpFPredicate.OLE, number, most),
        arith.cmpf(arith.CmpFPredicate.OGE, number, constant_like(value, -_LARGEST_E4M3)),
    )
    return arith.select(is_number, number, constant_like(value, float(np.nan)))


def _and(value: ir.Value, mask: int) -> ir.Value:
    return arith.andi(value, constant_like(value, mask))


def _bytes_of(low: ir.Value, high: ir.Value, numbers: Sequence[int]) -> ir.Value:
    """A word of four bytes, the last one first, of two words: numbers below 4 are those of `low`."""
    selector = constant_like(low, sum(number << (4 * i) for i, number in enumerate(numbers)))
    mode: dict[str, ir.Attribute] = {"mode": ir.Attribute.parse("#nvvm.permute_mode<default>")}
    return ir.Operation.create("nvvm.prmt", results=[low.type], operands=[low, high, selector], attributes=mode).result


__all__ = ["byte_words", "fits_pairs", "floats_of", "is_exact", "pairs_of"]
