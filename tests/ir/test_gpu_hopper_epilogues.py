# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products by wgmma and TMA that do what follows as well, in the emulator: every tile, races, and machine code."""

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
from shlo_disc.lowering_gpu import device_module, hopper, hopper_product, hopper_sums
from shlo_disc.lowering_gpu.hopper_launch import name_by_maps
from shlo_disc.lowering_gpu.hopper_ring import SHARED_BYTES
from shlo_disc.shape_dialect.mlir import ir
from tests.gpu.mock_tensor_maps import MOST_SHARED
from tests.gpu.sass import read
from tests.gpu.test_sass import needs_tools
from tests.ir.gpu_cases import EXACT, assert_close
from tests.ir.gpu_emulator import Emulator
from tests.ir.test_gpu_epilogues import products_of
from tests.ir.test_gpu_hopper import map_of
from tests.run.op_check import random_array

TARGET = "cuda:sm_90a"


def wide(x: Any, w: Any) -> Any:
    return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)


def tanh_of_rows(x: Any, w: Any, b: Any) -> Any:
    """The epilogue depends on the row and on the column."""
    y = wide(x, w) + b[:, None]
    return jnp.tanh(y) * jax.lax.broadcasted_iota(jnp.int32, y.shape, 1).astype(jnp.float32)


def lowered(function: Callable[..., Any], *arguments: tuple[str, str]) -> Compilation:
    """A program at the stage `host`."""
    start = import_stage(function, TARGET, EXACT, arguments, None, ())
    return run_pipeline(start, "host")


def run(m: int, n: int, k: int, element: str = "bfloat16", blocks: int = 2) -> None:
    """The kernel, made as things are, gives XLA's numbers."""
    c = lowered(tanh_of_rows, ("m, k", element), ("k, n", element), ("m", "float32"))
    x, w, b = random_array((m, k), element, 0), random_array((k, n), element, 1), random_array((m,), "float32", 2)
    memory = np.full((m + 1, n), 77, np.float32)
    (product,) = products_of(c)
    numbers = [size.evaluate({"m": m, "n": n, "k": k}) for size in product.kernel.sizes]
    maps = [map_of(x, True, "mk"), map_of(w, False, "kn")]
    with c.context, ir.Location.unknown():
        emulator = Emulator(device_module(c.module))
        room = np.zeros(0, np.float32)  # for parts of the depth, which this kernel does not have
        pointers = [x.reshape(-1), w.reshape(-1), b, memory.reshape(-1)[: m * n], room]
        emulator.launch(name_by_maps(product.kernel.kernel), blocks, pointers, numbers, maps)
    assert_close(memory[:m], jax.jit(tanh_of_rows)(x, w, b), 2e-5)
    assert (memory[m:] == 77).all()


@pytest.mark.parametrize("sizes", [(1, 1, 1), (63, 127, 17), (64, 128, 64), (65, 129, 65), (37, 255, 131)], ids=str)
@pytest.mark.parametrize("element", ["bfloat16", "float16"])
def test_small_tiles(element: str, sizes: tuple[int, int, int]) -> None:
    run(*sizes, element)


@pytest.mark.parametrize("least", [1, 3], ids=["large", "medium"])
@pytest.mark.parametrize("sizes", [(127, 255, 31), (128, 256, 64), (129, 257, 65), (131, 383, 8)], ids=str)
def test_larger_tiles(sizes: tuple[int, int, int], least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper_product, "PROCESSORS", least)
    run(*sizes)


@pytest.mark.parametrize("blocks", [1, 3, 7])
def test_any_number_of_blocks(blocks: int) -> None:
    run(130, 259, 40, blocks=blocks)


@pytest.mark.parametrize("left_out", [0, 1])
def test_warps_meet(left_out: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where sums have been read, nor where they have been written, can it be left out."""
    whole, count = hopper.meet_warp, iter(range(1000))
    monkeypatch.setattr(hopper, "meet_warp", lambda: None if next(count) % 2 == left_out else whole())
    with pytest.raises(AssertionError, match="two threads touch one element"):
        run(65, 129, 20)


def test_a_warp_reads_what_it_has_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of warps that overlap are found, as those do not wait for each other."""
    whole = hopper_sums._position

    def shifted() -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
        of_all, *rest = whole()
        return hopper_sums.arith.divui(of_all, hopper_sums.index_constant(2)), *rest

    monkeypatch.setattr(hopper_sums, "_position", shifted)
    with pytest.raises(AssertionError, match="two (threads|warps) touch one element"):
        run(65, 129, 20)


def test_sums_stay_in_their_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper_sums, "KEPT_BYTES", hopper_sums.KEPT_BYTES - 512)
    with pytest.raises(AssertionError, match="outside a size"):
        run(65, 129, 20)


def test_a_block_has_room_for_slices_and_sums() -> None:
    assert SHARED_BYTES + hopper_sums.KEPT_BYTES <= MOST_SHARED


# ---- machine code ---------------------------------------------------------------------------------------------------


def gelu(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.gelu(wide(x, w) + b, approximate=False).astype(x.dtype)


def scaled(x: Any, w: Any, b: Any) -> Any:
    y = jax.lax.dot_general(x, w, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)
    return jnp.tanh(y.astype(jnp.float32) * b).astype(jnp.bfloat16)


@functools.cache
def ptx(element: str) -> str:
    function, right = (scaled, "n, k") if element == "int8" else (gelu, "k, n")
    arguments = (("m, k", element), (right, element), ("n", "float32"))
    return shlo_disc.compile(function, target=TARGET, args=arguments).as_text("ptx")


@needs_tools
@pytest.mark.ptxas
@pytest.mark.parametrize("element", ["bfloat16", "float16", "int8"])
def test_machine_code(element: str) -> None:
    """Nothing is spilled, products do not wait for each other, and what follows stands there once for each tile."""
    kernels = {name: (usage, machine) for name, _, usage, machine in read(ptx(element)) if name.endswith("_by_maps")}
    ((usage, machine),) = kernels.values()
    assert usage.spills == machine.count("LDL", "STL") == 0 and usage.registers <= 168
    assert usage.shared == hopper_sums.KEPT_BYTES
    assert machine.count("UTMALDG.2D") == 3 + 4 + 6 and machine.count("USETMAXREG") == 2
    assert machine.count("IGMMA" if element == "int8" else "HGMMA") == 24
    assert machine.count("WARPGROUP.DEPBAR") <= 9
    begun = ptx(element).split("wgmma.commit_group")[1:]
    assert not any("st." in part.split("wgmma.wait_group")[0] for part in begun)
    assert 64 in machine.widths("STG") and machine.count("STG") < 200
