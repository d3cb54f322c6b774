# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by wgmma and TMA in the emulator: sizes around tiles, masks, shared heads, and that its checks find what is
wrong."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering_gpu import hopper, hopper_attention
from shlo_disc.lowering_gpu.hopper_attention import ROWS
from shlo_disc.lowering_gpu.hopper_launch import BY_MAPS, NO_WORD, header_of, name_by_maps
from shlo_disc.shape_dialect.mlir import ir
from tests.ir import gpu_cases, gpu_hopper
from tests.ir import test_gpu_tensor_attention as tensor_attention
from tests.ir.gpu_cases import EXACT, Run, assert_close
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_hopper_state import TensorMap
from tests.ir.gpu_roles import Roles
from tests.ir.test_gpu_attention import JAX, TOLERANCE, biased, causal, plain
from tests.ir.test_gpu_causal_masks import SHIFTS, hidden_by
from tests.ir.test_gpu_epilogues import Texts, device_module, given
from tests.ir.test_gpu_hopper import LEFT_OUT
from tests.ir.test_gpu_tensor_attention import negated, other_place, scaled
from tests.run.op_check import random_array


def lowered(function: Any, *arguments: tuple[str, str]) -> Compilation:
    """A program for sm_90a at the stage `host`."""
    return run_pipeline(import_stage(function, "cuda:sm_90a", EXACT, arguments, None, ()), "host")


class ByMaps:
    """A machine that runs kernels by tensor maps, of all launches that have one."""

    def __init__(self, emulator: Emulator, most_blocks: int = 3):
        self.emulator, self.most_blocks = emulator, most_blocks
        self.launched: list[str] = []

    def launch(self, name: str, blocks: int, pointers: Sequence[np.ndarray], sizes: Sequence[int]) -> None:
        other = self.emulator.functions.get(name_by_maps(name)) if name.startswith("attention") else None
        self.launched.append(name if other is None else name_by_maps(name))
        if other is None:
            self.emulator.launch(name, blocks, pointers, sizes)
            return
        spec: Any = header_of(other.attributes[BY_MAPS])
        words = [*pointers, *sizes]
        maps = [self._map(spec, operand, words) for operand in spec["operands"]]
        self.emulator.launch(name_by_maps(name), min(blocks, self.most_blocks), pointers, sizes, maps)

    @staticmethod
    def _map(spec: Any, operand: Any, words: Sequence[Any]) -> TensorMap:
        def told(word: int, number: int) -> int:
            return number if word == NO_WORD else words[word]

        axes = [(told(*axis[:2]), told(*axis[2:])) for axis in operand["axes"]]
        sizes = tuple(min(size, 1) if step == 0 else size for size, step in axes)
        data = words[operand["pointer"]][operand["start"] :]
        box = (spec["box_columns"], spec["box_rows"], *[1] * (len(axes) - 2))
        return TensorMap(data, sizes, tuple(step for _, step in axes), box)


def check(
    function: Callable[..., Any],
    arguments: Texts,
    *all_dims: dict[str, int],
    tolerance: float = 5e-2,
    most_blocks: int = 3,
    change: Callable[[str], str] = str,
) -> None:
    """The emulated program gives XLA's numbers, by the kernel with tensor maps."""
    c = lowered(function, *arguments)
    with c.context, ir.Location.unknown():
        machine = ByMaps(Emulator(ir.Module.parse(change(str(device_module(c.module))))), most_blocks)
        for dims in all_dims:
            values = given(arguments, dims)
            assert_close(Run(c, dims, machine)(values), jax.jit(function)(*values), tolerance)
            assert any(name.endswith("_by_maps") for name in machine.launched)
            machine.launched.clear()


def arguments_of(dtype: str, *more: tuple[str, str], depth: int = 8) -> Texts:
    keys = (f"b, k, {depth}", dtype)
    return ((f"b, q, {depth}", dtype), keys, keys, *more)


# ---- numbers --------------------------------------------------------------------------------------------------------

