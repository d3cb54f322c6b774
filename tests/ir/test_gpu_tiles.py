# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposes on GPUs, by tiles in the memory of the block: numbers at sizes around tiles, accesses, banks, barriers."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
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
from tests.gpu.sass import read
from tests.gpu.test_sass import needs_tools
from tests.ir import gpu_vectors
from tests.ir.gpu_cases import TARGETS, Case, arrays, assert_close, emulated, launches_of
from tests.ir.gpu_emulator import Block, Emulator
from tests.ir.test_gpu_loops import kernels, shifted
from tests.ir.test_gpu_loops import lowered as lowered_loop


@pytest.fixture(autouse=True)
def _doubles() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def plain(dtype: str) -> Case:
    """A transpose alone."""
    return Case(lambda x: x.T, (("b, s", dtype),), 0)


def several(x: Any, y: Any, z: Any) -> Any:
    """Transposes of three types, of which one is computed from another, and an operand that lies as the result."""
    return (x + 1).T * y.T + z, (y.T > 0), (x.T * 2).astype(jnp.float16)


TILES = {
    "bytes": plain("int8"),
    "halves": plain("float16"),
    "words": plain("float32"),
    "doubles": plain("float64"),
    "flags": plain("bool"),
    "eighths": Case(lambda x: x.astype(jnp.float8_e4m3fn).T.astype(jnp.float32), (("b, s", "float32"),), 0),
    "nibbles": Case(
        lambda x, y: jnp.maximum(x.astype(jnp.int4).T, y.astype(jnp.int4)).astype(jnp.int8),
        (("b, s", "int8"), ("s, b", "int8")),
        0,
    ),  # fmt: skip
    "batches": Case(lambda x: x.transpose(0, 2, 1), (("3, b, s", "float32"),), 0),
    "first_to_last": Case(lambda x: x.transpose(1, 2, 0), (("b, 3, s", "float32"),), 0),
    "last_to_first": Case(lambda x: x.transpose(2, 0, 1), (("3, b, s", "bfloat16"),), 0),
    "all_reversed": Case(lambda x: x.transpose(3, 2, 1, 0), (("b, 2, 3, s", "float32"),), 0),
    "several": Case(several, (("b, s", "float32"), ("b, s", "int8"), ("s, b", "float32"))),
    "three": Case(lambda x, y, z: x.T * y.T - z.T, (("b, s", "float32"),) * 3),
    "rows_and_columns": Case(
        lambda x, y, z: x.T * y + z[:, None], (("b, s", "float32"), ("b", "float32"), ("s", "float32"))
    ),
    "long": Case(lambda x, y: jnp.tanh(jnp.sin(x.T)) + y, (("b, s", "float32"), ("s, b", "float32")), 1e-6),
    "windows": Case(lambda x: x[:, 1:].T, (("b, s + 1", "float32"),), 0),
}

SIDE = {"bytes": 128, "halves": 128, "words": 64, "doubles": 64}
LANES = {"bytes": 8, "halves": 8, "words": 4, "doubles": 2}


@functools.cache
def lowered(name: str, constraints: tuple[str, ...] = ()) -> Compilation:
    case = TILES[name]
    with jax.enable_x64(True):
        start = import_stage(case.function, TARGETS[0], shlo_disc.Options(), case.arguments, None, constraints)
        return run_pipeline(start, "host")


def assert_right(name: str, b: int, s: int, shift: int = 0, constraints: tuple[str, ...] = ()) -> None:
    case, dims = TILES[name], {"b": b, "s": s}
    given = [shifted(a, shift) for a in arrays(case, dims)]
    assert_close(emulated(lowered(name, constraints), dims, given), jax.jit(case.function)(*given), case.tolerance)


# ---- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SIDE))
def test_sizes_around_tiles(name: str) -> None:
    side, lanes = SIDE[name], LANES[name]
    for b, s in (
        (1, 1), (1, side), (15, 16), (16, 16), (17, 31), (side - 1, side + 1), (side, side - lanes), (side, side),
        (side + lanes, side), (side + lanes, 2 * side + lanes), (side + 1, side), (2 * side + 1, 16 + lanes),
    ):  # fmt: skip
        assert_right(name, b, s)


