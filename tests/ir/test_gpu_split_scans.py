# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cumulative ops of few long lines on GPUs, split over blocks: sizes around each choice, numbers, and their order."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from shlo_disc.driver.compiler import Compilation
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.decisions import OUTCOMES
from tests.ir.gpu_cases import assert_close, emulated, launches_of
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_mutations import expect_refused, without
from tests.ir.test_gpu_epilogues import device_module, lowered
from tests.run.op_check import random_array

PART = GPU_POLICY.part_columns

PROGRAMS: dict[str, tuple[Callable[..., Any], str]] = {
    "sum": (lambda x: jnp.cumsum(x, 1), "n, m"),
    "from_behind": (lambda x: lax.cumsum(x, 1, reverse=True), "n, m"),
    "down": (lambda x: jnp.cumsum(x * 2, 0), "m, n"),
    "most": (lambda x: lax.cummax(x, 1), "n, m"),
    "least_from_behind": (lambda x: lax.cummin(x, 1, reverse=True), "n, m"),
    "product": (lambda x: jnp.cumprod(jnp.sign(x) + (x == 0).astype(x.dtype), 1), "n, m"),
    "logarithm": (lambda x: lax.cumlogsumexp(x, 1), "n, m"),
}


@functools.cache
def compiled(name: str, dtype: str = "float32") -> Compilation:
    function, shape = PROGRAMS[name]
    return lowered(function, (shape, dtype))


def check(name: str, given: np.ndarray, tolerance: float = 0) -> None:
    function, shape = PROGRAMS[name]
    dims = dict(zip(shape.split(", "), given.shape, strict=True))
    assert_close(emulated(compiled(name, str(given.dtype)), dims, [given]), jax.jit(function)(given), tolerance)


def parts_of(name: str, lines: int, length: int) -> int:
    (launch,) = launches_of(compiled(name))
    return launch.blocks.evaluate({"n": lines, "m": length}) // lines


@pytest.mark.parametrize("lines", [1, 3])
@pytest.mark.parametrize("length", [1, PART, 2 * PART - 1, 2 * PART, 2 * PART + 1, 3 * PART + 7])
def test_lengths_around_each_number_of_parts(length: int, lines: int) -> None:
    assert parts_of("sum", lines, length) == max(1, length // PART)
    check("sum", random_array((lines, length), "float32"), 1e-5)


@pytest.mark.parametrize(("lines", "parts"), [(1, 264), (2, 132), (132, 2), (133, 1), (1000, 1)])
def test_lines_that_make_enough_blocks(lines: int, parts: int) -> None:
    assert parts_of("sum", lines, 1 << 24) == parts


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("sum", "down", "logarithm")])
def test_ops_and_directions(name: str) -> None:
    check(name, random_array((2, 2 * PART + 5), "float32"), 1e-5 if name == "from_behind" else 0)


def test_a_line_down_a_matrix() -> None:
    check("down", random_array((2 * PART + 3, 3), "float32"), 1e-5)


@pytest.mark.parametrize("dtype", ["int32", "int8", "float16"])
def test_element_types(dtype: str) -> None:
    check("most", random_array((1, 2 * PART + 1), dtype))
    if dtype != "float16":
        check("sum", random_array((1, 2 * PART + 1), dtype))


def test_narrow_floats_are_left_in_f32() -> None:
    """Ones and then thousands of eighths: rounded to bf16 part by part, none of these would count."""
    line = np.full((1, 3 * PART), 0.125, jnp.bfloat16)
    line[0, 0] = 1
    (found,) = emulated(compiled("sum", "bfloat16"), {"n": 1, "m": 3 * PART}, [line])
    wanted = (1 + np.arange(3 * PART) / 8).astype(jnp.bfloat16)
    np.testing.assert_array_equal(np.asarray(found).view(jnp.bfloat16), wanted)


def test_nan_and_infinity() -> None:
    table = random_array((4, 2 * PART + 1), "float32")
    table[0, PART], table[1, 3], table[2, 2 * PART], table[3, 5] = np.nan, np.inf, -np.inf, -np.inf
    check("most", table)
    check("sum", table, 1e-5)


def test_many_equal_floats_add_up() -> None:
    """Sums keep what they lack between parts, too."""
    line = np.full((1, 4 * PART), 0.1, np.float32)
    (found,) = emulated(compiled("sum"), {"n": 1, "m": 4 * PART}, [line])
    wanted = np.cumsum(line[0].astype(np.float64))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=3e-7)


