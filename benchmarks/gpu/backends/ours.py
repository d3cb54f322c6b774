# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shlo_disc: the artifact of a program, by the runtime alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.gpu.backends import Backend
from benchmarks.gpu.bundle import Bundle, Program
from shlo_disc.runtime import Client, LoadedExecutable, TreeSpec
from shlo_disc.runtime.tree import LEAF, call_tree


class Ours(Backend):
    """One executable for all shapes; arguments and results are Buffers."""

    def __init__(self, bundle: Bundle, client: Client | None = None):
        """`client`: of another GPU than the first."""
        super().__init__(bundle)
        self.client = client or Client.of_gpu(0)

    @property
    def gpu(self) -> Any:
        """The native core's GPU."""
        device: Any = self.client.native_device
        return device.gpu

    def facts(self) -> dict[str, Any]:
        """The facts about the GPU."""
        return dict(self.gpu.facts)

    def executable(self, name: str) -> LoadedExecutable:
        """A program that takes and gives flat arrays."""
        artifact = self.bundle.artifact(name)
        results = TreeSpec("tuple", (LEAF,) * len(artifact.header["results"]))
        return self.client.load(artifact, in_tree=call_tree(len(artifact.header["arguments"])), out_tree=results)

    def load(self, program: Program, weights: Sequence[np.ndarray]) -> None:
        """Loads the artifact; the driver assembles its kernels."""
        self._program = self.executable(program.name)
        self._weights = self.place(weights)

    def place(self, inputs: Sequence[np.ndarray]) -> Any:
        """Buffers."""
        return [self.client.buffer_from_host(array) for array in inputs]

    def call(self, inputs: Any) -> Any:
        """Runs the program."""
        return self._program.execute([*self._weights, *inputs], output="buffer")

    def wait(self, result: Any) -> None:
        """All work is in one stream."""
        self.gpu.wait()

    def arrays(self, result: Any) -> list[np.ndarray]:
        """Copies of the Buffers."""
        return [np.asarray(buffer.to_host()) for buffer in result]

    @contextmanager
    def copy(self, size: int) -> Iterator[Callable[[], None]]:
        """Makes a function that copies `size` bytes from one place on the GPU to another, as fast as the GPU can."""
        gpu, blocks = self.gpu, []
        try:
            for _ in range(2):
                blocks.append(gpu.allocate(max(size, 1)))
            yield lambda: gpu.copy(*blocks, size)
        finally:
            for block in blocks:
                gpu.release(block)
