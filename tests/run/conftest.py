# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of this folder run in poisoned memory: an element that nobody writes, or that is not theirs, shows."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def poisoned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arenas, results and copies of arguments are 0xFF at first and end at an inaccessible page.

    Tests that look at the bytes a call takes, or at what is kept or copied, compile with `guard_pages=False`.
    """
    monkeypatch.setenv("SHLO_DISC_GUARD_PAGES", "1")
