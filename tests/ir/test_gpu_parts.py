# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels on GPUs that are split over blocks: sizes around each choice, the order of accesses, and further launches."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering_gpu import device_module
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.fusion.partials import PARTS
from tests.ir.gpu_cases import TARGETS, assert_close, emulated, launches_of
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_mutations import without
from tests.run.op_check import random_array

ROWS, COLUMNS = GPU_POLICY.part_rows, GPU_POLICY.part_columns


@pytest.fixture(autouse=True)
def _doubles() -> Any:
    with jax.enable_x64(True):
        yield


def last_of_row(x: Any) -> Any:
    """The last element of each row that is not zero: the order of a row counts."""
    pick = lambda a, b: jnp.where(b != 0, b, a)  # noqa: E731
    return jax.lax.reduce(x, np.float32(0), pick, (1,))


PROGRAMS: dict[str, tuple[Callable[..., Any], str]] = {
    "down": (lambda x: x.sum(0), "n, m"),
    "down_mean": (lambda x: (x.mean(1), jnp.exp(x.sum(1) / 100)), "a, n, m"),
    "down_argmax": (lambda x: (jnp.argmax(x, 0), x.max(0)), "n, m"),
    "along": (lambda x: x.sum(-1), "n, m"),
    "along_several": (lambda x: (x.max(-1), (x * x).mean(-1), jnp.argmin(x, -1), x.sum(-1) * 2), "n, m"),
    "line_argmax": (lambda x: jnp.argmax(x * 2), "m"),
    "last_of_row": (last_of_row, "n, m"),
    "softmax": (lambda x: jax.nn.softmax(x, -1), "n, m"),
    "variance": (lambda x: x.var(-1), "n, m"),
}


@functools.cache
def lowered(name: str, dtype: str = "float32") -> Compilation:
    function, shape = PROGRAMS[name]
    with jax.enable_x64(True):
        return run_pipeline(
            import_stage(function, TARGETS[0], shlo_disc.Options(), ((shape, dtype),), None, ()), "host"
        )


def parts_of(name: str, dims: dict[str, int]) -> int:
    """The number of blocks that have a part of each result."""
    (launch,) = launches_of(lowered(name))
    memory = launch.sizes[len(dims)]
    return max(1, memory.evaluate(dims))


def run(name: str, given: np.ndarray) -> list[np.ndarray]:
    letters = PROGRAMS[name][1].split(", ")
    return emulated(lowered(name, str(given.dtype)), dict(zip(letters, given.shape, strict=True)), [given])


def check(name: str, given: np.ndarray, tolerance: float = 1e-6) -> None:
    assert_close(run(name, given), jax.jit(PROGRAMS[name][0])(given), tolerance)


