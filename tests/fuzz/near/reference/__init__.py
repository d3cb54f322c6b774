# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An interpreter of jaxprs in float64 that also bounds how far from its results a right answer may be.

Every value has an *error*: how much a correct implementation in the program's own types may be off, by rounding and by
what its operands were off. So programs need not be well conditioned for a comparison to be tight, and where a result is
not determined (an argmax of two numbers that rounding may exchange) the error is infinite, and nothing is compared.
"""

from __future__ import annotations

from tests.fuzz.near.reference import contractions, elementwise, indexing, movement, ordering, reductions, windows
from tests.fuzz.near.reference.interpreter import Unpredictable, interpret
from tests.fuzz.near.reference.numbers import Number

__all__ = [
    "Number", "Unpredictable", "contractions", "elementwise", "indexing", "interpret", "movement", "ordering",
    "reductions", "windows",
]  # fmt: skip
