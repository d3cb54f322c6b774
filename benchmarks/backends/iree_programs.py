# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE on the StableHLO of jax.export, and on PyTorch's exported program: one module for all shapes."""

from __future__ import annotations

import importlib
import time
from typing import Any

import iree.compiler
import iree.runtime
import jax
import numpy as np

from benchmarks.backends import Backend
from benchmarks.data import leaves, load
from benchmarks.works import find


class Iree(Backend):
    """The LLVM CPU backend on the machine's own instructions."""

    def load(self) -> None:
        """Keeps the weights as NumPy arrays."""
        self.params = leaves(load(self.folder.weights))

    def prepare(self) -> dict[str, float]:
        """Exports with JAX and compiles. IREE raises on modules that it cannot compile."""
        start = time.perf_counter()
        exported = find(self.folder.work, self.folder.small).export()
        used = exported.module_kept_var_idx
        seconds = {"export": time.perf_counter() - start}
        start = time.perf_counter()
        self._compile(exported.mlir_module(), "stablehlo")
        self.used = set(used)
        self.weights = [self._to_device(leaf) for number, leaf in enumerate(self.params) if number in self.used]
        return seconds | {"compile": time.perf_counter() - start}

    def _compile(self, program: str, dialect: str) -> None:
        """Compiles for the instructions of the host, and loads the module."""
        binary = iree.compiler.compile_str(
            program,
            input_type=dialect,
            target_backends=["llvm-cpu"],
            extra_args=["--iree-llvmcpu-target-cpu=host"],
        )
        config = iree.runtime.Config("local-task")
        module = iree.runtime.load_vm_module(iree.runtime.VmModule.copy_buffer(config.vm_instance, binary), config)
        self.main = module["main"]
        self.device = config.device

    def _to_device(self, array: np.ndarray) -> Any:
        return iree.runtime.asdevicearray(self.device, array)

    def place(self, index: int) -> Any:
        """Arrays on IREE's device."""
        numbered = enumerate(leaves(load(self.folder.inputs(index))), start=len(self.params))
        return [self._to_device(leaf) for number, leaf in numbered if number in self.used]

    def call(self, inputs: Any) -> Any:
        """Runs the module's main function."""
        return self.main(*self.weights, *inputs)

    def compiles(self) -> int:
        """The one module."""
        return 1

    def arrays(self, result: Any) -> Any:
        """Copies from the device."""
        return [np.asarray(leaf) for leaf in jax.tree.leaves(result)]


class IreeTorch(Iree):
    """The PyTorch module, exported for all shapes and imported by torch-mlir; weights are constants."""

    def prepare(self) -> dict[str, float]:
        """Exports, imports and compiles."""
        import torch

        from benchmarks.backends.ours_torch import dynamic_shapes, example
        from benchmarks.backends.pytorch import Eager

        eager = Eager(self.folder)
        eager.load()
        eager.prepare()
        fx = importlib.import_module("torch_mlir.fx")
        start = time.perf_counter()
        inputs = example(self.folder)
        exported = torch.export.export(eager.model, inputs, dynamic_shapes=dynamic_shapes(self.folder, inputs))
        program = str(fx.export_and_import(exported))
        seconds = {"export": time.perf_counter() - start}
        start = time.perf_counter()
        self._compile(program, "torch")
        self.weights = []
        return seconds | {"compile": time.perf_counter() - start}

    def place(self, index: int) -> Any:
        """Arrays on IREE's device."""
        return [self._to_device(leaf) for leaf in leaves(load(self.folder.inputs(index)))]
