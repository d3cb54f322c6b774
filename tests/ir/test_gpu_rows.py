# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows on GPUs: teams of threads, what is kept of a row, and accesses of several elements, at lengths around each
guard."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering.launches import launches_in
from tests.ir import gpu_emulator
from tests.ir.gpu_cases import TARGETS, assert_close, emulated, layer_norm
from tests.ir.gpu_emulator import Emulator
from tests.run.op_check import random_array

LENGTHS = (0, 1, 2, 8, 31, 32, 33, 64, 255, 256, 257, 1023, 1024, 1025, 1028)


@pytest.fixture(autouse=True)
def _doubles() -> Any:
    with jax.enable_x64(True):
        yield


def of_rows(x: Any, y: Any) -> Any:
    """Results along the row and of one value a row."""
    top = x.max(-1)
    return x - top[:, None] * y, top, jnp.exp(x - top[:, None]).sum(-1)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...], float]] = {
    "softmax": (jax.nn.softmax, ("b, s",), 1e-6),
    "sum": (lambda x: x.sum(-1), ("b, s",), 1e-6),
    "of_rows": (of_rows, ("b, s", "b, s"), 1e-6),
    "norm": (layer_norm, ("b, s", "s", "s"), 1e-5),
    "argmax": (lambda x: jnp.argmax(x, -1), ("b, s",), 0),
    "moment": (lambda x: ((x - x.mean(-1, keepdims=True)) ** 2).mean(-1), ("b, s",), 1e-6),
}


@functools.cache
def lowered(name: str, dtype: str, dims: tuple[str, ...] | None = None) -> Compilation:
    function, arguments, _ = PROGRAMS[name]
    typed = tuple((text, dtype) for text in (dims or arguments))
    with jax.enable_x64(True):
        return run_pipeline(import_stage(function, TARGETS[0], shlo_disc.Options(), typed, None, ()), "host")


def check(name: str, c: Compilation, dims: dict[str, int], given: list[np.ndarray], tolerance: float) -> None:
    assert_close(emulated(c, dims, given), jax.jit(PROGRAMS[name][0])(*given), tolerance)


def arrays(name: str, dtype: str, dims: dict[str, int]) -> list[np.ndarray]:
    shapes = [tuple(dims[d] for d in text.split(", ")) for text in PROGRAMS[name][1]]
    return [random_array(shape, dtype, i) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ["softmax", "norm", "of_rows"])
def test_lengths_around_each_guard(name: str, length: int) -> None:
    if name == "of_rows" and length == 0:
        pytest.skip("JAX refuses maxima of nothing")
    for rows in (0, 1, 9) if length in (2, 33) else (3,):
        dims = {"b": rows, "s": length}
        check(name, lowered(name, "float32"), dims, arrays(name, "float32", dims), PROGRAMS[name][2])


@pytest.mark.parametrize("length", [1, 31, 33, 64, 257, 1030, 2064])
@pytest.mark.parametrize(("name", "dtype", "tolerance"), [
    ("softmax", "float16", 2e-3), ("softmax", "bfloat16", 1e-2), ("softmax", "float64", 1e-12), ("sum", "int32", 0),
    ("sum", "float64", 1e-12), ("sum", "bool", 0),
    ("argmax", "float32", 0), ("argmax", "int32", 0),
])  # fmt: skip
def test_element_types(name: str, dtype: str, tolerance: float, length: int) -> None:
    dims = {"b": 5, "s": length}
    check(name, lowered(name, dtype), dims, arrays(name, dtype, dims), tolerance)


def misaligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins an element behind a multiple of 64 bytes."""
    memory = np.zeros(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + array.itemsize
    found = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


@pytest.mark.parametrize("length", [8, 64, 1032])
def test_arguments_that_are_not_aligned(length: int) -> None:
    """The emulator refuses accesses of several elements elsewhere than at a multiple of their size."""
    dims = {"b": 3, "s": length}
    given = [misaligned(a) for a in arrays("norm", "float32", dims)]
    assert given[0].ctypes.data % 16 == 4
    check("norm", lowered("norm", "float32"), dims, given, 1e-5)


class Counted:
    """Counts of the reads of each element of an array, and of the accesses that made them, while a kernel ran."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, array: np.ndarray):
        self.reads: Counter[int] = Counter()
        self.runs = 0
        first = array.ctypes.data
        touch, load = gpu_emulator.Block._touch, gpu_emulator.Block._vector_load

        def counted(block: Any, view: Any, indices: Any, active: Any, value: Any) -> Any:
            if value is None and view.data.ctypes.data == first and active.any():
                self.reads.update(view.offsets(indices, active)[active].tolist())
            return touch(block, view, indices, active, value)

        def run_counted(block: Any, op: Any, env: Any, active: Any) -> Any:
            self.runs += env[op.operands[0]].data.ctypes.data == first
            return load(block, op, env, active)

        monkeypatch.setattr(gpu_emulator.Block, "_touch", counted)
        monkeypatch.setattr(gpu_emulator.Block, "_vector_load", run_counted)


