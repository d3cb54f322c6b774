# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Smaller sizes, and static ones in place of symbols."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shlo_disc.shape_dialect.mlir import ir

from .failing import SIZES, Failure
from .rewriting import body_of, main_of

_SHAPE = re.compile(r"(?<=tensor<)(?:\d+x|\?x)+")
_LIMITS = re.compile(r"(?<=limit_indices = array<i64: )[\d, ]+|(?<=slice_sizes = array<i64: )[\d, ]+")
_SHAPE_OPERAND = re.compile(r"(?<=dense<)(?:\d+|\[[\d, ]+\])(?=> : tensor<\d*x?i(?:32|64)>)")
_SIMPLER = "stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism),canonicalize,cse"
_NUMBER = re.compile(r"\d+")


def smaller_sizes(text: str) -> Iterator[str]:
    """The texts of programs in which one size, wherever it stands, is a smaller one, the largest sizes first.

    text: a module in generic form. The multiples of a size shrink with it, or stay. Most of what comes out is no
    program: sizes that only happen to be equal, or that are made of others, do not fit any more.
    """
    found = {int(size) for shape in _SHAPE.findall(text) for size in _NUMBER.findall(shape)}
    for size in sorted(found - {0, 1}, reverse=True):
        for smaller in sorted({1, 2, 3, size // 2, size - 1} & set(range(1, size))):
            yield _with_sizes(text, {size: smaller})
            multiples = {other: other // size * smaller for other in found if other and other % size == 0}
            if len(multiples) > 1:
                yield _with_sizes(text, multiples)


def _with_sizes(text: str, sizes: dict[int, int]) -> str:
    def smaller(found: re.Match[str]) -> str:
        return _NUMBER.sub(lambda number: str(sizes.get(int(number[0]), int(number[0]))), found[0])

    for pattern in (_SHAPE, _LIMITS, _SHAPE_OPERAND):
        text = pattern.sub(smaller, text)
    return text


def static_pipelines(module: ir.Operation, failure: Failure, given: Sequence[int]) -> Iterator[str]:
    """MLIR's passes that make a program static: at the sizes of a call that fails, or with all symbols of one size.

    given: sizes that a user says the program fails at.
    """
    arguments = list(body_of(main_of(module)).arguments)
    if all(_is_static(a.type) for a in arguments):
        return
    if len(failure.shapes) == len(arguments):
        yield _static([_sized(a.type, shape) for a, shape in zip(arguments, failure.shapes, strict=True)])
    for size in dict.fromkeys((*given, *SIZES)):
        yield _static([_sized(a.type, [size] * _rank(a.type)) for a in arguments])


def _static(types: Sequence[str]) -> str:
    return f"inline,symbol-dce,stablehlo-refine-arguments{{types={','.join(types)}}},{_SIMPLER}"


def _rank(type_: ir.Type) -> int:
    return type_.rank if isinstance(type_, ir.RankedTensorType) else 0


def _is_static(type_: ir.Type) -> bool:
    return not isinstance(type_, ir.RankedTensorType) or type_.has_static_shape


def _sized(type_: ir.Type, shape: Sequence[int]) -> str:
    """A type as text, with these sizes where it has none."""
    if not isinstance(type_, ir.RankedTensorType):
        return str(type_)
    sizes = [str(n) if type_.is_dynamic_dim(i) else str(type_.get_dim_size(i)) for i, n in enumerate(shape)]
    return f"tensor<{''.join(f'{size}x' for size in sizes)}{type_.element_type}>"
