# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of fixed seeds at twelve sizes: with the results of XLA, and by few programs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.sizes.run import examine

QUICK = (0, 3)
TOO_MANY = (12,)
"""Seeds with one program too many: right at all sizes, but the first ones say too little of a remainder."""


def _marked(seed: int) -> Any:
    marks = [] if seed in QUICK else [pytest.mark.slow]
    if seed in TOO_MANY:
        marks.append(pytest.mark.xfail(strict=True, raises=AssertionError, reason="more symbolic programs than two"))
    return pytest.param(seed, marks=marks)


@pytest.mark.parametrize("seed", map(_marked, range(40)))
def test_chain(seed: int) -> None:
    """Compare with the results of XLA, and count programs."""
    chain = examine(seed)
    assert not chain.wrong and chain.is_general, chain
