# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""jax.jit on GPUs, of programs by jax.export: XLA compiles each shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.export
import numpy as np

from benchmarks.gpu.backends import Backend, Refused
from benchmarks.gpu.bundle import Bundle, Program


class Jit(Backend):
    """XLA, one program for each shape."""

    platform = "gpu"

    def __init__(self, bundle: Bundle):
        super().__init__(bundle)
        self.device = jax.devices(self.platform)[0]

    def facts(self) -> dict[str, Any]:
        """JAX's version, and the device as it sees it."""
        return {"jax": jax.__version__, "device": self.device.device_kind}

    def load(self, program: Program, weights: Sequence[np.ndarray]) -> None:
        """Reads the program; nothing is compiled before a shape is known."""
        file = self.bundle.file(program.name, "jax")
        if not file.exists():
            raise Refused("the bundle does not have the program for XLA")
        self._exported = jax.export.deserialize(bytearray(file.read_bytes()))
        self._run = jax.jit(self._exported.call)
        self._weights = self._put(weights)

    def place(self, inputs: Sequence[np.ndarray]) -> Any:
        """jax.Arrays in the program's trees, weights included."""
        return jax.tree.unflatten(self._exported.in_tree, [*self._weights, *self._put(inputs)])

    def _put(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        return jax.block_until_ready([jax.device_put(array, self.device) for array in arrays])

    def call(self, inputs: Any) -> Any:
        """Runs the program of the shape."""
        args, kwargs = inputs
        return self._run(*args, **kwargs)

    def wait(self, result: Any) -> None:
        """Waits for the arrays."""
        jax.block_until_ready(result)

    def arrays(self, result: Any) -> list[np.ndarray]:
        """Copies."""
        return [np.asarray(leaf) for leaf in jax.tree.leaves(result)]
