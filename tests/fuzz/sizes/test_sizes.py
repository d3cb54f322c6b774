# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of fixed seeds at twelve sizes: with the results of XLA, and by few programs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fuzz.sizes.chains import chain_of
from tests.pjrt.streams import Stream

MOST_PROGRAMS = 3
QUICK = (0, 3)


@pytest.mark.parametrize("seed", [s if s in QUICK else pytest.param(s, marks=pytest.mark.slow) for s in range(40)])
def test_chain(seed: int) -> None:
    """A program for each structure that JAX writes, and at most two more: what the first sizes suggested was wrong."""
    text, function, sizes = chain_of(seed)
    stream = Stream(function)
    for size in sizes:
        stream.check(np.random.default_rng(size).standard_normal(size, dtype=np.float32))
    assert not stream.reasons, (text, stream.reasons)
    structures = stream.how.count("compiled")
    assert stream.how.count("compiled_symbolic") <= (MOST_PROGRAMS - 1) * structures, (text, stream.how)
