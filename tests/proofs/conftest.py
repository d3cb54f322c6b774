# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Proofs that do not depend on those before them."""

from __future__ import annotations

import pytest
import z3


@pytest.fixture(autouse=True)
def fresh_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets z3 begin anew: it orders terms by when each was first made, and so takes other steps after other tests."""
    monkeypatch.setattr(z3.z3, "_main_ctx", None)
