# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions of the true elements of a long mask on GPUs, split over blocks: sizes, masks, and the order of blocks."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shlo_disc.numpy as data_sizes
from shlo_disc.driver.compiler import Compilation
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.decisions import OUTCOMES
from tests.ir.gpu_cases import launches_of
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_mutations import without
from tests.ir.test_gpu_epilogues import device_module, lowered

PART = GPU_POLICY.part_columns


def positions(x: Any) -> Any:
    return data_sizes.flatnonzero(x)


@functools.cache
def compiled() -> Compilation:
    return lowered(positions, ("n", "bool"))


def check(mask: np.ndarray, change: Callable[[str], str] = str, blocks: int | None = None, times: int = 1) -> None:
    """Launch the kernel, whose text is changed, on a mask, in as many blocks as have work or fewer."""
    c, wanted = compiled(), np.flatnonzero(mask)
    (launch,) = [one for one in launches_of(c) if one.kind == "nonzero"]
    names = {s for size in launch.sizes for s in size.symbols()}
    dims = {name: len(mask) if name == "n" else len(wanted) for name in names}
    sizes = [size.evaluate(dims) for size in launch.sizes]
    parts = launch.blocks.evaluate(dims)
    assert parts == max(1, len(mask) // PART)
    before, kernel, after = re.split(r"(gpu\.func @nonzero.*?gpu\.return)", str(c.snapshots["host"]), flags=re.DOTALL)
    with c.context, ir.Location.unknown():
        emulator = Emulator(device_module(ir.Module.parse(before + change(kernel) + after)))
        for _ in range(times):
            found = np.full(len(wanted), -1, np.int64)
            memory = np.full(parts, -1, np.int64)
            emulator.launch(launch.name, blocks or parts, [mask.astype(np.int8), found, memory], sizes)
            np.testing.assert_array_equal(found, wanted)
            assert not any(v.data.any() for v in emulator.variables.values()), "something is left for the next launch"


def mask_of(length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(length) < 0.3


@pytest.mark.parametrize("length", [1, PART, 2 * PART - 1, 2 * PART, 2 * PART + 1, 3 * PART + 7])
def test_lengths_around_each_number_of_parts(length: int) -> None:
    check(mask_of(length))


@pytest.mark.parametrize("name", ["none", "all", "first part", "last element"])
def test_masks(name: str) -> None:
    mask = np.full(3 * PART + 5, name == "all")
    mask[:PART] |= name == "first part"
    mask[-1] |= name == "last element"
    check(mask)


@pytest.mark.parametrize("blocks", [None, 1, 2])
def test_a_kernel_can_be_launched_again(blocks: int | None) -> None:
    check(mask_of(3 * PART), blocks=blocks, times=3)


COUNTS = {r"llvm\.fence": 4, r"gpu\.barrier": 7}


@pytest.mark.parametrize("fence", [0, 1])
def test_no_fence_can_be_left_out(fence: int) -> None:
    with pytest.raises(AssertionError, match="two blocks touch one element, and one writes it"):
        check(mask_of(3 * PART), without(r"llvm\.fence", fence, COUNTS))


@pytest.mark.parametrize("barrier", range(COUNTS[r"gpu\.barrier"]))
def test_no_barrier_can_be_left_out(barrier: int) -> None:
    with pytest.raises(AssertionError, match="two (threads|blocks) touch one element"):
        check(
            mask_of(3 * PART),
            without(r"gpu\.barrier", barrier, COUNTS),
            blocks=1 if barrier in (0, 6) else None,
        )


def test_a_short_mask_is_not_split() -> None:
    before = OUTCOMES["mask-over-blocks.may-be-long", False]
    c = lowered(positions, (str(2 * PART - 1), "bool"))
    assert OUTCOMES["mask-over-blocks.may-be-long", False] > before
    assert 'nonzero", {partials' not in str(c.snapshots["fuse"])
