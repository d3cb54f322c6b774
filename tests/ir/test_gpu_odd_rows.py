# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows on GPUs that are no multiples of 16 bytes long, or do not begin at one: runs from the first multiple on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering_gpu import row_runs
from shlo_disc.lowering_gpu.row_runs import Runs
from shlo_disc.shape_dialect.mlir import ir
from tests.gpu.sass import read
from tests.gpu.test_sass import needs_tools
from tests.ir import gpu_vectors
from tests.ir.gpu_cases import TARGETS, Case, Run, arrays, assert_close, emulated, layer_norm
from tests.ir.gpu_emulator import Block
from tests.ir.test_gpu_loops import shifted


@pytest.fixture(autouse=True)
def _doubles() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def across(x: Any) -> Any:
    """Rows read in another order than they lie in, and in the order in which they lie."""
    return jax.nn.softmax(x.transpose(1, 0, 2)) * x, x.sum(-1)


def masked(x: Any, mask: Any) -> Any:
    """A tensor of columns alone, and one of another width."""
    return jax.nn.softmax(jnp.where(mask, x, -1e9), -1)


ROWS = (("b, s", "float32"),)

PROGRAMS = {
    "bytes": Case(lambda x: x - x.max(-1, keepdims=True), (("b, s", "int8"),), 0),
    "halves": Case(jax.nn.softmax, (("b, s", "float16"),), 2e-3),
    "words": Case(jax.nn.softmax, ROWS, 1e-6),
    "doubles": Case(jax.nn.softmax, (("b, s", "float64"),), 1e-12),
    "sums": Case(lambda x: (x.sum(-1), (x * 2).max(-1)), ROWS, 1e-6),
    "widened": Case(lambda x, y: jax.nn.softmax(x.astype(jnp.float32) + y), (("b, s", "float16"), *ROWS), 1e-6),
    "norm": Case(layer_norm, (*ROWS, ("s", "float32"), ("s", "float32")), 1e-5),
    "masked": Case(masked, (("3, b, s", "float32"), ("b, s", "bool")), 1e-6),
    "behind_one": Case(lambda x: x - x.max((-1, -2), keepdims=True), (("b, s, 1", "float32"),), 0),
    "ahead_of_one": Case(lambda x: x - x.max((-1, -2), keepdims=True), (("b, 1, s", "float32"),), 0),
    "two_axes": Case(lambda x: x - x.max((-1, -2), keepdims=True), (("b, s, 5", "float32"),), 0),
    "across": Case(across, (("b, b, s", "float32"),), 1e-6),
}  # fmt: skip

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 29, 31, 33, 37, 63, 129, 1021, 1025, 1027)


@functools.cache
def lowered(name: str, constraints: tuple[str, ...] = ()) -> Compilation:
    case = PROGRAMS[name]
    with jax.enable_x64(True):
        start = import_stage(case.function, TARGETS[0], shlo_disc.Options(), case.arguments, None, constraints)
        return run_pipeline(start, "host")


def check(name: str, b: int, s: int, *shifts: int, constraints: tuple[str, ...] = ()) -> None:
    case, dims = PROGRAMS[name], {"b": b, "s": s}
    given = arrays(case, dims)
    given = [shifted(a, shifts[i % len(shifts)] if shifts else 0) for i, a in enumerate(given)]
    assert_close(emulated(lowered(name, constraints), dims, given), jax.jit(case.function)(*given), case.tolerance)


