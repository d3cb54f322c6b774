# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far results may be from the exact value, in units in the last place of the exact value (its f32 or f64 grid)."""

from __future__ import annotations

ULP: dict[tuple[str, str], float] = {}
