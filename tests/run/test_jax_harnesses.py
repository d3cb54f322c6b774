# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX's own harnesses: a sample in every run, all of them with `-m slow`. None may crash, or be wrong."""

from __future__ import annotations

import pytest

from tests.run.jax_harnesses import GOOD, examine_all, sample, table

pytest.importorskip("absl", reason="JAX's test utilities import absl-py")

EVERY = 16
"""One group in so many gives a harness to the sample."""


def check(positions: list[int], batched: bool, jobs: int) -> None:
    outcomes = list(examine_all(positions, batched, jobs))
    print(table(outcomes))
    bad = [o for o in outcomes if o.status not in GOOD]
    assert not bad, "\n".join(f"{o.name}: {o.status}: {o.reason}" for o in bad)
    assert sum(o.status == "ok" for o in outcomes) > len(outcomes) // 2


@pytest.mark.parametrize("batched", [False, True], ids=["static", "batched"])
def test_sample(batched: bool) -> None:
    check(sample(10_000)[2 + batched :: EVERY], batched, jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize("batched", [False, True], ids=["static", "batched"])
def test_all(batched: bool) -> None:
    check(sample(1), batched, jobs=2)
