# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In which order of axes weights are kept that a program is bound to: that in which its calls read them."""

from __future__ import annotations

import torch
from torch.fx import Node

_CONVOLUTION = torch.ops.aten.convolution.default


def stored_order(node: Node) -> tuple[int, ...] | None:
    """Window, features of the operand, features of the result, for the kernel of convolutions; None for PyTorch's own
    order, where anything else reads it too."""
    users = list(node.users)
    if not users or not all(_is_kernel(node, user) for user in users):
        return None
    value = users[0].args[1].meta["val"] if isinstance(users[0].args[1], Node) else None
    rank = value.dim() if isinstance(value, torch.Tensor) else 0
    return (*range(2, rank), 1, 0) if rank > 2 else None


def _is_kernel(node: Node, user: Node) -> bool:
    """Tells whether an op is a convolution, not transposed, that has a value as its kernel and nowhere else."""
    if user.target is not _CONVOLUTION or user.args[6]:
        return False
    return user.args[1] is node and node not in (user.args[0], user.args[2])
