# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The garbage collector's thresholds in a compile, and after it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest

import shlo_disc
from shlo_disc.driver.garbage import ALLOCATIONS, fewer_collections
from shlo_disc.lowering.progress import watching


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_thresholds_come_back_with_the_last_compile() -> None:
    gc.set_threshold(700, 10, 10)
    with fewer_collections():
        assert gc.get_threshold() == (ALLOCATIONS, 10, 10)
        with fewer_collections():
            assert gc.get_threshold() == (ALLOCATIONS, 10, 10)
        assert gc.get_threshold() == (ALLOCATIONS, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("given", [(0, 10, 10), (10 * ALLOCATIONS, 5, 5)])
def test_rarer_collections_stay_as_they_are(given: tuple[int, int, int]) -> None:
    gc.set_threshold(*given)
    with fewer_collections():
        assert gc.get_threshold() == given
    assert gc.get_threshold() == given


def test_thresholds_that_are_set_inside_stay() -> None:
    with fewer_collections():
        gc.set_threshold(1234, 9, 9)
    assert gc.get_threshold() == (1234, 9, 9)


def test_they_come_back_after_an_error() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ZeroDivisionError), fewer_collections():
        raise ZeroDivisionError
    assert gc.get_threshold() == (700, 10, 10)


def test_all_stages_of_a_compile() -> None:
    gc.set_threshold(700, 10, 10)
    seen: dict[str, int] = {}

    def watch(stage: str, seconds: float | None) -> None:
        seen[stage] = gc.get_threshold()[0]

    with watching(watch):
        shlo_disc.compile(
            lambda x: jnp.sin(x) + 1, args=(jax.ShapeDtypeStruct((3,), "float32"),),
            options=shlo_disc.Options(cache_dir=""),
        )  # fmt: skip
    assert len(seen) == 8 and set(seen.values()) == {ALLOCATIONS}
    assert gc.get_threshold() == (700, 10, 10)