# ---- down columns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 31, 33])
@pytest.mark.parametrize("rows", [1, ROWS - 1, 2 * ROWS - 1, 2 * ROWS, 2 * ROWS + 1, 3 * ROWS, 13 * ROWS + 5])
def test_rows_around_each_number_of_parts(rows: int, columns: int) -> None:
    assert parts_of("down", {"n": rows, "m": columns}) == max(1, rows // ROWS)
    check("down", random_array((rows, columns), "float32"), 1e-5)


@pytest.mark.parametrize("columns", [132 * 32, 132 * 32 + 1])
def test_columns_that_make_enough_blocks(columns: int) -> None:
    table = random_array((4 * ROWS, columns), "float32")
    assert parts_of("down", {"n": 4 * ROWS, "m": columns}) == (2 if columns == 132 * 32 else 1)
    check("down", table)


@pytest.mark.parametrize(("dtype", "tolerance"), [
    ("float16", 1e-3), ("bfloat16", 8e-3), ("float64", 1e-13), ("int8", 0), ("int32", 0), ("int64", 0), ("bool", 0),
])  # fmt: skip
def test_element_types_down_columns(dtype: str, tolerance: float) -> None:
    check("down", random_array((5 * ROWS + 3, 5), dtype), tolerance)


def test_narrow_floats_are_left_in_f32() -> None:
    """256 ones and then as many halves: rounded to bf16 part by part they would be fewer."""
    table = np.full((8 * ROWS, 3), 1, jnp.bfloat16)
    table[4 * ROWS :] = 2**-7
    (found,) = run("down", table)
    assert (found.astype(np.float32) == np.float32(4 * ROWS * (1 + 2**-7)).astype(jnp.bfloat16)).all()


def test_several_axes_and_what_is_computed_of_a_sum() -> None:
    check("down_mean", random_array((3, 3 * ROWS + 1, 35), "float32"))


def test_ties_and_nan_down_columns() -> None:
    table = np.zeros((6 * ROWS, 7), np.float32)
    table[[6 * ROWS - 1, 2 * ROWS, 2 * ROWS - 1], [0, 0, 1]] = 1
    table[[5 * ROWS, 3 * ROWS], [2, 2]] = np.nan
    table[ROWS, 3], table[4 * ROWS, 4] = np.inf, -np.inf
    check("down_argmax", table, 0)


# ---- along rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, COLUMNS, 2 * COLUMNS - 1, 2 * COLUMNS, 2 * COLUMNS + 1, 5 * COLUMNS + 7])
@pytest.mark.parametrize("rows", [1, 2])
def test_columns_around_each_number_of_parts(rows: int, columns: int) -> None:
    assert parts_of("along", {"n": rows, "m": columns}) == max(1, columns // COLUMNS)
    check("along", random_array((rows, columns), "float32"), 1e-5)


@pytest.mark.parametrize(("rows", "parts"), [(1, 264), (2, 132), (88, 3), (132, 2), (133, 1), (1000, 1)])
def test_rows_that_make_enough_blocks(rows: int, parts: int) -> None:
    (launch,) = launches_of(lowered("along"))
    dims = {"n": rows, "m": 10_000_000}
    assert parts_of("along", dims) == parts and launch.blocks.evaluate(dims) == rows * parts


@pytest.mark.parametrize("columns", [3 * COLUMNS, 4 * COLUMNS + 1])
def test_several_reductions_of_a_walk(columns: int) -> None:
    table = random_array((2, columns), "float32")
    table[0, [COLUMNS - 1, 2 * COLUMNS]] = -5
    check("along_several", table, 1e-5)


def test_nan_and_infinity_along_rows() -> None:
    table = random_array((4, 2 * COLUMNS + 1), "float32")
    table[0, 2 * COLUMNS], table[1, COLUMNS] = np.nan, np.inf
    table[2, [3, 2 * COLUMNS - 1]], table[3, 0] = [np.inf, -np.inf], -np.inf
    check("along", table, 1e-5)


@pytest.mark.parametrize("places", [(0, COLUMNS), (COLUMNS, 2 * COLUMNS), (2 * COLUMNS - 1, 3 * COLUMNS + 2), (-1,)])
@pytest.mark.parametrize("peak", [2.0, np.inf, np.nan])
def test_the_first_of_equal_elements_in_any_part(places: tuple[int, ...], peak: float) -> None:
    line = np.zeros(3 * COLUMNS + 3, np.float32)
    line[list(places)] = peak
    check("line_argmax", line, 0)


def test_a_body_whose_order_counts() -> None:
    table = np.zeros((3, 3 * COLUMNS + 1), np.float32)
    table[0, [5, COLUMNS + 3, 2 * COLUMNS]], table[1, 7] = [1, 2, 3], 4
    check("last_of_row", table, 0)


@pytest.mark.parametrize(("dtype", "tolerance"), [
    ("float16", 1e-3), ("bfloat16", 8e-3), ("float64", 1e-13), ("int8", 0), ("int64", 0), ("bool", 0),
])  # fmt: skip
def test_element_types_along_rows(dtype: str, tolerance: float) -> None:
    check("along", random_array((2, 2 * COLUMNS + 5), dtype), tolerance)


@pytest.mark.parametrize("name", ["softmax", "variance"])
def test_what_needs_several_walks_is_not_split(name: str) -> None:
    made = [d.pattern for decisions in lowered(name).decisions.values() for d in decisions.made]
    assert PARTS.name not in made


def test_short_rows_and_many_rows_need_no_scratch_memory() -> None:
    for shape in ("n, 8191", "n + 132, m"):
        arguments = ((shape, "float32"),)
        function = lambda x: x.sum(-1)  # noqa: E731
        c = run_pipeline(import_stage(function, TARGETS[0], shlo_disc.Options(), arguments, None, ()), "plan")
        assert "partials" not in str(c.module)


# ---- what keeps blocks apart ----------------------------------------------------------------------------------------

EXAMPLES = {"down": {"n": 3 * ROWS, "m": 40}, "along": {"n": 2, "m": 3 * COLUMNS}}
AXES = {"down": 0, "along": 1}


def launch_changed(
    name: str,
    change: Callable[[str], str],
    times: int = 1,
    blocks: int | None = None,
    dims: dict[str, int] | None = None,
) -> None:
    """Check launches of a kernel whose text is changed, one after the other on a device, of as many blocks as it has
    work for or fewer."""
    c, dims = lowered(name), dims or EXAMPLES[name]
    (launch,) = launches_of(c)
    sizes = [size.evaluate(dims) for size in launch.sizes]
    shape = tuple(dims.values())
    with c.context, ir.Location.unknown():
        emulator = Emulator(device_module(ir.Module.parse(change(str(c.snapshots["host"])))))
        for number in range(times):
            given, axis = random_array(shape, "float32", number), AXES[name]
            result = np.zeros(shape[1 - axis], np.float32)
            partials = np.full(sizes[len(dims)] * len(result), np.nan, np.float32)
            many = launch.blocks.evaluate(dims) if blocks is None else blocks
            emulator.launch(launch.name, many, [given.reshape(-1), result, partials], sizes)
            assert_close([result], [given.sum(axis)], 1e-5)


def count(name: str, pattern: str) -> int:
    return len(re.findall(pattern, str(lowered(name).snapshots["host"])))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_kernel_can_be_launched_again(name: str) -> None:
    launch_changed(name, lambda text: text, 3)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_last_block_resets_the_ticket(name: str) -> None:
    with pytest.raises(AssertionError):
        launch_changed(name, without("memref.atomic_rmw assign", 0), 2)


@pytest.mark.parametrize("fence", [0, 1])
@pytest.mark.parametrize("name", EXAMPLES)
def test_no_fence_can_be_left_out(name: str, fence: int) -> None:
    assert count(name, r"llvm\.fence") == 2
    with pytest.raises(AssertionError, match="two blocks touch one element, and one writes it"):
        launch_changed(name, without(r"llvm\.fence", fence))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_ticket_has_to_be_atomic(name: str) -> None:
    def change(text: str) -> str:
        """Adds to the ticket by a load and a store."""
        pattern = r"(%\d+) = memref\.atomic_rmw addi (%\S+), (%\S+)\[(%\S+)\] : \(i32, (memref<.*>)\) -> i32"
        plain = r"\1 = memref.load \3[\4] : \5\n%next = arith.addi \1, \2 : i32\nmemref.store %next, \3[\4] : \5"
        return re.sub(pattern, plain, text, count=1)

    with pytest.raises(AssertionError, match="two blocks touch one element"):
        launch_changed(name, change)


@pytest.mark.parametrize(("name", "barrier", "blocks"), [
    ("down", 0, None), ("down", 1, None), ("down", 2, None), ("down", 3, None), ("down", 4, 1),
    ("along", 0, None), ("along", 1, None), ("along", 2, None), ("along", 3, 1),
])  # fmt: skip
def test_no_barrier_can_be_left_out(name: str, barrier: int, blocks: int | None) -> None:
    """The last one stands between two items of a block, which for rows are none that are split."""
    dims = {"n": 3, "m": 2000} if name == "along" and blocks else EXAMPLES[name]
    assert count(name, r"gpu\.barrier") == (5 if name == "down" else 4)
    with pytest.raises(AssertionError, match="two (threads|blocks) touch one element"):
        launch_changed(name, without(r"gpu\.barrier", barrier), blocks=blocks, dims=dims)
