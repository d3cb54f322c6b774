# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views that a graph of AOTAutograd's returns: of its arguments, its constants and what it computes.

AOTAutograd takes from a returned view only its sizes, strides and offset, and makes the view anew from the argument, or
from the base that the graph returns besides. These have to be those of PyTorch's own views, at the sizes of the call.
So a graph is split in two: a program, which computes tensors that are views of no other, and view ops and arithmetic of
sizes, which PyTorch runs behind it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node

_READS = frozenset(
    {torch.ops.aten.sym_size.int, torch.ops.aten.sym_stride.int, torch.ops.aten.sym_numel.default,
     torch.ops.aten.sym_storage_offset.default}
)  # fmt: skip
"""Ops that read a number off a tensor's type."""

_UNTRACKED = frozenset({torch.ops.aten._unsafe_view.default})
"""Views that autograd does not take for ones."""


class Split(NamedTuple):
    """A graph in two parts.

    program: takes the graph's placeholders, returns what is to be computed; None where nothing is. views: takes them
    and the program's results, returns a list of what the graph returns; None where these are the program's results as
    they are.
    """

    program: GraphModule | None
    views: Callable[..., Sequence[Any]] | None


def split_views(module: GraphModule) -> Split:
    """Part the views that a graph returns from what it computes."""
    returned = list(module.graph.output_node().args[0])
    wanted = _Needed(v for v in returned if isinstance(v, Node))
    if wanted.results == returned:
        return Split(module, None)
    return Split(_program(module, wanted.results), _views(module, wanted, returned))


class _Needed:
    """The nodes that the returned values need.

    results: nodes that the program computes. replayed: view ops, arithmetic of sizes, and constants of the module.
    """

    def __init__(self, returned: Any):
        self.results: list[Node] = []
        self.replayed: set[Node] = set()
        seen: set[Node] = set()
        left = list(returned)[::-1]
        while left:
            node = left.pop()
            if node in seen or node.op == "placeholder":
                continue
            seen.add(node)
            if not is_replayed(node):
                self.results.append(node)
                continue
            self.replayed.add(node)
            left += node.all_input_nodes


def is_replayed(node: Node) -> bool:
    """Tells whether PyTorch runs a node behind the program: it computes no element of a tensor."""
    if node.op == "get_attr":
        return isinstance(node.meta.get("val"), torch.Tensor)
    if node.op != "call_function":
        return False
    if isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | bool | int | float):
        return _is_arithmetic(node)
    if node.target is operator.getitem:
        return isinstance(node.args[0], Node) and is_replayed(node.args[0])
    return isinstance(node.target, torch._ops.OpOverload) and (node.target.is_view or node.target in _UNTRACKED)


def _is_arithmetic(node: Node) -> bool:
    """Tells whether a number follows from the placeholders without an element of a tensor."""
    if isinstance(node.target, torch._ops.OpOverload) and node.target not in _READS:
        return False
    return all(n.op == "placeholder" or (n.op == "call_function" and _is_number(n)) for n in node.all_input_nodes)


def _is_number(node: Node) -> bool:
    return not isinstance(node.meta.get("val"), torch.Tensor) and is_replayed(node)


def _program(module: GraphModule, results: Sequence[Node]) -> GraphModule | None:
    """The graph that returns `results`, and has no more ops than these need; None for one without ops."""
    graph, copies = Graph(), dict[Node, Node]()
    graph.graph_copy(module.graph, copies)
    graph.output([copies[node] for node in results])
    graph.eliminate_dead_code()
    has_ops = any(node.op not in ("placeholder", "output") for node in graph.nodes)
    return GraphModule(module, graph) if has_ops else None


def _views(module: GraphModule, wanted: _Needed, returned: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    """The function from placeholders and results to what the graph returns."""
    graph, copies = Graph(), dict[Node, Node]()
    nodes = list(module.graph.nodes)
    for node in [*(n for n in nodes if n.op == "placeholder"), *wanted.results]:
        copies[node] = graph.placeholder(node.name)
    for node in nodes:
        if node in wanted.replayed:
            copies[node] = graph.node_copy(node, lambda n: copies[n])
    graph.output([copies[v] if isinstance(v, Node) else v for v in returned])
    return GraphModule(module, graph).forward
