# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which ops PyTorch takes apart before they are translated: those that have no translation of their own.

An op that is translated as it is gives a smaller graph, and PyTorch's tracing with symbolic sizes is what most of the
time from a module to code goes into.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch._decomp import core_aten_decompositions, decomposition_table

from . import table


def _encoder_layer(
    x: Any,
    width: int,
    heads: int,
    weights: Any,
    biases: Any,
    projection: Any,
    projection_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    epsilon: float,
    scale: Any,
    shift: Any,
    second_scale: Any,
    second_shift: Any,
    up: Any,
    up_bias: Any,
    down: Any,
    down_bias: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """What `torch.nn.TransformerEncoderLayer` calls in evaluation, as its own ops. A mask says what is left out."""

    def norm(value: Any, weight: Any, bias: Any) -> Any:
        return F.layer_norm(value, (width,), weight, bias, epsilon)

    def attention(value: Any) -> Any:
        parts = F.linear(value, weights, biases).unflatten(-1, (3, heads, width // heads))
        query, key, content = (part.transpose(1, 2) for part in parts.unbind(2))
        hidden = None if mask is None else mask.to(torch.bool)
        bias = None if hidden is None else torch.zeros_like(hidden, dtype=value.dtype).masked_fill(hidden, -torch.inf)
        if bias is not None and mask_type == 1:  # one row of keys for each sample
            bias = bias.reshape(bias.shape[0], 1, 1, bias.shape[1])
        found = F.scaled_dot_product_attention(query, key, content, attn_mask=bias)
        return F.linear(found.transpose(1, 2).flatten(2), projection, projection_bias)

    def network(value: Any) -> Any:
        wide = F.linear(value, up, up_bias)
        return F.linear(F.gelu(wide) if use_gelu else F.relu(wide), down, down_bias)

    if norm_first:
        x = x + attention(norm(x, scale, shift))
        return x + network(norm(x, second_scale, second_shift))
    x = norm(x + attention(x), scale, shift)
    return norm(x + network(x), second_scale, second_shift)


OWN = {torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer}
"""Ops that PyTorch itself does not take apart."""


@functools.cache
def for_exporting() -> dict[Any, Callable[..., Any]]:
    """For `ExportedProgram.run_decompositions`: of all that PyTorch can take apart, what has no translation."""
    known = table.rows()
    every = {**decomposition_table, **dict(core_aten_decompositions().items()), **OWN}
    return {op: rule for op, rule in every.items() if _is_taken_apart(op, known)}


def _is_taken_apart(op: Any, known: dict[str, table.Row]) -> bool:
    if not isinstance(op, torch._ops.OpOverload):
        return False
    name = table.name_of(op)
    return bool(name) and name not in known and name not in _WHOLE


_WHOLE = frozenset(
    {"bucketize.Scalar", "bucketize.Tensor", "complex.default", "diagonal_scatter.default", "polar.default"}
)
"""What PyTorch takes apart into ops in place, or by numbers that it reads, which cannot be exported."""
