# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backends that are measured on a GPU: the interface of one, and all of them by name."""

from __future__ import annotations

import importlib
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.gpu.bundle import Bundle, Program


class Refused(Exception):
    """This backend cannot do this program; the message says why."""


class Backend(ABC):
    """One way to run programs on the first GPU, in a process of its own. Whatever its methods raise is a refusal."""

    def __init__(self, bundle: Bundle):
        self.bundle = bundle

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The versions of what it consists of. Raises where there is no GPU for it."""

    @abstractmethod
    def load(self, program: Program, weights: Sequence[np.ndarray]) -> None:
        """Makes a program ready to be called, with weights on the GPU."""

    @abstractmethod
    def place(self, inputs: Sequence[np.ndarray]) -> Any:
        """The other arguments on the GPU."""

    @abstractmethod
    def call(self, inputs: Any) -> Any:
        """Gives the program's work to the GPU; the result is there later."""

    @abstractmethod
    def wait(self, result: Any) -> None:
        """Waits for a result, and so for what was given before it."""

    @abstractmethod
    def arrays(self, result: Any) -> list[np.ndarray]:
        """The results as flat NumPy arrays, in JAX's order."""


@dataclass(frozen=True)
class Entry:
    """A backend's place in the tables: its class, the packages that it imports, and its environment."""

    title: str
    module: str
    kind: str
    needs: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)

    def create(self, bundle: Bundle) -> Backend:
        """The backend. Raises Refused where a package is missing."""
        absent = next((name for name in self.needs if importlib.util.find_spec(name) is None), "")
        if absent:
            raise Refused(f"{absent} is not installed")
        module = importlib.import_module(f"benchmarks.gpu.backends.{self.module}")
        make: Callable[[Bundle], Backend] = getattr(module, self.kind)
        return make(bundle)


OURS = "ours"
# JAX takes most of a GPU's memory otherwise, which the others need.
_JAX = {"JAX_PLATFORMS": "cuda,cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "3"}

BACKENDS: dict[str, Entry] = {
    OURS: Entry("shlo_disc", "ours", "Ours", ()),
    "jit": Entry("jax.jit", "xla", "Jit", ("jax",), _JAX),
    "torch_eager": Entry("torch eager", "pytorch", "Eager", ("torch",)),
    "torch_compile": Entry("torch.compile dynamic", "pytorch", "Compiled", ("torch",)),
    "triton": Entry("Triton", "triton_kernels", "Triton", ("torch", "triton")),
}
"""Every backend by name, in the order of the tables."""
