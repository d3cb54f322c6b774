# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shlo_disc: weights passed at each call, weights bound, and compiled for one shape alone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import shlo_disc
from benchmarks.contestants import Kernels, Refused
from benchmarks.contestants.jax_arrays import JaxContestant


class Passed(JaxContestant):
    """One executable for all shapes; weights are arguments."""

    def prepare(self) -> dict[str, float]:
        """Traces and exports with JAX, then compiles."""
        start = time.perf_counter()
        exported = self.work.export()
        seconds = {"export": time.perf_counter() - start}
        start = time.perf_counter()
        self.executable = shlo_disc.compile(exported)
        stages = self.executable.timings
        return seconds | stages | {"load": max(0.0, time.perf_counter() - start - sum(stages.values()))}

    def call(self, inputs: Any) -> Any:
        """Runs the executable."""
        return self.executable(self.params, *inputs)

    def kernels(self, index: int) -> Kernels:
        """Every launch, by the kind of its fusion."""
        return dict(Counter(kernel.kind for kernel in self.executable.kernels))


class Bound(Passed):
    """One executable for all shapes; weights are constants of it."""

    def prepare(self) -> dict[str, float]:
        """Compiles, and binds the weights."""
        seconds = super().prepare()
        bind: Callable[..., Any] | None = getattr(self.executable, "bind", None)
        if bind is None or self.folder.trains:
            raise Refused("Executable.bind is absent" if bind is None else "weights change from step to step")
        start = time.perf_counter()
        self.bound = bind(self.params)
        return seconds | {"bind": time.perf_counter() - start}

    def call(self, inputs: Any) -> Any:
        """Runs the bound executable."""
        return self.bound(*inputs)


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
            self.executables[index] = shlo_disc.compile(self.work.export(dims=dims))
        self.executable = self.executables[index]
        return super().place(index)