@pytest.fixture
def results_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Puts results so many elements behind a multiple of 16 bytes."""
    allocate = Run._buffer

    def place(count: int) -> None:
        def placed(run: Run, value: ir.Value, buffer: Any) -> np.ndarray:
            found = allocate(run, value, buffer)
            for number, one in run.results.items():
                if one is found:
                    run.results[number] = found = shifted(found, count)
            return found

        monkeypatch.setattr(Run, "_buffer", placed)

    return place


# ---- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_lengths_around_runs(name: str, results_at: Callable[[int], None]) -> None:
    results_at(0)
    for length in LENGTHS:
        check(name, 3, length)


@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_all_tensors_alike(name: str, shift: int, results_at: Callable[[int], None]) -> None:
    results_at(shift)
    for length in (3, 4, 5, 64, 67):
        check(name, 3, length, shift)


@pytest.mark.parametrize("shifts", [(0, 1), (1, 0), (3, 2)])
@pytest.mark.parametrize("name", ["halves", "words", "widened", "norm", "across"])
def test_tensors_that_are_not_alike(name: str, shifts: tuple[int, int], results_at: Callable[[int], None]) -> None:
    """The emulator refuses accesses of several elements elsewhere than at a multiple of their size."""
    results_at(shifts[1])
    for length in (5, 64, 67, 1025):
        check(name, 2, length, *shifts)


@pytest.mark.parametrize("length", [8193, 8203, 16389])
@pytest.mark.parametrize("alike", [True, False])
def test_rows_that_there_is_no_room_for(length: int, alike: bool, results_at: Callable[[int], None]) -> None:
    results_at(0 if alike else 1)
    check("words", 2, length)
    check("sums", 2, length)


def test_no_elements() -> None:
    for b, s in ((0, 7), (3, 0)):
        check("words", b, s, constraints=("b >= 0", "s >= 0"))


# ---- accesses -----------------------------------------------------------------------------------------------------


class Counted:
    """The elements of global memory that are accessed in runs, and one by one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.in_runs = self.single = 0
        neighbours, touch = gpu_vectors.VectorOps._neighbours, Block._touch

        def of_runs(block: Any, op: Any, view: Any, indices: Any, active: Any, values: Any) -> Any:
            before = self.single
            found = neighbours(block, op, view, indices, active, values)
            self.in_runs, self.single = self.in_runs + self.single - before, before
            return found

        def counted(block: Any, view: Any, indices: Any, active: Any, value: Any) -> Any:
            self.single += 0 if block._is_shared(view) else int(active.sum())
            return touch(block, view, indices, active, value)

        monkeypatch.setattr(gpu_vectors.VectorOps, "_neighbours", of_runs)
        monkeypatch.setattr(Block, "_touch", counted)


@pytest.mark.parametrize(("name", "width"), [("halves", 8), ("words", 4)])
@pytest.mark.parametrize("length", [129, 130, 131, 1027])
def test_only_the_ends_of_rows_are_accessed_one_by_one(
    name: str, width: int, length: int, monkeypatch: pytest.MonkeyPatch, results_at: Callable[[int], None]
) -> None:
    results_at(1)
    counted = Counted(monkeypatch)
    check(name, 5, length, 1)
    assert counted.in_runs + counted.single == 2 * 5 * length, "read once, and written once"
    heads = [-(1 + row * length) % width for row in range(5)]
    assert counted.single == 2 * sum(head + (length - head) % width for head in heads)


def test_tensors_of_columns_alone_are_read_one_by_one(
    monkeypatch: pytest.MonkeyPatch, results_at: Callable[[int], None]
) -> None:
    """They are aligned otherwise in each row."""
    results_at(0)
    counted = Counted(monkeypatch)
    check("norm", 4, 129)
    ends = sum(-(row * 129) % 4 + (129 - -(row * 129) % 4) % 4 for row in range(4))
    assert counted.in_runs == 2 * (4 * 129 - ends) and counted.single == 2 * ends + 2 * 4 * 129


@pytest.mark.parametrize("name", ["doubles", "across"])
def test_rows_that_begin_anywhere_take_no_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are in runs only if all of them begin at multiples of 16 bytes, where registers are few."""
    counted = Counted(monkeypatch)
    check(name, 3, 129)
    assert counted.in_runs == 0


def test_rows_in_another_order_are_not_taken_to_be_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """If ops that read elsewhere were allowed, elements of this row alone would be read in runs."""
    monkeypatch.setattr(row_runs, "IN_PLACE", row_runs.IN_PLACE | {"stablehlo.transpose"})
    lowered.cache_clear()
    check("across", 3, 67)
    monkeypatch.setattr(Runs, "_is_here", lambda *_: True)
    lowered.cache_clear()
    with pytest.raises(AssertionError, match="is not aligned"):
        check("across", 3, 67)
    lowered.cache_clear()


# ---- machine code -------------------------------------------------------------------------------------------------


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("target", TARGETS)
def test_machine_code_of_odd_rows(target: str) -> None:
    """At most four instructions read an element, and six write one."""
    case = PROGRAMS["words"]
    compiled = shlo_disc.compile(case.function, target=target, args=(("b, 1021", "float32"),))
    for _, _, usage, machine in read(compiled.as_text("ptx")):
        assert usage.spills == machine.count("LDL", "STL") == 0 and usage.registers <= 64
        reading = min(loop.total() / loop["LDG.E.128"] for loop in machine.loops if loop["LDG.E.128"])
        writing = min(loop.total() / loop["STG.E.128"] for loop in machine.loops if loop["STG.E.128"])
        assert reading <= 4 * 4 and writing <= 4 * 6
