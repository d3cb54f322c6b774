# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common parts of backends that take jax.Arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.backends import Backend
from benchmarks.data import Folder, load
from benchmarks.works import find


class JaxBackend(Backend):
    """Weights and inputs are jax.Arrays, or NumPy arrays where the work says so."""

    def __init__(self, folder: Folder):
        super().__init__(folder)
        self.work = find(folder.work, folder.small)

    def load(self) -> None:
        """Puts the weights on the device."""
        self.params = jax.block_until_ready(load(self.folder.weights, jnp.asarray))

    def place(self, index: int) -> Any:
        """Puts the inputs on the device."""
        inputs = load(self.folder.inputs(index))
        return inputs if self.folder.host_inputs else jax.block_until_ready(jax.tree.map(jnp.asarray, inputs))

    def synchronise(self, result: Any) -> None:
        """Waits for jax.Arrays."""
        jax.block_until_ready(result)

    def arrays(self, result: Any) -> Any:
        """The device is the host."""
        return jax.tree.map(np.asarray, result)
