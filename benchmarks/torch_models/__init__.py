# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example models as plain PyTorch modules with the same weights; one file a model, of the example's name.

Each has a class `Model(weights, config)`, where `weights` is the `module` of the example's weights.
"""

from __future__ import annotations

import importlib
import keyword
from typing import Any

import torch
from torch import nn


def find(name: str) -> Any:
    """The file of the model called `name`: its `Model`, and what some need before an export.

    `prepare_script` is there where ONNX needs the older exporter, `prepare_export` where torch.export needs other code.
    """
    return importlib.import_module(f"benchmarks.torch_models.{name}")


def module(tree: Any, config: Any) -> Any:
    """The weights of an example as modules of the same names: `weights.layers[0].query` is a linear layer.

    A dict with a kernel becomes a Linear, one with moments a BatchNorm2d, one with a scale and a bias a LayerNorm, an
    array of four axes is laid out for conv2d; the rest are parameters.
    """
    if isinstance(tree, list):
        return nn.ModuleList([module(value, config) for value in tree])
    if "kernel" in tree:
        return _linear(tree)
    if "mean" in tree or set(tree) == {"scale", "bias"}:
        return _norm(tree, config.epsilon)
    parent = nn.Module()
    for key, value in tree.items():
        name = attribute(key)
        if isinstance(value, list) and isinstance(value[0], torch.Tensor):
            setattr(parent, name, nn.ParameterList([_parameter(item) for item in value]))
        else:
            setattr(parent, name, _parameter(value) if isinstance(value, torch.Tensor) else module(value, config))
    return parent


def gradients(tree: Any, derivatives: dict[str, torch.Tensor], prefix: str = "weights") -> Any:
    """The derivatives of a `module`'s parameters in the form of the weights that it was made of."""
    if isinstance(tree, list):
        return [gradients(value, derivatives, f"{prefix}.{index}") for index, value in enumerate(tree)]
    result = {}
    for name, value in tree.items():
        if isinstance(value, dict | list):
            result[name] = gradients(value, derivatives, f"{prefix}.{name}")
        elif name == "kernel":
            result[name] = derivatives[f"{prefix}.weight"].T
        else:
            result[name] = derivatives[f"{prefix}.{'weight' if name == 'scale' else attribute(name)}"]
    return result


def attribute(name: str) -> str:
    """The name of a weight's attribute: `class` is `class_`, as PyTorch's tracers write programs with the names."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _parameter(array: torch.Tensor) -> nn.Parameter:
    if array.ndim == 4:
        array = array.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return nn.Parameter(array)


def _linear(tree: Any) -> nn.Linear:
    inputs, outputs = tree["kernel"].shape
    layer = nn.Linear(inputs, outputs, bias="bias" in tree, device="meta")
    layer.weight = nn.Parameter(tree["kernel"].T.contiguous())
    if "bias" in tree:
        layer.bias = nn.Parameter(tree["bias"])
    return layer


def _norm(tree: Any, epsilon: float) -> nn.Module:
    width = tree["scale"].shape[0]
    norm: Any
    if "mean" in tree:
        norm = nn.BatchNorm2d(width, eps=epsilon)
        norm.running_mean, norm.running_var = tree["mean"], tree["variance"]
    else:
        norm = nn.LayerNorm(width, eps=epsilon)
    norm.weight, norm.bias = nn.Parameter(tree["scale"]), nn.Parameter(tree["bias"])
    return norm
