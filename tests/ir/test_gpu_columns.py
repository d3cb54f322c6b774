# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions down columns on GPUs: tiles, strands and their order, at sizes around each guard."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering.launches import launches_in
from shlo_disc.lowering_gpu import device_module
from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_cases import TARGETS, assert_close, emulated, launches_of
from tests.ir.gpu_emulator import Emulator
from tests.run.op_check import random_array

MIDDLE, LEADING = ("a, n, m",), ("n, m",)


@pytest.fixture(autouse=True)
def _doubles() -> Any:
    with jax.enable_x64(True):
        yield


def largest_of_rows(x: Any) -> Any:
    """Two results, one of which depends on the order."""
    best = jnp.argmax(x, 0)
    return best, x.max(0)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "sum": (lambda x: x.sum(0), LEADING),
    "middle": (lambda x: x.sum(1), MIDDLE),
    "two": (lambda x: (x * 2).max((0, 1)), MIDDLE),
    "trailing": (lambda x: x.sum(0), MIDDLE),
    "argmax": (largest_of_rows, LEADING),
    "mean": (lambda x: (x.mean(1), jnp.exp(x.sum(1) / 100)), MIDDLE),
    "argmax_middle": (lambda x: jnp.argmin(x, 1), MIDDLE),
}


@functools.cache
def lowered(name: str, dtype: str) -> Compilation:
    function, arguments = PROGRAMS[name]
    typed = tuple((text, dtype) for text in arguments)
    with jax.enable_x64(True):
        return run_pipeline(import_stage(function, TARGETS[0], shlo_disc.Options(), typed, None, ()), "host")


def check(name: str, dtype: str, dims: dict[str, int], tolerance: float) -> None:
    function, arguments = PROGRAMS[name]
    given = [random_array(tuple(dims[d] for d in text.split(", ")), dtype, i) for i, text in enumerate(arguments)]
    assert_close(emulated(lowered(name, dtype), dims, given), jax.jit(function)(*given), tolerance)


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 64, 257])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 33])
def test_rows_and_columns_around_each_guard(rows: int, columns: int) -> None:
    check("sum", "float32", {"n": rows, "m": columns}, 1e-6)
    assert columns != 9 or not check("middle", "float32", {"a": 3, "n": rows, "m": columns}, 1e-6)


@pytest.mark.parametrize("dims", [(2, 3, 5), (3, 40, 11), (37, 5, 9), (300, 1, 2)], ids=str)
@pytest.mark.parametrize("name", ["middle", "two", "trailing", "mean", "argmax_middle"])
def test_several_axes(name: str, dims: tuple[int, int, int]) -> None:
    check(name, "float32", dict(zip("anm", dims, strict=True)), 1e-6)


@pytest.mark.parametrize("rows", [5, 33, 130])
@pytest.mark.parametrize(("name", "dtype", "tolerance"), [
    ("sum", "float16", 2e-3), ("sum", "bfloat16", 1e-2), ("sum", "float64", 1e-12), ("sum", "int32", 0),
    ("sum", "bool", 0), ("argmax", "float32", 0), ("argmax", "int32", 0),
])  # fmt: skip
def test_element_types(name: str, dtype: str, tolerance: float, rows: int) -> None:
    check(name, dtype, {"n": rows, "m": 21}, tolerance)


def test_the_first_of_equal_elements_is_found_in_any_strand() -> None:
    table = np.zeros((200, 6), np.float32)
    table[[150, 90, 3], [0, 0, 1]] = 1
    table[[199, 64], [2, 3]] = np.nan
    got, _ = emulated(lowered("argmax", "float32"), {"n": 200, "m": 6}, [table])
    np.testing.assert_array_equal(got, jnp.argmax(table, 0))


def test_long_columns_are_summed_as_exactly_as_short_ones() -> None:
    table = (np.random.default_rng(0).random((40_000, 2)) + 1).astype(np.float32)
    (got,) = emulated(lowered("sum", "float32"), {"n": 40_000, "m": 2}, [table])
    exact = table.astype(np.float64).sum(0)
    assert np.all(np.abs(got - exact) <= exact * 2**-22)


def test_tiles_make_enough_blocks_and_the_choice_is_noted() -> None:
    c = lowered("sum", "float32")
    (launch,) = launches_of(c)
    sizes = [
        (32, 700),
        (33, 700),
        (33, 8192),
        (33, 8193),
        (127, 700),
        (128, 700),
        (16384, 2048),
        (256, 4224),
        (256, 4225),
    ]
    blocks = {(n, m): launch.blocks.evaluate({"n": n, "m": m}) for n, m in sizes}
    assert list(blocks.values()) == [3, 22, 256, 257, 22, 44, 256, 264, 133]
    (launched,) = [one for one in launches_in(c.snapshots["host"]) if one.use]
    strands, several = launched.guards
    assert [strands.choice({"n": n, "m": 1}) for n in (32, 33)] == ["a thread a column", "strands down a column"]
    one, many = "one block for each result", "several blocks for each result"
    for n, m, choice in [(127, 700, one), (128, 700, many), (128, 4224, many), (128, 4225, one)]:
        assert several.choice({"n": n, "m": m}) == choice


@pytest.mark.slow
def test_wide_tiles() -> None:
    check("sum", "float32", {"n": 35, "m": 8200}, 1e-6)


def test_any_number_of_blocks_is_right() -> None:
    c, table, got = lowered("sum", "float32"), random_array((70, 41), "float32"), np.zeros(41, np.float32)
    (launch,) = launches_of(c)
    sizes = [size.evaluate({"n": 70, "m": 41}) for size in launch.sizes]
    with c.context, ir.Location.unknown():
        Emulator(device_module(c.module)).launch(launch.name, 2, [table.reshape(-1), got, got[:0]], sizes)
    np.testing.assert_allclose(got, table.sum(0), atol=1e-5)


def test_what_is_computed_from_a_reduction_is_part_of_its_kernel() -> None:
    for name in ("mean", "argmax_middle"):
        assert all("shared" in text for text in str(lowered(name, "float32").snapshots["host"]).split("gpu.func")[1:])
