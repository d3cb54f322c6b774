# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first elements of few long sorted lines, found in parts by several blocks, in the emulator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shlo_disc.lowering_gpu import device_module
from shlo_disc.lowering_gpu.backend import GpuBackend
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.decisions import OUTCOMES
from tests.ir.gpu_cases import Run, assert_close, launches_of
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_mutations import expect_refused, without
from tests.ir.test_gpu_epilogues import Texts, lowered

PART = 24

LINES = f"b, n + {PART}"
"""The sizes of an argument: all lines have at least as many elements as are looked for."""


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So short that an emulator gets through with them."""
    monkeypatch.setattr(GpuBackend, "policy", replace(GPU_POLICY, part_columns=PART, blocks=16))
    yield


def best(k: int) -> Callable[..., Any]:
    return lambda x: jax.lax.top_k(x, k)


def check(function: Any, arguments: Texts, *all_values: list[np.ndarray], change: Callable[[str], str] = str) -> None:
    """The emulated program gives XLA's results, in two calls each."""
    c = lowered(function, *arguments)
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(change(str(device_module(c.module)))))
        for values in all_values:
            dims = {"b": values[0].shape[0], "n": values[0].shape[1] - PART}
            for _ in range(2):
                assert_close(Run(c, dims, machine)(values), jax.jit(function)(*values), 0)


def line(length: int, dtype: Any = np.float32, lines: int = 1, most: int = 50) -> np.ndarray:
    """Lines in which most elements have equals."""
    return np.random.default_rng(length).integers(0, most, (lines, length)).astype(dtype)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("k", [1, 5, PART - 1])
def test_lengths_around_parts(k: int) -> None:
    """Equal elements in several parts, and parts that have fewer than are looked for."""
    lengths = (PART + 1, 2 * PART - 1, 2 * PART, 2 * PART + 1, 5 * PART - 1, 8 * PART + 1, 30 * PART)
    check(best(k), ((LINES, "float32"),), *([line(n)] for n in lengths))


@pytest.mark.usefixtures("short_parts")
def test_a_last_part_without_elements() -> None:
    """73 elements in 16 parts would be 5 each, which 15 of them have; here 3 lines leave 5 parts each."""
    check(best(2), ((LINES, "float32"),), *([line(n, lines=3)] for n in (PART * 5, PART * 5 + 6, 76)))


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("dtype", ["bfloat16", "int32", "uint8", "float16"])
def test_types_of_elements(dtype: str) -> None:
    check(best(3), ((LINES, dtype),), [line(5 * PART, jnp.dtype(dtype), 2)])


@pytest.mark.usefixtures("short_parts")
def test_values_that_are_no_numbers_and_zeros_of_both_signs() -> None:
    found = np.zeros((2, 4 * PART), np.float32)
    found[0, ::3], found[0, 50], found[1, 90], found[1, 1] = -0.0, np.inf, np.nan, -np.inf
    for k in (1, 4):
        check(best(k), ((LINES, "float32"),), [found], [-found], [np.full_like(found, -np.inf)])


@pytest.mark.usefixtures("short_parts")
def test_the_line_is_computed_and_several_operands_are_sorted() -> None:
    check(lambda x: jax.lax.top_k(jnp.cos(x) * 2, 4), ((LINES, "int32"),), [line(5 * PART, np.int32, 2)])

    def first(x: Any, y: Any) -> Any:
        return [v[:, :3] for v in jax.lax.sort((x, y, -y), dimension=1, num_keys=1, is_stable=True)]

    y = np.arange(5 * PART, dtype=np.float32)[None]
    check(first, ((LINES, "float32"), (LINES, "float32")), [line(5 * PART, most=9), y])


COUNTS = {r"llvm\.fence": 2, r"memref\.atomic_rmw assign": 1}


def changed(change: Callable[[str], str]) -> None:
    check(best(3), ((LINES, "float32"),), [line(5 * PART)], change=change)


@pytest.mark.usefixtures("short_parts")
def test_the_last_block_resets_the_ticket() -> None:
    with pytest.raises(AssertionError):
        changed(without(r"memref\.atomic_rmw assign", 0, COUNTS))


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("fence", [0, 1])
def test_no_fence_can_be_left_out(fence: int) -> None:
    with pytest.raises(AssertionError, match="two blocks touch one element, and one writes it"):
        changed(without(r"llvm\.fence", fence, COUNTS))


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("barrier", [0, 1])
def test_no_barrier_around_the_ticket_can_be_left_out(barrier: int) -> None:
    def change(text: str) -> str:
        pattern = r"( *gpu\.barrier\n)((?:(?!gpu\.barrier).)*?llvm\.fence(?:(?!gpu\.barrier).)*?)( *gpu\.barrier\n)"
        text, count = re.subn(pattern, r"\2\3" if barrier == 0 else r"\1\2", text, flags=re.DOTALL)
        assert count == 1
        return text

    with pytest.raises(AssertionError, match="two (threads|blocks) touch one element"):
        changed(change)


def test_how_many_blocks_there_are() -> None:
    (launch,) = launches_of(lowered(best(8), (LINES, "float32")))
    sizes = ((1, 8191), (1, 8192), (1, 1 << 22), (4, 1 << 22), (132, 8192), (133, 8192))
    assert [launch.blocks.evaluate({"b": b, "n": n - PART}) for b, n in sizes] == [1, 2, 264, 264, 264, 133]


def test_what_is_not_split() -> None:
    for shape, condition in (("b, 8191", "may-be-long"), ("b + 132, n + 3", "may-be-few")):
        before = OUTCOMES.copy()
        assert "partials" not in str(lowered(best(3), (shape, "float32")).snapshots["fuse"])
        assert ("best-over-blocks." + condition, False) in OUTCOMES - before


def test_wrong_room_is_found() -> None:
    c = lowered(best(3), (LINES, "float32"))
    expect_refused(c, r"(partials = )2", r"\g<1>1", "room for the first elements of each line")
