# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts of few long lines on GPUs, whose parts are sorted and merged by several blocks, in the emulator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering_gpu import device_module, sort_tile
from shlo_disc.lowering_gpu.backend import GpuBackend
from shlo_disc.lowering_gpu.grid import THREADS
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.decisions import OUTCOMES
from tests.gpu.sass import read
from tests.gpu.test_sass import needs_tools
from tests.ir.gpu_cases import EXACT, TARGETS, Run, launches_of
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_mutations import expect_refused, without
from tests.ir.test_gpu_epilogues import lowered
from tests.run.test_ops_sort import BODIES, COMPARATOR

PART = 24
TILE = 2 * THREADS


@pytest.fixture(autouse=True)
def _doubles() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def set_parts(monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    """Parts of at least so many elements, 16 at most."""
    monkeypatch.setattr(GpuBackend, "policy", replace(GPU_POLICY, part_columns=least, blocks=19))


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So short that an emulator gets through with them."""
    set_parts(monkeypatch, PART)


@pytest.fixture
def parts_of_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of two tiles and more, merged in several steps."""
    set_parts(monkeypatch, TILE + 100)
    monkeypatch.setattr(sort_tile, "MOST_WIDTH", 2 * THREADS)


def bits(values: Any) -> np.ndarray:
    """Elements as integers, so that zeros and NaNs are told apart."""
    found = np.asarray(values).reshape(-1)
    return found.view(f"u{found.itemsize}")


def check(
    c: Compilation, wanted: Callable[..., Any], *all_values: list[np.ndarray], change: Callable[[str], str] = str
) -> None:
    """The emulated program gives the wanted bits, in two calls each."""
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(change(str(device_module(c.module)))))
        names = sorted({s for launch in launches_of(c) for size in launch.sizes for s in size.symbols()})
        for values in all_values:
            for _ in range(2):
                found = Run(c, dict(zip(names, values[0].shape, strict=True)), machine)(values)
                for got, want in zip(found, wanted(*values), strict=True):
                    np.testing.assert_array_equal(bits(got), bits(want))
            assert not any(v.data.any() for v in machine.variables.values()), "something is left for the next launch"


def line(length: int, dtype: Any = np.float32, lines: int = 1, most: int = 50) -> np.ndarray:
    """Lines in which most elements have equals."""
    return np.random.default_rng(length).integers(0, most, (lines, length)).astype(dtype)


def with_places(x: Any) -> Any:
    """The elements, and where each was: the order of equal ones counts."""
    return lax.sort((x, lax.broadcasted_iota(jnp.int32, x.shape, 1)), num_keys=1)


def ordered(x: np.ndarray) -> list[np.ndarray]:
    """The results of `with_places`: NaNs last, and zeros of both signs as equals."""
    places = np.argsort(x.astype(np.float64) if x.dtype.name == "bfloat16" else x, axis=1, kind="stable")
    return [np.take_along_axis(x, places, 1), places.astype(np.int32)]


def keys(dtype: str = "float32") -> Compilation:
    return lowered(with_places, ("b, n", dtype))


# ---- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("short_parts")
def test_lengths_around_parts() -> None:
    lengths = (0, 1, PART - 1, PART, PART + 1, 2 * PART - 1, 2 * PART, 2 * PART + 1, 5 * PART - 1, 9 * PART + 7)
    check(keys(), ordered, *([line(n)] for n in lengths))


@pytest.mark.slow
@pytest.mark.usefixtures("short_parts")
def test_as_many_parts_as_there_are_blocks() -> None:
    check(keys(), ordered, [line(40 * PART + 1)])


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("lines", [2, 3, 8, 9])
def test_several_lines(lines: int) -> None:
    """16 blocks work on 2 lines in 8 parts each, on 3 in 5, on 8 in 2, and on 9 lines in one."""
    check(keys(), ordered, *([line(n, lines=lines)] for n in (1, PART + 5, 2 * PART, 5 * PART + 3)))


@pytest.mark.usefixtures("short_parts")
def test_a_last_part_without_elements() -> None:
    """121 elements in 5 parts are 25 in each of the first 4."""
    check(keys(), ordered, [line(5 * PART + 1, lines=3)])


