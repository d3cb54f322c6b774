# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Families: for each pattern of the compiler, programs that it matches, or nearly."""

from __future__ import annotations

from tests.fuzz.near.families import (
    attention,
    attention_layouts,
    attention_reads,
    elementwise,
    loops,
    movement,
    neighbours,
    product_places,
    products,
    reductions,
    tables,
    updates,
    windows,
)
from tests.fuzz.near.families.family import FAMILIES, Family

__all__ = [
    "FAMILIES", "Family", "attention", "attention_layouts", "attention_reads", "elementwise", "loops", "movement",
    "neighbours", "product_places", "products", "reductions", "tables", "updates", "windows",
]  # fmt: skip
