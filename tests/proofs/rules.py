# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The semantics of all ops that proofs are about; any other is elementwise, and uninterpreted where z3 has it not."""

from __future__ import annotations

from tests.proofs.moves import MOVES
from tests.proofs.norms import NORMS
from tests.proofs.semantics import Rule, compare, constant, convert, get_dimension_size, shape
from tests.proofs.sums import SUMS

RULES: dict[str, Rule] = {
    **MOVES,
    **NORMS,
    **SUMS,
    "compare": compare,
    "constant": constant,
    "convert": convert,
    "disc.shape": shape,
    "get_dimension_size": get_dimension_size,
}
"""Rules by the names of the ops."""
