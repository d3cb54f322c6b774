# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of training by torch.compile, whose gradients are compared with those of PyTorch in double precision."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from examples.torch import bert, conformer
from shlo_disc.torch import backend, graph_count

Make = Callable[[], tuple[torch.nn.Module, Callable[[Any], torch.optim.Optimizer], Callable[..., Any]]]


def _bert() -> Any:
    return (
        bert.Bert(),
        lambda parameters: torch.optim.Adam(parameters, 1e-3),
        lambda n: bert.arguments(2 + n % 3, 5 + 9 * n),
    )


def _conformer() -> Any:
    return (
        conformer.Conformer(),
        lambda parameters: torch.optim.SGD(parameters, 1e-2),
        lambda n: conformer.arguments(2 + n % 2, 40 + 13 * n),
    )


STEPS: dict[str, Make] = {"bert with Adam": _bert, "conformer with SGD": _conformer}


def gradients(run: Any, module: torch.nn.Module, values: Any) -> dict[str, torch.Tensor]:
    """The gradients of a loss, by the parameters' names."""
    module.zero_grad()
    found = run(*values)
    F.mse_loss(found, torch.ones_like(found)).backward()
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def show(name: str) -> bool:
    """Five steps; whether gradients agree, compiled once forwards and once backwards."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, optimizer, arguments = STEPS[name]()
    module.train()
    count, worst, start = graph_count(), 0.0, time.perf_counter()
    run = torch.compile(module, backend=backend, dynamic=True)
    steps = optimizer(module.parameters())
    for number in range(5):
        values = arguments(number)
        exact = copy.deepcopy(module).double()
        mine = gradients(run, module, values)
        wide = [v.double() if v.is_floating_point() else v for v in values]
        other = gradients(exact, exact, wide)
        largest = max(float(g.abs().max()) for g in other.values())
        worst = max(worst, max(float((mine[n] - g).abs().max()) for n, g in other.items()) / largest)
        steps.step()
    seconds = time.perf_counter() - start
    print(f"{name:27} 5 steps, {graph_count() - count} compiles, {worst:.1e} apart, {seconds:.1f} s", flush=True)
    return worst <= 1e-4 and graph_count() - count == 2
