# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shlo_disc: weights passed at each call, weights bound, and compiled for one shape alone."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import shlo_disc
from benchmarks.backends import Kernels, Refused
from benchmarks.backends.jax_arrays import JaxBackend
from benchmarks.data import Folder, load


class Passed(JaxBackend):
    """One executable for all shapes; weights are arguments."""

    compiler: tuple[str, ...] = (
        "shlo_disc.driver.compiler",
        "shlo_disc.importer.import_program",
        "shlo_disc.importer.jax_signature",
    )
    """Modules to import with the other libraries: by itself each is imported when the first program is compiled."""

    def __init__(self, folder: Folder):
        super().__init__(folder)
        for module in self.compiler:
            importlib.import_module(module)

    def prepare(self) -> dict[str, float]:
        """Traces and exports with JAX, then compiles."""
        start = time.perf_counter()
        exported = self.work.export()
        seconds = {"export": time.perf_counter() - start}
        start = time.perf_counter()
        self.executable = shlo_disc.compile(exported, options=self.options())
        stages = self.executable.timings
        return seconds | stages | {"load": max(0.0, time.perf_counter() - start - sum(stages.values()))}

    def options(self) -> shlo_disc.Options:
        """Compiles without a cache."""
        return shlo_disc.Options(cache_dir="")

    def call(self, inputs: Any) -> Any:
        """Runs the executable."""
        return self.executable(self.params, *inputs)

    def kernels(self, index: int) -> Kernels:
        """Every launch, by the kind of its fusion."""
        return dict(Counter(kernel.kind for kernel in self.executable.kernels))

    def compiles(self) -> int:
        """Those of the executable."""
        return self.executable.compile_count


class Bound(Passed):
    """One executable for all shapes as a server has it: weights are constants of it, all else NumPy arrays."""

    def options(self) -> shlo_disc.Options:
        """Results are NumPy arrays, too."""
        return replace(super().options(), output="numpy")

    def prepare(self) -> dict[str, float]:
        """Compiles, and binds the weights, which are given away."""
        if self.folder.trains:
            raise Refused("weights change from step to step")
        seconds = super().prepare()
        start = time.perf_counter()
        self.bound = self.executable.bind(self.params, donate=True)
        self.params = None
        return seconds | {"bind": time.perf_counter() - start}

    def place(self, index: int) -> Any:
        """NumPy arrays."""
        return load(self.folder.inputs(index))

    def call(self, inputs: Any) -> Any:
        """Runs the bound executable."""
        return self.bound(*inputs)


class FromCache(Passed):
    """The executable that an earlier process has left in the compile cache."""

    compiler = ()

    def load(self) -> None:
        """Fills the cache in another process, as what compiling leaves in memory is not this backend's."""
        super().load()
        self.cache = self.folder.path / f"scratch-{type(self).__name__}" / "compiled"
        program = "import sys, benchmarks.backends.ours as ours; ours.fill(*sys.argv[1:])"
        arguments = [type(self).__name__, str(self.folder.path), str(self.cache)]
        subprocess.run([sys.executable, "-c", program, *arguments], check=True)

    def options(self) -> shlo_disc.Options:
        """Compiles by way of the cache."""
        return replace(super().options(), cache_dir=self.cache)

    def kernels(self, index: int) -> Kernels:
        """Not asked for, as that would compile."""
        return {}


class Cached(FromCache):
    """From the cache, weights passed."""


class CachedBound(FromCache, Bound):
    """From the cache, weights bound: a server that starts again."""


def fill(backend: str, folder: str, cache: str) -> None:
    """Compiles a folder's work into a cache with a backend's options."""
    owner = {"Cached": Cached, "CachedBound": CachedBound}[backend](Folder.read(Path(folder)))
    owner.cache = Path(cache)
    shlo_disc.compile(owner.work.export(), options=owner.options())


class Static(Passed):
    """An executable for each shape: what fixed sizes would give."""

    def prepare(self) -> dict[str, float]:
        """Nothing is known before a shape is."""
        self.executables: dict[int, Any] = {}
        return {}

    def place(self, index: int) -> Any:
        """Makes the shape's executable the one that is called; compiles when there is none."""
        if index not in self.executables:
            dims = ", ".join(map(str, self.folder.shapes[index]))
            self.executables[index] = shlo_disc.compile(self.work.export(dims=dims), options=self.options())
        self.executable = self.executables[index]
        return super().place(index)

    def compiles(self) -> int:
        """Those of the executables."""
        return sum(executable.compile_count for executable in self.executables.values())