SIZES = [(1, 1), (63, 127), (64, 128), (65, 129), (127, 63), (128, 256), (129, 257), (131, 197)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_sizes_around_tiles(queries: int, keys: int, dtype: str) -> None:
    check(plain, arguments_of(dtype), {"b": 2, "q": queries, "k": keys}, tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize(("queries", "keys"), [(1, 193), (65, 64), (128, 128), (130, 263), (200, 65)])
@pytest.mark.parametrize("shift", SHIFTS)
def test_causal_sizes_around_tiles(shift: str, queries: int, keys: int) -> None:
    """More keys than queries, and fewer; the diagonal on and beside the edges of pieces."""
    check(hidden_by(-1e9, SHIFTS[shift]), arguments_of("bfloat16"), {"b": 1, "q": queries, "k": keys})


@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 64, 127, 128, 129, 193, 256, 263])
@pytest.mark.parametrize("queries", [1, 65, 128, 130, 257])
@pytest.mark.parametrize("shift", SHIFTS)
def test_more_causal_sizes(shift: str, queries: int, keys: int) -> None:
    check(hidden_by(-np.inf, SHIFTS[shift]), arguments_of("float16"), {"b": 1, "q": queries, "k": keys}, tolerance=1e-2)


HEADS = [(8, 8), (16, 64), (64, 64), (72, 40), (96, 104), (128, 128), (128, 8)]


@pytest.mark.parametrize(("depth", "width"), HEADS)
@pytest.mark.parametrize("function", [plain, causal])
def test_heads_of_any_size(depth: int, width: int, function: Callable[..., Any]) -> None:
    arguments = tuple((f"b, {size}", "bfloat16") for size in (f"q, {depth}", f"k, {depth}", f"k, {width}"))
    check(function, arguments, {"b": 1, "q": 131, "k": 197})


@pytest.mark.parametrize("most_blocks", [1, 2, 7])
def test_any_number_of_blocks(most_blocks: int) -> None:
    dims = {"b": 3, "q": 130, "k": 140}
    check(causal, arguments_of("float16"), dims, tolerance=1e-2, most_blocks=most_blocks)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_warpgroups(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warpgroups run, and copies land, in other orders: several tiles of a block, some of which go on behind a mask."""
    monkeypatch.setattr(gpu_hopper, "Roles", lambda number, goes_on: Roles(number + 1000 * seed, goes_on))
    for function in (plain, hidden_by(0.5, SHIFTS["behind"])):
        check(function, arguments_of("bfloat16"), {"b": 2, "q": 140, "k": 300}, most_blocks=1)


@pytest.mark.parametrize("number", [-np.inf, -1e9, -100.0, 0.5])
def test_what_a_mask_hides_counts_where_it_does(number: float) -> None:
    """Numbers that the largest score is not far above: the block goes on behind its last row."""
    check(hidden_by(number, SHIFTS["behind"]), arguments_of("bfloat16"), {"b": 2, "q": 140, "k": 300}, most_blocks=1)


@pytest.mark.parametrize("number", [-np.inf, -1e9])
def test_hidden_pieces_are_not_computed(number: float) -> None:
    """Values that are NaN show which pieces are: those behind the tile's last row are not."""
    count = ROWS + 66
    q, k, v = (random_array((1, count, 8), "bfloat16", i) for i in range(3))
    v[0, ROWS:] = np.nan
    c = lowered(hidden_by(number, SHIFTS["none"]), *arguments_of("bfloat16"))
    with c.context, ir.Location.unknown():
        machine = ByMaps(Emulator(ir.Module.parse(str(device_module(c.module)))))
        (found,) = Run(c, {"b": 1, "q": count, "k": count}, machine)([q, k, v])
    found = np.asarray(found).view(q.dtype).astype(np.float32).reshape(count, 8)
    assert np.isnan(found[ROWS:]).all()
    assert np.isfinite(found[:ROWS]).all()


@pytest.mark.parametrize("shape", ["b, q, k", "b, q, 1"])
def test_biases(shape: str) -> None:
    arguments = arguments_of("bfloat16", (shape, "bfloat16"))
    check(biased, arguments, {"b": 2, "q": 67, "k": 130})


@pytest.mark.parametrize(
    ("name", "heads"), [*((name, 4) for name in JAX), *((name, 2) for name in ("causal", "mask", "lengths"))]
)
@pytest.mark.slow
def test_attention_of_jax(name: str, heads: int) -> None:
    """Attention of 4 heads, of which some may share keys; lengths and masks."""
    function, more = JAX[name]
    keys = (f"b, t, {heads}, 8", "bfloat16")
    arguments = (("b, s, 4, 8", "bfloat16"), keys, keys, *((shape, kind or "bfloat16") for shape, kind in more))
    check(function, arguments, {"b": 2, "s": 21, "t": 133})


def test_heads_that_share_keys() -> None:
    """Query [s, g, h, d] with g groups of h heads; key and value [t, g, d]: matrices without a step along h."""

    def function(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("sghd,tgd->ghst", q, k))
        return jnp.einsum("ghst,tgd->sghd", weights, v)

    keys = ("t, 2, 16", "float16")
    check(function, (("s, 2, 3, 16", "float16"), keys, keys), {"s": 67, "t": 135}, {"s": 1, "t": 1}, tolerance=1e-2)


def test_queries_keys_and_values_are_read_where_they_lie_together() -> None:
    def function(x: Any, w: Any) -> Any:
        q, k, v = (part.reshape(*part.shape[:2], 2, 16) for part in jnp.split(x @ w, 3, axis=-1))
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)

    check(function, (("b, s, 24", "bfloat16"), ("24, 96", "bfloat16")), {"b": 2, "s": 67})


