# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the machine can do at most, measured here and now: the ceilings of a roofline (Williams et al., 2009)."""

from __future__ import annotations

import functools
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from shlo_disc.executable import client
from shlo_disc.options import Options
from shlo_disc.report.made_up import load_flat

_COPY = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
"""

_PRODUCT = """
func.func @main(%w: tensor<1024x1024xf32>, %x: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<?x1024xf32>, tensor<1024x1024xf32>) -> tensor<?x1024xf32>
  return %y : tensor<?x1024xf32>
}
"""

_SIZES = tuple(1 << n for n in range(14, 29, 2))
"""Bytes of a copied array."""


@dataclass(frozen=True)
class Machine:
    """Bytes a second read and written by copies of arrays, and f32 arithmetic a second of a large product."""

    threads: int
    copies: tuple[tuple[int, float], ...]
    flops: float

    def bandwidth(self, size: float) -> float:
        """Bytes a second where `size` bytes are touched: what fits a cache is faster."""
        place = min(bisect_left(self.copies, (int(size), 0.0)), len(self.copies) - 1)
        return self.copies[place][1]

    def seconds(self, size: float, flops: float) -> float:
        """The least time for touching so many bytes and so much arithmetic."""
        return max(size / self.bandwidth(size), flops / self.flops)


@functools.cache
def machine(threads: int) -> Machine:
    """The machine with a pool of `threads`, 0 for all processors. The first call takes a second or two."""
    from shlo_disc.api import compile as build

    pool = client(threads)
    copy = load_flat(pool, build(_COPY, options=Options(threads=threads)).artifact)
    copies = []
    for size in _SIZES:
        array = np.ones(size // 4, np.float32)
        copies.append((2 * size, 2 * size / min(copy.profile([array])[0].seconds for _ in range(9))))
    product = load_flat(pool, build(_PRODUCT, options=Options(threads=threads)).artifact)
    bound = product.bind(np.ones((1024, 1024), np.float32))
    rows = np.ones((512, 1024), np.float32)
    seconds = min(bound.profile([rows])[0].seconds for _ in range(9))
    return Machine(pool.devices()[0].threads, tuple(copies), 2 * 512 * 1024 * 1024 / seconds)


__all__ = ["Machine", "machine"]