@pytest.mark.parametrize("name", sorted(TILES.keys() - SIDE.keys()))
def test_what_is_transposed_and_what_follows(name: str) -> None:
    for b, s in ((16, 16), (64, 64), (68, 40), (72, 152), (33, 64), (65, 63), (7, 80)):
        assert_right(name, b, s)


@pytest.mark.parametrize("name", ["words", "several"])
def test_no_elements(name: str) -> None:
    for b, s in ((0, 64), (64, 0), (64, 64)):
        assert_right(name, b, s, constraints=("b >= 0", "s >= 0"))


@pytest.mark.parametrize("name", ["bytes", "halves", "words", "doubles", "several"])
def test_arguments_at_any_address(name: str) -> None:
    """The emulator refuses accesses of several elements elsewhere than at a multiple of their size."""
    for shift in (1, 2, 3):
        assert_right(name, 72, 136, shift)


# ---- accesses -----------------------------------------------------------------------------------------------------


class Counted:
    """Elements moved by pieces and one by one, and the banks that threads meet in, while kernels ran.

    conflicts: how many accesses of shared memory took longer than they had to, of those by pieces.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.in_pieces = self.single = self.conflicts = 0
        neighbours, touch = gpu_vectors.VectorOps._neighbours, Block._touch

        def of_pieces(block: Any, op: Any, view: Any, indices: Any, active: Any, values: Any) -> Any:
            if block._is_shared(view):
                itemsize = view.data.itemsize
                self.conflicts += conflicts(view.offsets(indices, active) * itemsize, active, len(values) * itemsize)
            before = self.single
            found = neighbours(block, op, view, indices, active, values)
            self.in_pieces += self.single - before
            self.single = before
            return found

        def counted(block: Any, view: Any, indices: Any, active: Any, value: Any) -> Any:
            self.single += int(active.sum())
            return touch(block, view, indices, active, value)

        monkeypatch.setattr(gpu_vectors.VectorOps, "_neighbours", of_pieces)
        monkeypatch.setattr(Block, "_touch", counted)


def conflicts(first: np.ndarray, active: np.ndarray, width: int) -> int:
    """The number of groups of threads, each accessing `width` bytes, 128 together, that meet in a bank."""
    together = 128 // width
    found = 0
    for lanes in np.arange(len(first)).reshape(-1, together):
        words = np.unique((first[lanes][active[lanes]][:, None] + np.arange(0, width, 4)) // 4)
        found += len(np.unique(words % 32)) < len(words)
    return found


@pytest.mark.parametrize("name", sorted(SIDE))
def test_aligned_tiles_are_moved_in_pieces_without_conflicts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    side, lanes = SIDE[name], LANES[name]
    counted = Counted(monkeypatch)
    assert_right(name, side + lanes, 2 * side)
    assert (counted.single, counted.conflicts) == (0, 0)
    assert counted.in_pieces == 4 * (side + lanes) * 2 * side, "memory and shared memory, each read and written once"


@pytest.mark.parametrize(("b", "s", "shift"), [(65, 64, 0), (64, 65, 0), (64, 64, 1)])
def test_other_tiles_are_moved_by_elements(b: int, s: int, shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    assert_right("words", b, s, shift)
    assert counted.in_pieces == 0 and counted.single == 4 * b * s


def test_conflicts_are_found() -> None:
    """Rows without a piece between their groups."""
    threads = np.arange(32)
    assert conflicts(threads * 16, threads >= 0, 16) == 0
    assert conflicts(threads * 16 * 16, threads >= 0, 16) == 4


# ---- code ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        ("bytes", [128]), ("halves", [128]), ("words", [64]), ("doubles", [64]),
        ("several", [64, 64, 64]), ("three", [32, 32, 32]), ("long", [64]),
    ],
)  # fmt: skip
def test_forms_of_tiles(name: str, elements: list[int]) -> None:
    """Three tiles of words have no room for pieces of 16 bytes."""
    text = kernels(lowered(name))
    found = [int(n) for n in re.findall(r"memref\.global .* memref<(\d+)x\w+,", text)]
    assert found == [side * (side + 1) for side in elements]


@pytest.mark.parametrize("name", ["tiles", "tiles_of_halves", "tiles_of_computed", "tiles_across", "two_tiles"])
def test_transposes_go_through_the_memory_of_the_block(name: str) -> None:
    text = kernels(lowered_loop(name))
    assert text.count("gpu.barrier") == (2 if name == "two_tiles" else 4), "17 is of no pieces"


@pytest.mark.parametrize("name", ["along_columns", "f32", "reversed"])
def test_nothing_else_does(name: str) -> None:
    assert "gpu.barrier" not in kernels(lowered_loop(name))


def test_tiles_are_taken_where_they_are_filled() -> None:
    (launched,) = launches_in(lowered("words").snapshots["host"])
    noted = [(g.variant, " and ".join(map(str, g.conditions))) for g in launched.guards]
    assert noted == [
        ("divisions of 32 bits", "b*s < 2147483648"),
        ("tiles", "s >= 16 and b >= 16"),
        ("tiles in pieces of 4", "mod(s, 4) == 0 and mod(b, 4) == 0"),
    ]
    (launch,) = launches_of(lowered("words"))
    assert launch.blocks.evaluate({"b": 65, "s": 100}) == 2 * 2
    assert launch.blocks.evaluate({"b": 15, "s": 100}) == -(-15 * 100 // 256)


def test_sizes_that_are_known_choose_the_pieces() -> None:
    case = Case(lambda x: x.transpose(0, 2, 1), (("b, 20, 36", "float16"),))
    start = import_stage(case.function, TARGETS[0], shlo_disc.Options(), case.arguments, None, ("b <= 100",))
    c = run_pipeline(start, "host")
    (launched,) = launches_in(c.snapshots["host"])
    text = kernels(c)
    assert launched.guards == () and "vector<4xf16>" in text and "vector<8xf16>" not in text


@pytest.mark.parametrize("left_out", range(4))
def test_no_barrier_can_be_left_out(left_out: int) -> None:
    """Two of tiles in pieces, two of tiles in single elements."""
    c = lowered("words")
    pieces = re.split(r"(?<=\n) *gpu\.barrier\n", str(c.snapshots["host"]))
    assert len(pieces) == 5
    text = pieces[0] + "".join(("" if i == left_out else "gpu.barrier\n") + p for i, p in enumerate(pieces[1:]))
    size = 128 if left_out < 2 else 127
    x, y = (shifted(np.ones(size * size, np.float32), 0) for _ in range(2))
    (launch,) = launches_of(c)
    sizes = [one.evaluate({"b": size, "s": size}) for one in launch.sizes]
    for is_broken in (False, True):
        with c.context, ir.Location.unknown():
            machine = Emulator(device_module(ir.Module.parse(text if is_broken else str(c.snapshots["host"]))))
            if not is_broken:
                machine.launch(launch.name, 1, [x, y], sizes)
                continue
            with pytest.raises(AssertionError, match="two threads touch one element"):
                machine.launch(launch.name, 1, [x, y], sizes)


MOST = {"bytes": 4, "halves": 4, "words": 9, "doubles": 15}
"""Instructions for an element of a tile in pieces, at most."""


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", sorted(MOST))
def test_machine_code_of_tiles(name: str, target: str) -> None:
    case, lanes = TILES[name], LANES[name]
    compiled = shlo_disc.compile(case.function, target=target, args=case.arguments)
    for _, _, usage, machine in read(compiled.as_text("ptx")):
        width = lanes * np.dtype(case.arguments[0][1]).itemsize * 8
        in_pieces = [loop for loop in machine.loops if any(str(width) in code and "LDG" in code for code in loop)]
        assert len(in_pieces) == 1 and machine.count("LDL", "STL") == usage.spills == 0
        assert _stores(in_pieces[0]) * 256 * lanes == SIDE[name] ** 2, "all of a tile's pieces"
        assert in_pieces[0].total() <= MOST[name] * _stores(in_pieces[0]) * lanes
        written = [loop for loop in machine.loops if loop not in in_pieces and any("LDS" in code for code in loop)]
        assert len(written) == 1 and written[0].total() <= 7 * _stores(written[0])


def _stores(loop: Counter[str]) -> int:
    return sum(n for code, n in loop.items() if code.startswith("STG"))