@pytest.mark.parametrize("name", ["softmax", "norm", "of_rows"])
@pytest.mark.parametrize("length", [5, 33, 48, 1000, 1025, 4104])
def test_an_element_is_read_once(name: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dims = {"b": 2, "s": length}
    given = arrays(name, "float32", dims)
    counted = Counted(monkeypatch, given[0])
    emulated(lowered(name, "float32"), dims, given)
    assert counted.reads == dict.fromkeys(range(2 * length), 1)
    assert counted.runs > 0


@pytest.mark.parametrize("length", [8192, 8193, 8300])
def test_what_there_is_no_room_for_is_read_again(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dims = {"b": 1, "s": length}
    given = arrays("softmax", "float32", dims)
    counted = Counted(monkeypatch, given[0])
    check("softmax", lowered("softmax", "float32"), dims, given, 1e-6)
    kept = length if length == 8193 else 8192  # the last column is in no run, and has a place of its own
    expected = {i: 1 if i < kept else 3 for i in range(length)}
    assert counted.reads == expected


def test_long_rows_are_summed_as_exactly_as_short_ones() -> None:
    c = lowered("sum", "float32")
    rows = (np.random.default_rng(0).random((1, 300_001)) + 1).astype(np.float32)
    (got,) = emulated(c, {"b": 1, "s": rows.size}, [rows])
    exact = rows.astype(np.float64).sum()
    assert abs(float(got[0]) - exact) <= exact * 2**-22


def test_guards_are_noted() -> None:
    (launched,) = [one for one in launches_in(lowered("softmax", "float32").snapshots["host"]) if one.use]
    choices = {
        s: [guard.choice({"b": 1, "s": s}) for guard in launched.guards] for s in (32, 33, 1024, 1025, 8192, 8193)
    }
    assert choices == {
        32: ["8 threads a row", "a warp a row", "rows kept in shared memory"],
        33: ["a warp a row", "a warp a row", "rows kept in shared memory"],
        1024: ["a warp a row", "a warp a row", "rows kept in shared memory"],
        1025: ["a warp a row", "a block a row", "rows kept in shared memory"],
        8192: ["a warp a row", "a block a row", "rows kept in shared memory"],
        8193: ["a warp a row", "a block a row", "the ends of rows read again"],
    }
    (norm,) = [one for one in launches_in(lowered("norm", "float32").snapshots["host"]) if one.use]
    found = [norm.guards[-1].choice({"b": 1, "s": s}) for s in (64, 65)]
    assert found == ["4 columns at a time", "4 columns at a time, from a multiple of their bytes on"]


@pytest.mark.parametrize(
    ("dims", "guards"), [("b, 48", 0), ("b, 8", 0), ("b, 1021", 0), ("b, 5000", 0), ("b, 9000", 0)]
)
def test_known_lengths_need_no_guard(dims: str, guards: int) -> None:
    c = lowered("softmax", "float32", (dims,))
    (launched,) = [one for one in launches_in(c.snapshots["host"]) if one.use]
    length = int(dims.split(", ")[1])
    assert len(launched.guards) == guards
    assert str(c.snapshots["host"]).count("gpu.barrier") == (0 if length <= 1024 else 2 * (1 + (length % 4 == 0)))
    given = [random_array((3, length), "float32")]
    check("softmax", c, {"b": 3}, given, 1e-6)


def test_results_in_the_place_of_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Along the row and of one value a row, by teams of each size."""
    arguments = (("2, b, s", "float32"), ("2, b", "float32"))

    def function(x: Any, p: Any) -> Any:
        a, q = x.sum(0), p.sum(0)
        normal = (a - a.mean(-1, keepdims=True)) * q[:, None]
        return jnp.transpose(jax.nn.softmax(normal)), (jnp.abs(normal).sum(-1) + q)[::-1]

    c = run_pipeline(import_stage(function, TARGETS[0], shlo_disc.Options(), arguments, None, ()), "host")
    taken: set[int] = set()
    launch = Emulator.launch

    def noted(machine: Any, name: str, blocks: int, pointers: Any, sizes: Any) -> None:
        if name.startswith("row_reduce"):
            pairs = itertools.combinations(pointers, 2)
            taken.update(a.size for a, b in pairs if a.size == b.size and a.ctypes.data == b.ctypes.data)
        launch(machine, name, blocks, pointers, sizes)

    monkeypatch.setattr(Emulator, "launch", noted)
    for length in (5, 8, 33, 64, 1028, 1029):
        taken.clear()
        given = [random_array((2, 4, length), "float32"), random_array((2, 4), "float32", 1)]
        want = [np.asarray(w).reshape(-1) for w in jax.jit(function)(*given)]
        for g, w in zip(emulated(c, {"b": 4, "s": length}, given), want, strict=True):
            np.testing.assert_allclose(g, w, rtol=0, atol=1e-5 * max(1, np.abs(w).max()))
        assert taken == {4, 4 * length}


def test_two_axes_of_columns_and_of_rows() -> None:
    def function(x: Any) -> Any:
        return x.sum((-1, -2)), x.transpose(1, 0, 2).max(-1)

    c = run_pipeline(
        import_stage(function, TARGETS[0], shlo_disc.Options(), (("b, s, 6", "float32"),), None, ()), "host"
    )
    for length in (1, 6, 7, 180):
        given = [random_array((3, length, 6), "float32")]
        for g, w in zip(emulated(c, {"b": 3, "s": length}, given), jax.jit(function)(*given), strict=True):
            np.testing.assert_allclose(g, np.asarray(w).reshape(-1), rtol=1e-5, atol=1e-4)