@pytest.mark.parametrize("name", ["attention_groups", "attention_heads", "attention_narrow"])
def test_the_programs_that_are_checked_on_gpus(name: str) -> None:
    case = gpu_cases.CASES[name]
    c = lowered(case.function, *case.arguments)
    with c.context, ir.Location.unknown():
        machine = ByMaps(Emulator(ir.Module.parse(str(device_module(c.module)))))
        for dims in ({"b": 1, "s": 1}, {"b": 2, "s": 33}, {"b": 1, "s": 150}):
            values = gpu_cases.arrays(case, dims)
            assert_close(Run(c, dims, machine)(values), jax.jit(case.function)(*values), case.tolerance)


@pytest.mark.parametrize("function", [other_place, negated, *map(scaled, (0.125, -0.5))])
def test_masks_and_factors_of_whole_pieces(function: Callable[..., Any]) -> None:
    check(function, arguments_of("bfloat16"), {"b": 3, "q": 200, "k": 200})


def test_wide_results() -> None:
    """Sums that are not rounded."""

    def function(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k, preferred_element_type=jnp.float32))
        return jnp.einsum("bqk,bkd->bqd", weights.astype(v.dtype), v, preferred_element_type=jnp.float32)

    check(function, arguments_of("bfloat16"), {"b": 1, "q": 70, "k": 150})


@pytest.mark.parametrize(("dtype", "scale"), [("float16", 3e4), ("bfloat16", 1.6e38)])
def test_scores_that_are_hard_to_subtract(dtype: str, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_attention, "lowered", lowered)
    monkeypatch.setattr(tensor_attention, "Emulator", lambda module: ByMaps(Emulator(module)))
    assert tensor_attention.wrong_rows(dtype, scale) == []


def test_which_attentions() -> None:
    """Heads that are neighbours, more queries than a few, up to three axes of matrices, and 16-bit elements."""

    def names(function: Callable[..., Any], *arguments: tuple[str, str], target: str = "cuda:sm_90a") -> list[str]:
        c = run_pipeline(import_stage(function, target, EXACT, arguments, None, ()), "host")
        return re.findall(r"gpu\.func @(attention\w+_by_maps)", str(c.module))

    def swapped(q: Any, k: Any, v: Any) -> Any:
        return plain(q, jnp.swapaxes(k, 1, 2), v)

    assert names(plain, *arguments_of("bfloat16")) == ["attention_0_bf16_8_by_maps"]
    assert names(plain, *arguments_of("float32")) == []
    assert names(plain, *arguments_of("bfloat16"), target="cuda:sm_90") == []
    assert names(plain, *(("b, 16, 8", "bfloat16"), *arguments_of("bfloat16")[1:])) == []
    assert names(swapped, ("b, q, 8", "bfloat16"), ("b, 8, k", "bfloat16"), ("b, k, 8", "bfloat16")) == []


