# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shlo_disc on PyTorch's modules: exported once for all shapes, and as the backend of torch.compile."""

from __future__ import annotations

import importlib
import time
from collections import Counter
from typing import Any

import torch
import torch._dynamo.config
import torch.export

import shlo_disc.torch
from benchmarks.backends import Kernels, Refused
from benchmarks.backends.pytorch import Eager
from benchmarks.data import Folder, leaves, like, load, size
from benchmarks.torch_models import find

COMPILER = (
    "shlo_disc.driver.compiler",
    "shlo_disc.importer.import_program",
    "shlo_disc.importer.aten.decompositions",
    "shlo_disc.importer.aten.graphs",
)
"""Modules to import with the other libraries: by itself each is imported when the first program is compiled."""


class OursTorch(Eager):
    """The modules of `benchmarks.torch_models`, compiled without a cache on disk."""

    def __init__(self, folder: Folder):
        super().__init__(folder)
        for name in COMPILER:
            importlib.import_module(name)

    def prepare(self) -> dict[str, float]:
        """Has loops over rows written as scans, whose length may be a symbol."""
        source = find(self.folder.torch_model)
        if hasattr(source, "prepare_export"):
            source.prepare_export()
        return super().prepare()


class Exported(OursTorch):
    """One executable for all shapes of an ExportedProgram; it binds the weights at the first call."""

    def prepare(self) -> dict[str, float]:
        """Exports and compiles. Raises Refused for gradients, which do not flow through exported programs."""
        if self.folder.trains or self.folder.pullback:
            raise Refused("no gradients flow through an exported program")
        super().prepare()
        start = time.perf_counter()
        inputs = example(self.folder)
        program = shlo_disc.torch.export(self.model, inputs, dynamic_shapes=dynamic_shapes(self.folder, inputs))
        seconds = {"export": time.perf_counter() - start}
        start = time.perf_counter()
        self.run = shlo_disc.compile(program, options=shlo_disc.Options(cache_dir=""))
        return seconds | {"compile": time.perf_counter() - start}

    def kernels(self, index: int) -> Kernels:
        """Every launch, by the kind of its fusion."""
        return dict(Counter(kernel.kind for kernel in self.run.executable.kernels))

    def compiles(self) -> int:
        """Those of the executable."""
        return self.run.compile_count


class TorchBackend(OursTorch):
    """Dynamo's graphs, and their gradients where they are wanted. Recurrent modules are scans in them."""

    freezing = False

    def prepare(self) -> dict[str, float]:
        """Nothing is compiled before the first call. Raises Refused for weights that change where they are frozen."""
        if self.freezing and self.folder.trains:
            raise Refused("weights change from step to step")
        super().prepare()
        torch._dynamo.config.recompile_limit = 64
        self.scans = shlo_disc.torch.as_scans()
        self.scans.__enter__()  # for as long as the process lives
        options = {"cache_dir": "", "freezing": self.freezing}
        self.run = torch.compile(self.model, backend=shlo_disc.torch.backend, dynamic=True, options=options)
        return {}

    def kernels(self, index: int) -> Kernels:
        """Not known: a call may run several graphs."""
        return {}

    def compiles(self) -> int:
        """Graphs, those of the gradients counted by themselves."""
        return shlo_disc.torch.graph_count()


class Frozen(TorchBackend):
    """The same, bound to the weights."""

    freezing = True


def example(folder: Folder) -> Any:
    """Inputs to export with, whose elements are never read: sizes are the stream's largest, at least 2, and differ."""
    sizes: dict[str, int] = {}
    for symbol, of_stream in zip(folder.dims.split(", "), zip(*folder.shapes, strict=True), strict=True):
        largest = max(2, *of_stream)
        sizes[symbol] = next(value for value in range(largest, 1, -1) if value not in sizes.values())
    inputs = load(folder.inputs(0), torch.from_numpy)
    shapes = [[size(dim, sizes) for dim in dims] for dims in folder.specs]
    return like(inputs, [torch.empty(s, dtype=t.dtype) for s, t in zip(shapes, leaves(inputs), strict=True)])


def dynamic_shapes(folder: Folder, inputs: Any) -> Any:
    """The axes that have no fixed size, in the form of the inputs."""
    axes = [[axis for axis, dim in enumerate(dims) if not dim.isdecimal()] for dims in folder.specs]
    return like(inputs, [dict.fromkeys(of_leaf, torch.export.Dim.DYNAMIC) for of_leaf in axes])
