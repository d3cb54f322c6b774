# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of `torch.compile` in a line of the log: the function that they come from, and the sizes of arguments."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import torch

from shlo_disc.runtime.described import count_text, some_text
from shlo_disc.shape_dialect.dtypes import BY_NUMPY

_FRAME = re.compile(r'File "([^"]*)", line (\d+), in (\w+)')


def function_of(module: torch.fx.GraphModule) -> str:
    """The function whose graph Dynamo has made, with the line of the graph's first op: `f (model.py:12)`.

    It is the class of a layer where all ops are of PyTorch's own layers, which have no line of the user's.
    """
    owner = ""
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if found := _FRAME.search(node.stack_trace or ""):
            return f"{found[3]} ({found[1]}:{found[2]})"
        kinds = [kind for _, kind in (node.meta.get("nn_module_stack") or {}).values()]
        owner = owner or (getattr(kinds[0], "__name__", str(kinds[0])).rpartition(".")[2] if kinds else "")
    return owner or "a function"


def arguments_of(graph: torch.fx.GraphModule, weights: Collection[int]) -> str:
    """The arguments of a graph with their symbolic sizes: `f32[s77, 16], 4 weights`. weights: positions of weights."""
    values = [node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder"]
    tensors = [(place, v) for place, v in enumerate(values) if isinstance(v, torch.Tensor)]
    shown = [_type_text(v) for place, v in tensors if place not in weights and not isinstance(v, torch.nn.Parameter)]
    bound = len(tensors) - len(shown)
    parts = [some_text(shown)] if shown else []
    return ", ".join([*parts, *([count_text(bound, "weight")] if bound else [])]) or "no tensors"


def _type_text(tensor: Any) -> str:
    kind = str(tensor.dtype).removeprefix("torch.")
    name = BY_NUMPY[kind].name if kind in BY_NUMPY else kind
    return f"{name}[{', '.join(map(str, tensor.shape))}]"