# ---- each check can fail --------------------------------------------------------------------------------------------

CASES: tuple[dict[str, int], ...] = ({"b": 1, "q": 300, "k": 420}, {"b": 4, "q": 20, "k": 77})
"""Several tiles of a block with whole pieces and others, and one whose first piece is not whole."""


def broken(function: Callable[..., Any] = plain) -> None:
    """Checks in one block, in a program of its own."""
    check(function, arguments_of("bfloat16", depth=16), *CASES, most_blocks=1)


def fails(text: str, function: Callable[..., Any] = plain) -> None:
    with pytest.raises(AssertionError, match=text):
        broken(function)


@pytest.mark.parametrize("function", [plain, hidden_by(0.5, SHIFTS["none"])])
def test_the_mutated_attention_is_right_without_mutation(function: Callable[..., Any]) -> None:
    broken(function)


EMPTY = range(3)
"""Calls of `wait_for` by the threads that bring: queries, keys, values."""

FULL = range(3, 11)
"""Calls of `wait_for` by the other threads: queries, the first keys, whole or not, keys and values of later pieces,
whole or not, and the last values."""


@pytest.mark.parametrize("number", [*EMPTY, *FULL])
def test_no_wait_can_be_left_out(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()
    whole = hopper.wait_for

    def other(*given: Any) -> None:
        if next(calls) != number:
            whole(*given)

    monkeypatch.setattr(hopper, "wait_for", other)
    fails("has not landed|not equal|may still read|two copies to one place|more arrive|all warpgroups wait")
    assert next(calls) == FULL.stop


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        *(("fence", number, "without a fence") for number in range(7)),
        *(("arrive", number, "all warpgroups wait") for number in range(8)),
    ],
)
def test_no_fence_or_arrival_can_be_left_out(
    name: str, number: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fences before each group of products: of the first scores, whole or not, of scores and weights of later pieces,
    and of the last weights. Arrivals behind them, and at the barrier of the queries."""
    calls = itertools.count()
    whole = getattr(hopper, name)
    monkeypatch.setattr(hopper, name, lambda *given: None if next(calls) == number else whole(*given))
    fails(text)
    assert next(calls) == {"fence": 7, "arrive": 8}[name]


@pytest.mark.parametrize("pending", [0, 1])
def test_no_wait_for_products_can_be_left_out(pending: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hopper.wait_for_products
    monkeypatch.setattr(hopper, "wait_for_products", lambda n: None if n == pending else whole(n))
    fails("while a product adds|may still read")


@pytest.mark.parametrize(("name", "text"), [*LEFT_OUT, ("meet_at", "arrive"), ("arrive_at", "all warpgroups wait")])
def test_without_an_instruction(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setattr(hopper, name, lambda *_, **__: None)
    fails(text)


@pytest.mark.parametrize("number", range(3))
def test_no_vote_can_be_left_out(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Votes of the threads that bring, and of the others behind the first piece and behind later ones."""
    calls = itertools.count()
    whole = hopper.any_in_block

    def other(condition: ir.Value) -> ir.Value:
        return condition if next(calls) == number else whole(condition)

    monkeypatch.setattr(hopper, "any_in_block", other)
    fails("all warpgroups wait|not equal|Not equal|under way", hidden_by(0.5, SHIFTS["none"]))
    assert next(calls) == 3


def test_wrong_steps_of_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hopper.depth_step
    monkeypatch.setattr(hopper, "depth_step", lambda inside: whole(not inside))
    fails("not equal|Not equal|amidst|outside|not landed")


def test_wrong_offsets_in_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hopper.Boxes.at
    monkeypatch.setattr(hopper.Boxes, "at", lambda self, offset: whole(self, offset + hopper.ATOM_BYTES))
    fails("not equal|Not equal|outside|not landed")


def test_too_many_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper_attention, "REGISTERS", (32, 240))
    fails("too many registers")


def test_too_little_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper_attention.Memory, "bytes", property(lambda self: self.barriers))
    fails("outside of the shared memory")
