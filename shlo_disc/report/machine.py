# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the machine can do at most, measured here and now: the ceilings of a roofline (Williams et al., 2009)."""

from __future__ import annotations

import functools
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from shlo_disc.artifact_header import artifact_of
from shlo_disc.clients import client
from shlo_disc.compiler import import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.report.synthetic import load_flat, synthetic_arguments
from shlo_disc.runtime import Artifact

_COPY = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
"""

_PRODUCT = """
func.func @main(%w: tensor<1024x1024xELEMENT>, %x: tensor<?x1024xELEMENT>) -> tensor<?x1024xSUM> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<?x1024xELEMENT>, tensor<1024x1024xELEMENT>) -> tensor<?x1024xSUM>
  return %y : tensor<?x1024xSUM>
}
"""

_SUMS = {"f32": "f32", "f64": "f64", "bf16": "f32", "f16": "f32", "i8": "i32", "ui8": "ui32", "i32": "i32"}
"""The elements of products whose speed is measured, and of their sums."""

_SIZES = tuple(1 << n for n in range(14, 29, 2))
"""Bytes of a copied array."""


@dataclass(frozen=True)
class Machine:
    """Bytes a second read and written by copies of arrays of some sizes."""

    threads: int
    copies: tuple[tuple[int, float], ...]

    def bandwidth(self, size: float) -> float:
        """Bytes a second where `size` bytes are touched: what fits a cache is faster."""
        place = min(bisect_left(self.copies, (int(size), 0.0)), len(self.copies) - 1)
        return self.copies[place][1]

    def seconds(self, size: float, flops: float, element: str) -> float:
        """The least time for touching so many bytes, and for so much arithmetic at the rate of a type's products."""
        return max(size / self.bandwidth(size), flops / product_rate(self.threads, element))


@functools.cache
def product_rate(threads: int, element: str) -> float:
    """Operations a second, a multiply-add being two, of a large product; of f32 for a type that has none of its own."""
    element = element if element in _SUMS else "f32"
    text = _PRODUCT.replace("ELEMENT", element).replace("SUM", _SUMS[element])
    artifact = _compiled(text)
    weights, rows = synthetic_arguments(artifact.header, {s["name"]: 512 for s in artifact.header["symbols"]})
    bound = load_flat(client(threads), artifact).bind(weights)
    return 2 * 512 * 1024 * 1024 / min(bound.profile([rows])[0].seconds for _ in range(9))


@functools.cache
def machine(threads: int) -> Machine:
    """The machine with a pool of `threads`, 0 for all processors. The first call takes a second or two."""
    pool = client(threads)
    copy = load_flat(pool, _compiled(_COPY))
    copies = []
    for size in _SIZES:
        array = np.ones(size // 4, np.float32)
        copies.append((2 * size, 2 * size / min(copy.profile([array])[0].seconds for _ in range(9))))
    return Machine(pool.devices()[0].threads, tuple(copies))


def _compiled(text: str) -> Artifact:
    return artifact_of(run_pipeline(import_stage(text, "cpu", Options())))


__all__ = ["Machine", "machine", "product_rate"]
