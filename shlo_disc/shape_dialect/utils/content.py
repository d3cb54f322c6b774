# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The content of a fusion as a digest: the same in every program whose fusion does the same, whatever its names are."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping

from shlo_disc.shape_dialect.mlir import func
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.shape_dialect.utils.structure import SizeNames, Structure

DIGITS = 32
"""Hexadecimal digits of a digest."""


def content_of(fusion: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> str:
    """The digest of a fusion, and of the functions that it calls, without names of functions, values and sizes."""
    text = _text_of(fusion, functions)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _text_of(fusion: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> str:
    """The text of a fusion; of one that is made of calls, that of what it calls."""
    calls = [op for op in fusion.entry_block.operations if op.operation.name == "func.call"]
    if calls:
        return "; ".join(_text_of(functions[callee_of(call)], functions) for call in calls)
    return _text(Structure(fusion, SizeNames()).key)


def _text(key: Hashable) -> str:
    return f"({', '.join(map(_text, key))})" if isinstance(key, tuple) else str(key)


__all__ = ["content_of"]
