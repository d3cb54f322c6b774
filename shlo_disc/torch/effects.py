# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of matrices in Dynamo's graphs, which PyTorch keeps in order by tokens."""

from __future__ import annotations

from typing import Any

import torch


def without_checks(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph without checks of whether a matrix has an inverse or a factor, which are checks of element values.

    The tokens that go through these are the constant None, which PyTorch passes for them.
    """
    checks = [node for node in graph.graph.nodes if _is_check(node)]
    for node in checks:
        token = node.args[0]
        if token.op == "placeholder":
            token.meta["val"] = None
        for user in list(node.users):
            user.replace_all_uses_with(token)
            graph.graph.erase_node(user)
        graph.graph.erase_node(node)
    if checks:
        graph.recompile()
    return graph


def _is_check(node: Any) -> bool:
    is_effect = node.op == "call_function" and str(node.target) == "with_effects"
    return is_effect and str(node.args[1]) == "aten._linalg_check_errors.default"


__all__ = ["without_checks"]
