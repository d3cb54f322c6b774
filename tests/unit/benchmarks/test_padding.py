# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models on ragged and on padded batches have the same numbers, which `benchmarks.padding` checks before it times."""

from __future__ import annotations

import argparse

import numpy as np
import pytest

from benchmarks.padding import MODELS, lengths, measure, report


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_lengths(factor: int) -> None:
    """The largest is `factor` times the mean, but for rounding."""
    found = lengths(np.random.default_rng(0), 64, 100, factor)
    assert found.max() == 100 * factor and found.min() >= 1
    assert found.mean() == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.slow
def test_both_sides_have_the_same_numbers(name: str) -> None:
    found = list(measure(name, argparse.Namespace(factors=(1, 3), rounds=1, threads=2)))
    assert [(row["model"], row["factor"]) for row in found] == [(name, 1), (name, 3)]
    assert report(found).count("\n") == 3


def test_a_table_shows_what_is_lost() -> None:
    found = [{"model": "a", "factor": 1, "shlo_disc": 2e-3, "jax.jit": 1e-3}]
    assert report(found).splitlines() == [
        "| padded | a, shlo_disc | a, jax.jit |",
        "|--|--|--|",
        "| 1 | **2.0** | 1.0 |",
    ]
