# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The peak performance of a machine, measured here and now: the ceilings of a roofline (Williams et al., 2009)."""

from __future__ import annotations

import functools
from bisect import bisect_left
from typing import Any

import numpy as np

from shlo_disc.driver.artifact_header import artifact_of
from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.report.synthetic import load_flat, synthetic_arguments
from shlo_disc.runtime import Client, LoadedExecutable

_COPY = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
"""

_PRODUCT = """
func.func @main(%w: tensor<SIZExSIZExELEMENT>, %x: tensor<?xSIZExELEMENT>) -> tensor<?xSIZExSUM> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<?xSIZExELEMENT>, tensor<SIZExSIZExELEMENT>) -> tensor<?xSIZExSUM>
  return %y : tensor<?xSIZExSUM>
}
"""

_SUMS = {"f32": "f32", "f64": "f64", "bf16": "f32", "f16": "f32", "i8": "i32", "ui8": "ui32", "i32": "i32"}
"""The elements of products whose speed is measured, and of their sums."""

_SIZES = tuple(1 << n for n in range(14, 29, 2))
"""Bytes of a copied array."""

PRODUCT_SIZES = {"cpu": (512, 1024), "cuda": (4096, 4096)}
"""Rows of the left side of a measured product, and of its square right side, by platform."""

RUNS = 9


class Machine:
    """The first device of a client, and how fast programs for `target` copy and multiply there. Thread-safe."""

    def __init__(self, on: Client, target: str):
        self._client, self._target = on, target
        self._rates: dict[str, float] = {}

    @property
    def name(self) -> str:
        """ "2 threads", or the name of a GPU."""
        device = self._client.devices()[0]
        return f"{device.threads} threads" if device.platform == "cpu" else device.device_kind

    @functools.cached_property
    def copies(self) -> tuple[tuple[int, float], ...]:
        """For copies of arrays of some sizes: bytes touched, and how many of these a second."""
        copy = self._load(_COPY)
        arrays = [np.ones(size // 4, np.float32) for size in _SIZES]
        return tuple((2 * a.nbytes, 2 * a.nbytes / _seconds(copy, a)) for a in arrays)

    def bandwidth(self, size: float) -> float:
        """Bytes a second where `size` bytes are touched: what fits a cache is faster."""
        place = min(bisect_left(self.copies, (int(size), 0.0)), len(self.copies) - 1)
        return self.copies[place][1]

    def product_rate(self, element: str) -> float:
        """Operations a second, a multiply-add being two, of a large product; of f32 for a type that has none of its
        own."""
        element = element if element in _SUMS else "f32"
        if element not in self._rates:
            rows, side = PRODUCT_SIZES[self._client.platform]
            text = _PRODUCT.replace("SIZE", str(side)).replace("ELEMENT", element).replace("SUM", _SUMS[element])
            program = self._load(text)
            sizes = {symbol["name"]: rows for symbol in program.artifact.header["symbols"]}
            weights, left = synthetic_arguments(program.artifact.header, sizes)
            self._rates[element] = 2 * rows * side * side / _seconds(program.bind(weights), left)
        return self._rates[element]

    def seconds(self, size: float, flops: float, element: str) -> float:
        """The least time for touching so many bytes, and for so much arithmetic at the rate of a type's products."""
        return max(size / self.bandwidth(size), flops / self.product_rate(element))

    def to_json(self) -> dict[str, Any]:
        """Everything measured so far."""
        return {"name": self.name, "copies": list(self.copies), "product_rates": dict(self._rates)}

    def _load(self, text: str) -> LoadedExecutable:
        return load_flat(self._client, artifact_of(run_pipeline(import_stage(text, self._target, Options()))))


@functools.cache
def machine(on: Client, target: str) -> Machine:
    """The machine of a client. It measures what it is asked for, which takes a second or two."""
    return Machine(on, target)


def _seconds(program: Any, array: np.ndarray) -> float:
    """The least time of the first command."""
    return float(min(program.profile([array])[0].seconds for _ in range(RUNS)))


__all__ = ["Machine", "machine"]
