# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch: eager, compiled by inductor for dynamic shapes, and compiled with frozen weights."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
import torch._inductor.config
import torch._inductor.metrics
from torch._dynamo.utils import counters
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.backends import THREADS, Backend, Kernels, Refused
from benchmarks.data import load
from benchmarks.torch_models import find, gradients, module


class Eager(Backend):
    """The modules of `benchmarks.torch_models`, op by op."""

    def load(self) -> None:
        """Makes the module of the weights."""
        torch.set_num_threads(THREADS)
        weights = module(load(self.folder.weights, torch.from_numpy), self.folder.configuration)
        self.model = find(self.folder.torch_model).Model(weights, self.folder.configuration).eval()
        if not self.folder.trains:
            self.model.requires_grad_(False)

    def prepare(self) -> dict[str, float]:
        """There is nothing to prepare."""
        self.run = self.model
        torch._C._set_grad_enabled(self.folder.trains or self.folder.pullback > 0)
        return {}

    def place(self, index: int) -> Any:
        """Tensors on the memory of NumPy arrays."""
        inputs = load(self.folder.inputs(index), torch.from_numpy)
        for array in inputs[: self.folder.pullback]:
            array.requires_grad_()
        return inputs

    def call(self, inputs: Any) -> Any:
        """Runs the module; and back, if gradients are wanted."""
        if self.folder.pullback:
            *inputs, cotangent = inputs
            return torch.autograd.grad(self.run(*inputs), inputs[: self.folder.pullback], cotangent)
        if not self.folder.trains:
            return self.run(*inputs)
        loss = self.run(*inputs)
        return loss, torch.autograd.grad(loss, tuple(self.model.parameters()))

    def arrays(self, result: Any) -> Any:
        """Tensors as NumPy arrays; gradients in the form of JAX's weights."""
        if self.folder.trains:
            loss, derivatives = result
            names = [name for name, _ in self.model.named_parameters()]
            result = loss.detach(), gradients(load(self.folder.weights), dict(zip(names, derivatives, strict=True)))
        return _arrays(result)

    def kernels(self, index: int) -> Kernels:
        """The ops that are dispatched and are no views."""
        inputs = self.place(index)
        with _Counter() as counter:
            self.call(inputs)
        return dict(counter.ops)


class Compiled(Eager):
    """Inductor's kernels for symbolic sizes."""

    freezing = False
    backend = "inductor"

    def prepare(self) -> dict[str, float]:
        """Nothing is compiled before the first call."""
        if self.freezing and self.folder.trains:
            raise Refused("weights change from step to step")
        super().prepare()
        torch._inductor.config.freezing = self.freezing
        torch._dynamo.config.recompile_limit = 64
        torch._inductor.metrics.reset()
        self.run = torch.compile(self.model, backend=self.backend, dynamic=True)
        return {}

    def kernels(self, index: int) -> Kernels:
        """The number of kernels that inductor generated, over all the variants that the shapes led to."""
        return {"generated, all variants": torch._inductor.metrics.generated_kernel_count}

    def compiles(self) -> int:
        """Dynamo's graphs; one with gradients is one graph."""
        return counters["stats"]["unique_graphs"]


class Traced(Compiled):
    """The graphs of Dynamo and AOTAutograd, run op by op: the part of a cold start that every backend has."""

    backend = "aot_eager"

    def kernels(self, index: int) -> Kernels:
        """Not counted."""
        return {}


class Frozen(Compiled):
    """Inductor with weights as constants, packed by oneDNN."""

    freezing = True


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.ops: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not func.is_view:
            self.ops[str(func.overloadpacket).removeprefix("aten.")] += 1
        return func(*args, **(kwargs or {}))


def _arrays(result: Any) -> Any:
    if isinstance(result, dict):
        return {key: _arrays(value) for key, value in result.items()}
    if isinstance(result, list | tuple):
        return type(result)(_arrays(value) for value in result)
    return result.numpy()