# ---- what keeps blocks apart ----------------------------------------------------------------------------------------


def launch_changed(change: Callable[[str], str], times: int = 1, blocks: int | None = None) -> None:
    """Check launches of a kernel whose text is changed, one after the other on a device, in as many blocks as have
    work or fewer."""
    c, dims = compiled("sum"), {"n": 2, "m": 3 * PART + 1}
    (launch,) = launches_of(c)
    sizes = [size.evaluate(dims) for size in launch.sizes]
    with c.context, ir.Location.unknown():
        emulator = Emulator(device_module(ir.Module.parse(change(str(c.snapshots["host"])))))
        for number in range(times):
            given = random_array((2, dims["m"]), "float32", number)
            result, partials = np.zeros(given.size, np.float32), [np.full(3 * 2, np.nan, np.float32) for _ in range(2)]
            many = launch.blocks.evaluate(dims) if blocks is None else blocks
            emulator.launch(launch.name, many, [given.reshape(-1), result, *partials], sizes)
            assert_close([result], [np.cumsum(given.astype(np.float64), 1).astype(np.float32)], 1e-5)
            assert not any(v.data.any() for v in emulator.variables.values()), "something is left for the next launch"


COUNTS = {r"llvm\.fence": 4, r"memref\.atomic_rmw assign": 4, r"memref\.atomic_rmw ori": 1, r"gpu\.barrier": 7}


@pytest.mark.parametrize("blocks", [None, 1, 4])
def test_a_kernel_can_be_launched_again(blocks: int | None) -> None:
    launch_changed(str, 3, blocks)


@pytest.mark.parametrize(("store", "error"), [(0, "left for the next launch"), (2, "left for"), (3, "left for")])
def test_numbers_tickets_and_flags_are_set_back(store: int, error: str) -> None:
    """The other one raises a flag: without it blocks wait forever."""
    with pytest.raises(AssertionError, match=error):
        launch_changed(without(r"memref\.atomic_rmw assign", store, COUNTS))


@pytest.mark.parametrize(("pattern", "number"), [(r"llvm\.fence", 0), (r"llvm\.fence", 1)])
def test_no_fence_can_be_left_out(pattern: str, number: int) -> None:
    """The emulator has no order between a block's waiting and the lowering of flags, where a ticket has its fences."""
    with pytest.raises(AssertionError, match="two blocks touch one element, and one writes it"):
        launch_changed(without(pattern, number, COUNTS))


def test_blocks_wait_for_the_parts_before_theirs() -> None:
    def change(text: str) -> str:
        pattern = r"(%\d+) = memref\.atomic_rmw ori .*"
        return re.sub(pattern, r"\1 = arith.constant 1 : i32", text, count=1)

    with pytest.raises(AssertionError, match="two blocks touch one element, and one writes it"):
        launch_changed(change)


@pytest.mark.parametrize("barrier", range(COUNTS[r"gpu\.barrier"]))
def test_no_barrier_can_be_left_out(barrier: int) -> None:
    with pytest.raises(AssertionError, match="two (threads|blocks) touch one element"):
        launch_changed(without(r"gpu\.barrier", barrier, COUNTS), blocks=1 if barrier in (0, 6) else None)


# ---- what is not split ----------------------------------------------------------------------------------------------


def refused(function: Callable[..., Any], shape: str) -> set[str]:
    before = OUTCOMES.copy()
    c = lowered(function, (shape, "float32"))
    assert "partials" not in str(c.snapshots["fuse"])
    return {name for (name, holds) in OUTCOMES - before if name.startswith("lines-over-blocks.") and not holds}


def test_conditions_of_lines_in_parts() -> None:
    along = PROGRAMS["sum"][0]
    assert refused(along, f"n, {2 * PART - 1}") == {"lines-over-blocks.may-be-long"}
    assert refused(along, "n + 132, m") == {"lines-over-blocks.may-be-few"}
    assert refused(PROGRAMS["logarithm"][0], "n, m") == {"lines-over-blocks.has-a-neutral-element"}


def test_wrong_room_for_parts_is_found() -> None:
    change = r"axis = 1 : i64(?=.*partials)", "axis = 0 : i64"
    expect_refused(compiled("sum"), *change, "has other sizes than its lines")
