# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch on GPUs: eager, and compiled by inductor for dynamic shapes. The modules are `benchmarks.torch_models`."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from benchmarks.data import leaves
from benchmarks.gpu.backends import Backend, Refused
from benchmarks.gpu.bundle import Bundle, Program, Timing, tree_of
from benchmarks.torch_models import find, gradients, module


class Eager(Backend):
    """Op by op."""

    device = "cuda"

    def __init__(self, bundle: Bundle):
        super().__init__(bundle)
        if self.device == "cuda" and not torch.cuda.is_available():
            raise Refused("PyTorch sees no GPU")

    def facts(self) -> dict[str, Any]:
        """PyTorch's version, and the device as it sees it."""
        name = torch.cuda.get_device_name() if self.device == "cuda" else self.device
        return {"torch": torch.__version__, "device": name}

    def load(self, program: Program, weights: Sequence[np.ndarray]) -> None:
        """Makes the module of the weights."""
        timing = program.timing
        if timing is None or not timing.torch_model:
            raise Refused("there is no module for PyTorch")
        self.timing: Timing = timing
        config = SimpleNamespace(**timing.config)
        self.weights = _arguments(timing, iter(self._put(weights)), first=True)
        self.model = find(timing.torch_model).Model(module(self.weights, config), config).eval().to(self.device)
        if not timing.trains:
            self.model.requires_grad_(False)
        torch._C._set_grad_enabled(timing.trains or timing.pullback > 0)
        self.run = self.model

    def place(self, inputs: Sequence[np.ndarray]) -> Any:
        """Tensors."""
        found = _arguments(self.timing, iter(self._put(inputs)), first=False)
        for tensor in found[: self.timing.pullback]:
            tensor.requires_grad_()
        return found

    def _put(self, arrays: Sequence[np.ndarray]) -> list[torch.Tensor]:
        return [torch.from_numpy(np.array(array)).to(self.device) for array in arrays]

    def call(self, inputs: Any) -> Any:
        """Runs the module; and back, if gradients are wanted."""
        if self.timing.pullback:
            *inputs, cotangent = inputs
            return torch.autograd.grad(self.run(*inputs), inputs[: self.timing.pullback], cotangent)
        if not self.timing.trains:
            return self.run(*inputs)
        loss = self.run(*inputs)
        return loss, torch.autograd.grad(loss, tuple(self.model.parameters()))

    def wait(self, result: Any) -> None:
        """Waits for all work."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def arrays(self, result: Any) -> list[np.ndarray]:
        """Copies; gradients in the form of the weights."""
        if self.timing.trains:
            loss, derivatives = result
            names = [name for name, _ in self.model.named_parameters()]
            result = loss, gradients(self.weights, dict(zip(names, derivatives, strict=True)))
        return [leaf.detach().cpu().numpy() for leaf in leaves(result)]


class Compiled(Eager):
    """Inductor's kernels for symbolic sizes."""

    def load(self, program: Program, weights: Sequence[np.ndarray]) -> None:
        """Nothing is compiled before the first call."""
        super().load(program, weights)
        torch._dynamo.reset()
        torch._dynamo.config.recompile_limit = 64
        self.run = torch.compile(self.model, dynamic=True)


def _arguments(timing: Timing, values: Any, first: bool) -> Any:
    """The first argument, which is the weights, or those after it, with `values` as leaves."""
    positional, _ = timing.tree["tuple"]
    children = positional["tuple"]
    return tree_of(children[0], values) if first else [tree_of(child, values) for child in children[1:]]
