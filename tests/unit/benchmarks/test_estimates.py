# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rank correlations, and the table of estimates of kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.estimates import Sample, measure, rank_correlation, report


def test_order_alone_counts() -> None:
    assert rank_correlation([1, 2, 3, 4], [1, 10, 100, 1000]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3, 4], [9, 7, 5, 3]) == pytest.approx(-1)
    assert math.isnan(rank_correlation([1, 1], [1, 2])) and math.isnan(rank_correlation([1], [1]))


def test_equal_values_share_a_rank() -> None:
    """Against the product-moment correlation of ranks that are written down."""
    wanted = np.corrcoef([0, 1.5, 1.5, 3], [1, 0, 2, 3])[0, 1]
    assert rank_correlation([5, 6, 6, 9], [2, 1, 3, 4]) == pytest.approx(wanted)


def test_a_small_work() -> None:
    samples = list(measure("softmax", threads=2, small=True))
    assert samples and all(s.kind == "row_reduce" and s.measured > 0 for s in samples)
    assert [line.split()[0] for line in report([*samples, Sample("loop", 1, 2)]).splitlines()[2:]] == [
        "all",
        "row_reduce",
        "loop",
    ]
