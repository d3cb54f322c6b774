# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of fixed seeds at twelve sizes: with the results of XLA, and by few programs."""

from __future__ import annotations

import pytest

from tests.fuzz.sizes.run import examine

QUICK = (0, 3)
SEEDS = (*range(40), 44, 193)


@pytest.mark.parametrize("seed", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SEEDS])
def test_chain(seed: int) -> None:
    """Compare with the results of XLA, and count programs."""
    chain = examine(seed)
    assert not chain.wrong and chain.is_general, chain