@pytest.mark.slow
@pytest.mark.usefixtures("parts_of_tiles")
def test_lengths_around_tiles() -> None:
    """Parts of several tiles, whose own runs are merged first, an even and an odd number of times."""
    parts = (2 * TILE + 200, 2 * TILE + 201, 4 * TILE, 6 * TILE + 1, 13 * TILE + 5)
    lengths = (0, 1, TILE - 1, TILE, TILE + 1, 2 * TILE - 1, 2 * TILE, 2 * TILE + 1, *parts)
    check(keys(), ordered, *([line(n, most=400)] for n in lengths))


@pytest.mark.slow
def test_lengths_around_parts_of_the_usual_size() -> None:
    part = GPU_POLICY.part_columns
    check(keys(), ordered, *([line(n, most=3000)] for n in (2 * part - 1, 2 * part, 3 * part + 1)))


@pytest.mark.slow
def test_two_runs_that_are_in_order_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a run comes before the other one, or behind it, or all are equal."""
    set_parts(monkeypatch, PART)
    rising = np.arange(5 * PART, dtype=np.float32)[None]
    check(keys(), ordered, [rising], [-rising], [rising * 0], [rising % 2], [(rising + 60) % 120])


# ---- elements -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "bfloat16", "float16", "int32", "int64", "float64"])
def test_types_of_elements(dtype: str) -> None:
    check(keys(dtype), ordered, [line(5 * PART + 1, jnp.dtype(dtype), 2)])
    check(
        lowered(lambda x: [jnp.sort(x)], ("b, n", dtype)), lambda x: ordered(x)[:1], [line(7 * PART, jnp.dtype(dtype))]
    )


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_values_that_are_no_numbers_and_zeros_of_both_signs(dtype: str) -> None:
    found = np.zeros((2, 5 * PART), dtype)
    found[0, ::3], found[0, 50], found[1, 90], found[1, 1] = -0.0, np.inf, np.nan, -np.inf
    found[0, [3, 77, 119]] = np.nan, -np.nan, np.nan
    check(keys(dtype), ordered, [found], [-found], [np.full_like(found, np.nan)])


@pytest.mark.slow
@pytest.mark.usefixtures("short_parts")
def test_descending_order() -> None:
    def function(x: Any) -> Any:
        return jnp.sort(x, descending=True), jnp.argsort(x, descending=True)

    def wanted(x: np.ndarray) -> list[np.ndarray]:
        places = x.shape[1] - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
        return [np.take_along_axis(x, places, 1), places.astype(np.int64)]

    check(lowered(function, ("b, n", "float32")), wanted, [line(5 * PART + 3, lines=2)])


@pytest.mark.slow
@pytest.mark.usefixtures("short_parts")
def test_several_keys_and_others_beside_them() -> None:
    def function(x: Any, y: Any, z: Any) -> Any:
        return lax.sort((x, y, z), dimension=1, num_keys=2, is_stable=True)

    def wanted(*operands: np.ndarray) -> list[np.ndarray]:
        places = np.stack([np.lexsort((y, x)) for x, y in zip(*operands[:2], strict=True)])
        return [np.take_along_axis(v, places, 1) for v in operands]

    x, y = line(6 * PART + 1, np.int64, 2, 4), line(6 * PART + 1, np.float32, 2, 4)[:, ::-1].copy()
    z = np.arange(x.size, dtype=np.int8).reshape(x.shape)
    dtypes = ("int64", "float32", "int8")
    check(lowered(function, *(("b, n", dtype) for dtype in dtypes)), wanted, [x, y, z])


@pytest.mark.usefixtures("short_parts")
def test_the_line_is_computed() -> None:
    def function(x: Any) -> Any:
        return [jnp.sort(x * 2 + 1)]

    check(lowered(function, ("b, n", "int32")), jax.jit(function), [line(5 * PART, np.int32, 2)])


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("count", [9, pytest.param(30, marks=pytest.mark.slow)])
def test_operands_of_which_few_elements_fit_into_a_tile(count: int) -> None:
    def function(x: Any) -> Any:
        return [lax.sort([(x * number) % 5 for number in range(count)] + [x], num_keys=count)[-1]]

    check(lowered(function, ("b, n", "int64")), jax.jit(function), [line(20 * PART, np.int64)])


def with_comparator(body: str) -> Compilation:
    text = COMPARATOR.format(shape="?x?", axis=-1, stable="true", body=body)
    return run_pipeline(import_stage(text, TARGETS[0], EXACT), "host")


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("name", BODIES)
def test_comparators(name: str) -> None:
    key: Callable[[Any, Any], Any] = {
        "by the second, falling": lambda x, y: -y,
        "by magnitude": lambda x, y: np.abs(x),
        "by total order": lambda x, y: -x,
        "by the last digit": lambda x, y: y % 10,
    }[name]

    def wanted(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        places = np.argsort(key(x, y), axis=1, kind="stable")
        return [np.take_along_axis(v, places, 1) for v in (x, y)]

    values = [line(5 * PART + 1, lines=2) - np.float32(25.5), line(5 * PART + 1, np.int32, 2, 1000)]
    check(with_comparator(BODIES[name]), wanted, values)


@pytest.mark.parametrize("direction", ["GE", "NE", "EQ"])
@pytest.mark.parametrize("least", [PART, TILE + 100])
def test_comparators_that_are_no_order(monkeypatch: pytest.MonkeyPatch, least: int, direction: str) -> None:
    """Any answer is allowed that is a permutation of each line, and the same in each run."""
    set_parts(monkeypatch, least)
    c = with_comparator(f"%p = stablehlo.compare {direction}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>")
    x = line(3 * least + 5, lines=2, most=4)
    y = np.tile(np.arange(x.shape[1], dtype=np.int32), (2, 1))
    with c.context, ir.Location.unknown():
        machine = Emulator(device_module(c.module))
        dims = {"arg0_d0": 2, "arg0_d1": x.shape[1]}
        found, again = (Run(c, dims, machine)([x, y]) for _ in range(2))
    sorted_, places = (v.reshape(x.shape) for v in found)
    np.testing.assert_array_equal(np.sort(places, axis=1), y)
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), sorted_)
    np.testing.assert_array_equal(places.reshape(-1), again[1])


# ---- what keeps blocks apart ----------------------------------------------------------------------------------------

COUNTS = {
    r"llvm\.fence": 4,
    r"memref\.atomic_rmw assign": 4,
    r"memref\.atomic_rmw ori": 1,
    r"gpu\.barrier": 16,
}


def launch_changed(change: Callable[[str], str], times: int = 1, blocks: int | None = None, length: int = 0) -> None:
    """Check launches of a kernel whose text is changed, one after the other on a device, in as many blocks as have
    work or fewer. The length is that of two lines."""
    c = lowered(lambda x: jnp.sort(x), ("b, n", "float32"))
    (launch,) = launches_of(c)
    dims = {"b": 2, "n": length or 5 * PART + 1}
    sizes = [size.evaluate(dims) for size in launch.sizes]
    with c.context, ir.Location.unknown():
        emulator = Emulator(device_module(ir.Module.parse(change(str(c.snapshots["host"])))))
        for number in range(times):
            given = np.random.default_rng(number).random((2, dims["n"]), np.float32)
            result, spare = (np.full(given.size, np.nan, np.float32) for _ in range(2))
            many = launch.blocks.evaluate(dims) if blocks is None else blocks
            emulator.launch(launch.name, many, [given.reshape(-1), result, spare], sizes)
            np.testing.assert_array_equal(result.reshape(2, -1), np.sort(given, 1))
            assert not any(v.data.any() for v in emulator.variables.values()), "something is left for the next launch"


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("blocks", [None, 1, 4, 7, 40])
def test_a_kernel_can_be_launched_again(blocks: int | None) -> None:
    """In any number of blocks: those that wait have begun after those that they wait for."""
    launch_changed(str, 3, blocks)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("store", [0, 1, 2])
def test_numbers_tickets_and_flags_are_set_back(store: int) -> None:
    """The other one raises a flag: without it blocks wait forever."""
    with pytest.raises(AssertionError, match="left for the next launch"):
        launch_changed(without(r"memref\.atomic_rmw assign", store, COUNTS))


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("fence", [0, 3])
def test_no_fence_can_be_left_out(fence: int) -> None:
    """The others are those of a ticket, behind which only flags are touched."""
    with pytest.raises(AssertionError, match="two blocks touch one element, and one writes it"):
        launch_changed(without(r"llvm\.fence", fence, COUNTS))


@pytest.mark.usefixtures("short_parts")
def test_blocks_wait_for_the_parts_of_their_runs() -> None:
    def change(text: str) -> str:
        pattern = r"(%\d+) = memref\.atomic_rmw ori .*"
        assert len(re.findall(pattern, text)) == COUNTS[r"memref\.atomic_rmw ori"]
        return re.sub(pattern, r"\1 = arith.constant 100 : i32", text)

    with pytest.raises(AssertionError, match="two blocks touch one element, and one writes it"):
        launch_changed(change)


@pytest.mark.parametrize("barrier", range(COUNTS[r"gpu\.barrier"]))
def test_no_barrier_can_be_left_out(monkeypatch: pytest.MonkeyPatch, barrier: int) -> None:
    """Barriers of merges matter where parts have several tiles and are merged in several steps, one of them where
    threads that merge are fewer than those of a block."""
    is_of_merge = 3 <= barrier <= 7 or barrier == 13
    set_parts(monkeypatch, TILE + 200 if is_of_merge else PART)
    monkeypatch.setattr(sort_tile, "MOST_WIDTH", 2 * THREADS)
    if barrier == 3:
        monkeypatch.setattr(sort_tile, "SHARED_BYTES", 2 << 10)
    with pytest.raises(AssertionError, match="two (threads|blocks) touch one element"):
        launch_changed(without(r"gpu\.barrier", barrier, COUNTS), length=2 * TILE + 401 if is_of_merge else 0)


# ---- what is split --------------------------------------------------------------------------------------------------


def test_how_many_blocks_there_are() -> None:
    """A power of two for a line, so that no pass is for a few parts more."""
    (launch,) = launches_of(lowered(lambda x: jnp.sort(x), ("b, n", "float32")))
    sizes = ((1, 8191), (1, 8192), (1, 1 << 22), (4, 1 << 22), (3, 1 << 22), (128, 8192), (129, 8192))
    assert [launch.blocks.evaluate({"b": b, "n": n}) for b, n in sizes] == [1, 2, 256, 256, 255, 256, 129]


def refused(shape: str) -> set[str]:
    before = OUTCOMES.copy()
    c = lowered(lambda x: jnp.sort(x), (shape, "float32"))
    assert "parts" not in str(c.snapshots["fuse"])
    return {name for (name, holds) in OUTCOMES - before if name.startswith("runs-over-blocks.") and not holds}


def test_what_is_not_split() -> None:
    assert refused("b, 8191") == {"runs-over-blocks.may-be-long"}
    assert refused("b + 128, n") == {"runs-over-blocks.may-be-few"}


def test_explain_tells_the_choice() -> None:
    found = shlo_disc.compile(lambda x: jnp.sort(x), target=TARGETS[0], args=(("b, n", "float32"),))
    assert "several blocks for each result" in found.as_text("host")


def test_parts_of_other_sizes_are_found() -> None:
    c = lowered(lambda x: jnp.sort(x), ("b, n", "float32"))
    expect_refused(c, r"(parts = .*?)floordiv\(n", r"\1floordiv(m", "its parts have other sizes than its lines")


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("target", TARGETS)
def test_machine_code(target: str) -> None:
    """No local memory, and room for three blocks, for up to three operands."""

    def function(x: Any) -> Any:
        return jnp.sort(x), with_places(x), lax.sort((x % 7, x, x + 1), num_keys=2)

    kernels = list(read(shlo_disc.compile(function, target=target, args=(("b, n", "float32"),)).as_text("ptx")))
    assert len(kernels) >= 3
    for name, _, usage, machine in kernels:
        assert usage.spills == 0 and machine.count("LDL", "STL") == 0, name
        assert usage.registers <= 80, name
