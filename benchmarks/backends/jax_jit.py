# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""jax.jit, which compiles each shape, and jax.jit on sizes rounded up to powers of two, which compiles fewer."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import jax
import numpy as np

from benchmarks.backends import Kernels, Refused
from benchmarks.backends.jax_arrays import JaxBackend
from benchmarks.data import Folder, leaves, like, load, size

NOT_KERNELS = {"parameter", "constant", "bitcast", "tuple", "get-tuple-element", "after-all", "iota"}
"""HLO instructions of an entry computation that launch nothing."""


class Jit(JaxBackend):
    """XLA, one program for each shape."""

    def prepare(self) -> dict[str, float]:
        """Nothing is compiled before the first call."""
        self.jitted = jax.jit(self.work.function)
        return {}

    def call(self, inputs: Any) -> Any:
        """Runs the program of the shape."""
        return self.jitted(self.params, *inputs)

    def compiles(self) -> int:
        """Programs that jax.jit keeps, one for each combination of shapes."""
        count: int = self.jitted._cache_size()  # type: ignore[attr-defined]
        return count

    def kernels(self, index: int) -> Kernels:
        """The instructions of the optimised entry computation, by opcode."""
        text = self.jitted.lower(self.params, *self.place(index)).compile().as_text()
        return count_instructions(text or "")


def count_instructions(hlo: str) -> Kernels:
    """The instructions of an HLO module's entry computation, by opcode, those that launch nothing left out."""
    entry = hlo[hlo.index("\nENTRY ") :].partition("\n}")[0]
    opcodes = re.findall(r"^ +(?:ROOT )?%?\S+ = (?:\([^=]*?\)|\S+) ([a-z][\w-]*)\(", entry, re.MULTILINE)
    return dict(Counter(opcode for opcode in opcodes if opcode not in NOT_KERNELS))


class Buckets(Jit):
    """XLA on padded inputs; padding and cutting are part of a call, as a server has to do them."""

    def prepare(self) -> dict[str, float]:
        """Nothing is compiled before the first call. Raises Refused when padding would change the results."""
        if not self.folder.padded:
            raise Refused("padding would change the results")
        self._spare: dict[tuple[int, ...], Any] = {}
        return super().prepare()

    def place(self, index: int) -> Any:
        """NumPy inputs, as they come from a client; the sizes to pad them to; the sizes of the results."""
        symbols, rounded = self.folder.symbols(index), rounded_up(self.folder, index)
        inputs = load(self.folder.inputs(index))
        kept = [tuple(size(dim, symbols) for dim in dims) for dims in self.folder.results]
        padded = [tuple(size(dim, rounded) for dim in dims) for dims in self.folder.specs]
        return inputs, padded, kept

    def call(self, inputs: Any) -> Any:
        """Pads, runs, cuts."""
        given, padded, kept = inputs
        result = self.jitted(self.params, *like(given, list(map(_pad, leaves(given), padded))))
        cut = [np.asarray(leaf)[tuple(map(slice, shape))] for leaf, shape in zip(leaves(result), kept, strict=True)]
        return like(result, cut)

    def kernels(self, index: int) -> Kernels:
        """Those of jax.jit."""
        return {}


def rounded_up(folder: Folder, index: int) -> dict[str, int]:
    """The symbols' values at a shape; those that may be padded are powers of two, or the largest the program takes."""
    rounded = folder.symbols(index)
    for (name, value), limit in zip(folder.symbols(index).items(), folder.limits, strict=True):
        if name in folder.padded:
            rounded[name] = max(value, min(_power(value), limit))
    return rounded


def _pad(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if array.shape == shape:
        return array
    padded = np.zeros(shape, array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    return padded


def _power(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()
