# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lines of the user's program that nodes of a graph come from."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch.fx import Node

from shlo_disc.shape_dialect.mlir import ir

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_OWN = tuple(f"{folder}/" for folder in (Path(torch.__file__).parent, Path(__file__).parents[2]))
_OF_PYTORCH = re.compile(r"[/\\](?:(?:site|dist)-packages[/\\]torch|torch[/\\](?:nn|fx|export|_\w+))[/\\]")
"""Files of PyTorch, also of the one that has exported a program elsewhere."""


def line_of(node: Node) -> str:
    """`file.py:12` of the line of the user's program that a node comes from, the innermost that is none of PyTorch's.

    What PyTorch has put into a graph is of the line of what reads it, or of what it is computed from.
    """
    frames = _FRAME.findall(_trace_near(node))
    own = [f for f in frames if not f[0].startswith(_OWN) and not _OF_PYTORCH.search(f[0])] or frames
    return f"{own[-1][0]}:{own[-1][1]}" if own else "unknown"


def _trace_near(node: Node) -> str:
    """The stack trace of a node, or of the nearest behind it that has one, or of the nearest before it; "" for none."""
    for is_behind in (True, False):
        seen, left = {node}, [node]
        for near in left:
            if near.stack_trace:
                return near.stack_trace
            others = [n for n in (near.users if is_behind else near.all_input_nodes) if n not in seen]
            seen.update(others)
            left += others
    return ""


def location(node: Node) -> ir.Location:
    """The place of a node in the program, with the node's name."""
    file, _, line = line_of(node).rpartition(":")
    place = ir.Location.file(file, int(line), 0) if file else ir.Location.unknown()
    return ir.Location.name(node.name, place)
