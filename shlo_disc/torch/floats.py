# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers among a graph's inputs that Dynamo has fixed while it traced, such as the epsilon of a normalisation.

Dynamo makes an input of each float of a module, and fixes it by a guard where an op takes nothing but a number. A pass
of AOTAutograd's finds such inputs when it has traced the graph, and has Dynamo start again without them. To take them
out before saves the second trace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch._dynamo.symbolic_convert import TensorifyState
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Node


@contextlib.contextmanager
def without_fixed_floats(module: GraphModule, inputs: Sequence[Any]) -> Iterator[list[Any]]:
    """The inputs that are left of a graph of Dynamo's, from which fixed floats are gone: their numbers stand in it.

    Dynamo calls what a backend returns with the inputs that its graph has then.
    """
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    fixed = {n: number for n in placeholders if (number := _fixed(n)) is not None}
    names = {n.meta["example_value"].item_memo.node._expr.name for n in fixed} - TensorifyState.force_specializations
    left = [value for node, value in zip(placeholders, inputs, strict=True) if node not in fixed]
    for node, number in fixed.items():
        for reader in list(node.users):
            reader.replace_all_uses_with(number)
            module.graph.erase_node(reader)
        module.graph.erase_node(node)
    if fixed:
        module.recompile()
    TensorifyState.force_specializations |= names
    try:
        yield left
    finally:
        TensorifyState.force_specializations -= names


def _fixed(node: Node) -> float | None:
    """The number that an input is for as long as the graph's guards hold, where it is read as a number only, and not
    for a loop or branch."""
    read = getattr(node.meta.get("example_value"), "item_memo", None)
    if not isinstance(read, torch.SymFloat) or not hasattr(read.node._expr, "name") or not read.node.expr.is_number:
        return None
    users = [user for reader in node.users for user in reader.users]
    is_plain = all(reader.target == "item" for reader in node.users)
    is_plain = is_plain and not any(isinstance(user.target, HigherOrderOperator) for user in users)
    return float(read.node.expr) if is_plain else None
