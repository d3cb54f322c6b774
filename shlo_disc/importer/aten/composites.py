# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of other libraries that are written in PyTorch's ops, such as those of torchao, and of PyTorch's quantisation.

A composite op says itself that it is others' work. Those of `quantized_decomposed` do not, as exported programs are to
keep them; some read a number from a tensor, which cannot be traced, and have a function here that leaves it a tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._C import DispatchKey

from . import table

Rules = dict[Any, Callable[..., Any]]
"""The functions that compute ops by others."""


def composites(module: torch.fx.GraphModule) -> Rules:
    """The rules for ops in a module's graphs, those of its branches and loops among them."""
    graphs = [part.graph for part in module.modules() if isinstance(part, torch.fx.GraphModule)]
    targets = {node.target for graph in graphs for node in graph.nodes}
    found = ((op, _rule(op)) for op in _of_libraries(targets))
    return {op: rule for op, rule in found if rule is not None}


def _of_libraries(targets: Iterable[Any]) -> list[torch._ops.OpOverload]:
    """Ops of libraries other than PyTorch's own; every overload of those that Dynamo leaves to be chosen."""
    found = []
    for target in targets:
        packet = target if isinstance(target, torch._ops.OpOverloadPacket) else None
        found += [target] if packet is None else [getattr(packet, name) for name in packet.overloads()]
    return [op for op in found if isinstance(op, torch._ops.OpOverload) and not table.name_of(op)]


def _rule(op: torch._ops.OpOverload) -> Callable[..., Any] | None:
    """None for an op that is no composite: `torch.library.custom_op` may look at the elements."""
    if (own := _WITH_TENSORS.get(str(op))) is not None:
        return own
    keys = [DispatchKey.CompositeImplicitAutograd]
    if op.namespace == "quantized_decomposed":
        keys.append(DispatchKey.CompositeExplicitAutograd)
    key = next((key for key in keys if op.has_kernel_for_dispatch_key(key)), None)
    return None if key is None else functools.partial(op._op_dk, key)


def _quantize(x: Any, scale: Any, zero: Any, least: Any, most: Any, dtype: torch.dtype) -> Any:
    """Integers of a tensor, by a scale and a zero point that are tensors of one element.

    The reciprocal is rounded to f32 once, as where PyTorch divides numbers of Python.
    """
    factor = (1.0 / scale.reshape(()).double()).float()
    return torch.clamp(torch.round(x.float() * factor) + zero.reshape(()), least, most).to(dtype)


def _dequantize(
    x: Any, scale: Any, zero: Any, least: Any, most: Any, dtype: torch.dtype, *, out_dtype: torch.dtype | None = None
) -> Any:
    """Floats of integers, rounded as for a scale that is a number of Python."""
    wanted = out_dtype or torch.float32
    return ((x.to(wanted) - zero.reshape(())).float() * scale.reshape(()).float()).to(wanted)


def _chosen(x: Any, least: int, most: int, eps: float, dtype: torch.dtype, is_symmetric: bool = False) -> Any:
    """The scale and the zero point by which integers from `least` to `most` stand for all elements."""
    low, high = torch.aminmax(x)
    low, high = low.clamp(max=0), high.clamp(min=0)
    steps, smallest = float(most - least), torch.full((1,), eps, dtype=torch.float32)
    if is_symmetric:
        scale = torch.maximum(torch.maximum(-low, high) / (steps / 2), smallest)
        zero = torch.full((1,), 128 if dtype == torch.uint8 else 0)
    else:
        scale = torch.maximum((high - low) / steps, smallest)
        zero = torch.clamp(least - torch.round(low / scale).to(torch.int32), least, most)
    return scale.double(), zero.long()


_WITH_TENSORS: dict[str, Callable[..., Any]] = {
    "quantized_decomposed.choose_qparams.tensor": _chosen,
    "quantized_decomposed.choose_qparams_symmetric.tensor": functools.partial(_chosen, is_symmetric=True),
    "quantized_decomposed.quantize_per_tensor.tensor": _quantize,
    "quantized_decomposed.quantize_per_tensor.tensor2": _quantize,
    "quantized_decomposed.dequantize_per_tensor.tensor": _dequantize,
    "quantized_decomposed.dequantize_per_tensor.tensor2": _dequantize,
}

__all__ = ["Rules", "composites"]
