# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pieces that programs are made of: importing this fills the table of pieces."""

from __future__ import annotations

from tests.fuzz.near.pieces import contractions, control, elementwise, indexing, movement, reductions, windows

__all__ = ["contractions", "control", "elementwise", "indexing", "movement", "reductions", "windows"]
