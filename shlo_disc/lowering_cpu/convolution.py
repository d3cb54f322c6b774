# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the runtime's `convolution` (`runtime/native/convolution.cpp`)."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.problems import ConvolutionProduct
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.symbolic.expr import Expr


def convolution_words(convolution: ConvolutionProduct) -> tuple[Expr, ...]:
    """The fields of `DiscConvolution` behind its product and before its pointers."""
    images, *space, channels = convolution.input
    missing = 2 - len(space)

    def pair(values: Dims | list[Expr], other: int = 1) -> list[Expr]:
        return [Expr.const(other)] * missing + list(values)

    words = [images, *pair(space), channels, *pair(convolution.result[1:-1]), *pair(convolution.window)]
    for numbers in (convolution.strides, convolution.dilations):
        words += pair([Expr.const(number) for number in numbers])
    return (*words, *pair(convolution.padding, 0))
