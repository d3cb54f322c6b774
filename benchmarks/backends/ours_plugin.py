# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shlo_disc as the plugin of an unchanged jax.jit: arrays are on its platform."""

from __future__ import annotations

import importlib
from typing import Any

import jax

from benchmarks.backends import Kernels
from benchmarks.backends.jax_jit import Jit
from benchmarks.backends.ours import Passed
from benchmarks.data import Folder, load
from shlo_disc.runtime.native_module import plugin_programs


class Plugin(Jit):
    """A function's first shape is compiled as it is, its second for all shapes."""

    def __init__(self, folder: Folder):
        super().__init__(folder)
        jax.config.update("jax_platforms", "shlo_disc,cpu")
        for module in Passed.compiler:
            importlib.import_module(module)
        jax.devices()

    def load(self) -> None:
        """Puts the weights on the device."""
        self.params = jax.block_until_ready(jax.device_put(load(self.folder.weights)))

    def place(self, index: int) -> Any:
        """Puts the inputs on the device, by no program: `jnp.asarray` would have one compiled."""
        return jax.block_until_ready(jax.device_put(load(self.folder.inputs(index))))

    def compiles(self) -> int:
        """Programs that the compiler was given, for one shape or for all."""
        counts = plugin_programs().counts
        return counts["compiled"] + counts["compiled_symbolic"]

    def kernels(self, index: int) -> Kernels:
        """Not counted."""
        return {}
