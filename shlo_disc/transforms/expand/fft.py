# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms become calls of the native runtime.

A call transforms along neighbouring axes. What is real has one call for its last axis and one for the others. cuFFT
does not divide inverse transforms by the number of their elements: the program does, by ops that are fused with others.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.build import constant, convert, create, divide, multiply, size
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.fft import fft_of
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv, round_up
from shlo_disc.transforms.expand.library_call import SLOTS, library_call

COMPLEX_TO_COMPLEX, REAL_TO_COMPLEX, COMPLEX_TO_REAL = 0, 1, 2

LANES = 8
LANES_LIMIT = 1 << 16
"""As in the runtime: lines are transformed eight at a time while eight of them have at most so many values."""
ALIGNMENT = 64
SMALL_FACTOR = 11
"""As in the runtime: with larger prime factors a transform may go through a convolution."""


def _fft(op: ir.OpView) -> bool:
    transform = fft_of(op)
    if transform is None:
        return False
    value, result = op.operands[0], op.results[0].type
    outer = transform.rank - 1
    if transform.kind == "RFFT":
        value = _call(value, result, REAL_TO_COMPLEX, rank=1)
        value = _call(value, result, COMPLEX_TO_COMPLEX, rank=outer, skip=1) if outer else value
    elif transform.kind == "IRFFT":
        if outer:
            value = _call(value, value.type, COMPLEX_TO_COMPLEX, rank=outer, skip=1, inverse=True)
        value = _call(value, result, COMPLEX_TO_REAL, rank=1, inverse=True)
    else:
        inverse = transform.kind == "IFFT"
        value = _call(value, result, COMPLEX_TO_COMPLEX, rank=transform.rank, inverse=inverse)
    if transform.kind in ("IFFT", "IRFFT") and policy().plain_transforms:
        value = _divided(value, product(dims_of(value)[-transform.rank :]))
    op.results[0].replace_all_uses_with(value)
    return True


def _divided(value: ir.Value, elements: Expr) -> ir.Value:
    """A transform divided by the number of its elements."""
    dims, element = dims_of(value), element_type_of(value)
    real = element.element_type if isinstance(element, ir.ComplexType) else element
    count = convert(size(elements, ir.IntegerType.get_signless(64), dims), real)
    factor = divide(constant(1, real, dims), count)
    if element == real:
        return multiply(value, factor)
    parts = [multiply(create(part, [value], factor.type), factor) for part in ("real", "imag")]
    return create("complex", parts, value.type)


def _call(value: ir.Value, result: ir.Type, kind: int, *, rank: int, skip: int = 0, inverse: bool = False) -> ir.Value:
    wide = "f64" in str(element_type_of(value))
    dims = dims_of(value if kind == REAL_TO_COMPLEX else result)
    axes = range(len(dims) - skip - rank, len(dims) - skip)
    workspace = Expr.const(0)
    if product(dims).constant != 0:
        needs = (_workspace(dims[a], product(d for i, d in enumerate(dims) if i != a), 8 if wide else 4) for a in axes)
        workspace = Expr.maximum(*needs)
    parameters = {"kind": kind, "inverse": int(inverse), "rank": rank, "skip": skip}
    return library_call("fft_f64" if wide else "fft_f32", [value], [result], parameters, workspace)[0]


def _workspace(length: Expr, lines: Expr, size: int) -> Expr:
    """Bytes for all slots: a line's parts and the scratch of its plan, for as many lines as go together."""
    if length.constant is not None:
        together = length.constant * LANES <= LANES_LIMIT
        values = 2 * (length + _scratch(length.constant)) * (LANES if together else 1)
        groups = ceildiv(lines, LANES) if together else lines
    else:
        values = 2 * Expr.maximum(length, Expr.minimum(LANES * length, LANES_LIMIT)) * (1 + 8)
        groups = lines
    return round_up(values * size + ALIGNMENT, ALIGNMENT) * Expr.minimum(groups, SLOTS)


def _scratch(length: int) -> int:
    """Values of scratch for a length of at least 1: at most a convolution of the next power of two, twice."""
    rest = length
    for factor in range(2, SMALL_FACTOR + 1):
        while rest % factor == 0:
            rest //= factor
    return length if rest == 1 else 2 * (1 << (2 * length - 2).bit_length())


EXPANSIONS = [("stablehlo.custom_call", _fft), ("stablehlo.fft", _fft)]
