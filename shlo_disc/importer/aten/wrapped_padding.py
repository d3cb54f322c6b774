# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Circular paddings that PyTorch does not define: those that add on one side of an axis and remove on the other.

PyTorch writes them into uninitialized memory piece by piece. A piece that is longer than what is left of the axis is
copied from memory that is not yet written, or from what the same copy has written, which a graph of values has not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from shlo_disc.errors import Unsupported, UnsupportedError

from .lines import line_of

_PADS = (torch.ops.aten.pad.default, torch._C._nn.pad, torch.nn.functional.pad)


def check_circular_paddings(module: GraphModule) -> None:
    """Check the paddings of a graph before PyTorch takes them apart. Raises UnsupportedError."""
    graphs = [m for m in module.modules() if isinstance(m, GraphModule)]
    found = [n for part in graphs for n in part.graph.nodes if n.op == "call_function" and _is_undefined(n)]
    if found:
        reason = "a circular padding that adds elements on one side of an axis and removes others is undefined"
        advice = 'remove them by a slice first: F.pad(x[..., 1:], (0, 2), mode="circular") instead of (-1, 2)'
        raise UnsupportedError([Unsupported("pad", "", line_of(n), reason, advice) for n in found])


def _is_undefined(node: Node) -> bool:
    if node.target not in _PADS:
        return False
    given = dict(zip(("input", "pad", "mode"), node.args, strict=False)) | node.kwargs
    return given.get("mode") == "circular" and _has_both(given["pad"])


def _has_both(pads: Any) -> bool:
    """Tells whether an axis has a padding below 0 and one above."""
    numbers = [_number(n) for n in pads]
    return any(min(pair) < 0 < max(pair) for pair in zip(numbers[::2], numbers[1::2], strict=True))


def _number(n: Any) -> int:
    """A padding; of one that PyTorch has made a symbol that in the example, the sign of which it guards on."""
    if isinstance(n, Node):
        n = n.meta.get("example_value", n.meta.get("val"))
    return int(n.node.hint or 0) if isinstance(n, torch.SymInt) else int(n)


__all__ = ["check_circular_paddings"]
