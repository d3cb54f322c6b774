# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backends that are measured: the interface of one, and all of them by name.

A backend lives in a process of its own, which imports only what it needs.
"""

from __future__ import annotations

import importlib
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.data import Folder

THREADS = 2
"""Number of threads of every backend."""

Kernels = dict[str, int]
"""Number of kernels of each kind that a call launches."""


class Refused(Exception):
    """This backend cannot do this work; the message says why."""


class Backend(ABC):
    """One way to run a work. Whatever one of the methods raises is recorded as a refusal, with its first line."""

    def __init__(self, folder: Folder):
        self.folder = folder

    @abstractmethod
    def load(self) -> None:
        """Reads the weights into arrays of the backend's own; not timed."""

    @abstractmethod
    def prepare(self) -> dict[str, float]:
        """Exports and compiles as far as that precedes the first call; the seconds of each step."""

    @abstractmethod
    def place(self, index: int) -> Any:
        """The inputs at a shape as arrays of the backend's own; not timed."""

    @abstractmethod
    def call(self, inputs: Any) -> Any:
        """Runs the program; the result may arrive later."""

    def synchronise(self, result: Any) -> None:  # noqa: B027 - most results are there when `call` returns
        """Waits for a result."""

    @abstractmethod
    def arrays(self, result: Any) -> Any:
        """The result as NumPy arrays with leaves in JAX's order; not timed."""

    def kernels(self, index: int) -> Kernels:
        """The kernels of a call at a shape; empty where that is not known."""
        return {}

    def compiles(self) -> int:
        """The number of programs compiled up to now; 0 for none, and where that is not known."""
        return 0


@dataclass(frozen=True)
class Entry:
    """A backend's place in the tables.

    module, kind: where its class is, and which of the class's kinds it is.
    needs: the packages it imports.
    freezes: its compiler sees the weights as constants.
    ours: it is not a peer.
    onnx: it reads the ONNX file, which another process exports first.
    shapes: how many of the work's shapes it runs; 0 for all of them.
    cold: only its cold start is measured.
    """

    title: str
    module: str
    kind: str
    needs: tuple[str, ...]
    freezes: bool = False
    ours: bool = False
    onnx: bool = False
    shapes: int = 0
    cold: bool = False

    def missing(self) -> str:
        """The first package that is not installed, or nothing."""
        return next((name for name in self.needs if not _installed(name)), "")

    def create(self, folder: Folder) -> Backend:
        """The backend for one work."""
        create: Callable[[Folder], Backend] = getattr(
            importlib.import_module(f"benchmarks.backends.{self.module}"), self.kind
        )
        return create(folder)


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


ONNX_EXPORT = ("torch", "onnx", "onnxscript")
IREE = ("iree.compiler", "iree.runtime")

BACKENDS: dict[str, Entry] = {
    "ours": Entry("shlo_disc", "ours", "Passed", ("shlo_disc",), ours=True),
    "ours_bound": Entry("shlo_disc, bound", "ours", "Bound", ("shlo_disc",), freezes=True, ours=True),
    "ours_static": Entry("shlo_disc, one shape", "ours", "Static", ("shlo_disc",), ours=True, shapes=3),
    "ours_cached": Entry("shlo_disc, cached", "ours", "Cached", ("shlo_disc",), ours=True, cold=True),
    "ours_cached_bound": Entry(
        "shlo_disc, cached, bound", "ours", "CachedBound", ("shlo_disc",), freezes=True, ours=True, cold=True
    ),
    "ours_exported": Entry(
        "shlo_disc, ExportedProgram", "ours_torch", "Exported", ("shlo_disc", "torch"), freezes=True, ours=True
    ),
    "ours_backend": Entry("shlo_disc, torch.compile", "ours_torch", "TorchBackend", ("shlo_disc", "torch"), ours=True),
    "ours_backend_frozen": Entry(
        "shlo_disc, torch.compile frozen", "ours_torch", "Frozen", ("shlo_disc", "torch"), freezes=True, ours=True
    ),
    "ours_plugin": Entry("shlo_disc, plugin", "ours_plugin", "Plugin", ("shlo_disc",), ours=True),
    "jit": Entry("jax.jit", "jax_jit", "Jit", ("jax",)),
    "jit_buckets": Entry("jax.jit, powers of two", "jax_jit", "Buckets", ("jax",)),
    "torch_eager": Entry("torch eager", "pytorch", "Eager", ("torch",)),
    "torch_compile": Entry("torch.compile dynamic", "pytorch", "Compiled", ("torch",)),
    "torch_traced": Entry("torch.compile, traced alone", "pytorch", "Traced", ("torch",), cold=True),
    "torch_frozen": Entry("torch.compile frozen", "pytorch", "Frozen", ("torch",), freezes=True),
    "onnxruntime": Entry("ONNX Runtime", "onnx_models", "OnnxRuntime", ("onnxruntime", *ONNX_EXPORT), True, onnx=True),
    "openvino": Entry("OpenVINO", "onnx_models", "OpenVino", ("openvino", *ONNX_EXPORT), True, onnx=True),
    "iree": Entry("IREE", "iree_programs", "Iree", IREE),
    "iree_torch": Entry("IREE, PyTorch", "iree_programs", "IreeTorch", (*IREE, "torch", "torch_mlir"), freezes=True),
}
"""Every backend by name, in the order of the tables."""
