# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of few queries on GPUs, whose keys are split over blocks: sizes, numbers, and what keeps blocks apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from shlo_disc.lowering_gpu.few_queries import FEW
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.transforms.decisions import OUTCOMES
from tests.ir.gpu_cases import Run, assert_close, launches_of
from tests.ir.gpu_emulator import Emulator
from tests.ir.gpu_mutations import expect_refused, without
from tests.ir.test_gpu_attention import hiding, mixed, plain, scores
from tests.ir.test_gpu_epilogues import Texts, check, device_module, lowered
from tests.run.op_check import random_array

KEYS = GPU_POLICY.part_keys
TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}


def arguments_of(dtype: str, rows: str = "1", depth: int = 8, width: int = 0, batch: str = "b") -> Texts:
    return tuple((f"{batch}, {n}, {size}", dtype) for n, size in ((rows, depth), ("k", depth), ("k", width or depth)))


def parts_of(arguments: Texts, dims: dict[str, int], function: Callable[..., Any] = plain) -> int:
    """The blocks that have a part of each matrix's keys."""
    (launch,) = launches_of(lowered(function, *arguments))
    return launch.blocks.evaluate(dims) // dims["b"]


# ---- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "parts"), [(1, 1), (KEYS, 1), (2 * KEYS - 1, 1), (2 * KEYS, 2), (2 * KEYS + 1, 2), (3 * KEYS + 5, 3)]
)
def test_keys_around_each_number_of_parts(keys: int, parts: int) -> None:
    assert parts_of(arguments_of("float32"), {"b": 2, "k": keys}) == parts
    check(plain, arguments_of("float32"), {"b": 2, "k": keys})


@pytest.mark.parametrize(
    ("matrices", "keys", "parts"), [(1, 1 << 20, 264), (12, 1000, 7), (12, 1 << 14, 22), (132, 4096, 2), (133, 4096, 1)]
)
def test_as_many_parts_as_make_enough_blocks(matrices: int, keys: int, parts: int) -> None:
    assert parts_of(arguments_of("bfloat16"), {"b": matrices, "k": keys}) == parts


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rows", [2, 5, 8, FEW])
def test_rows_that_are_known(rows: int, dtype: str) -> None:
    """So many that a key is read once for all, or more; of the last ones there may be fewer than of others."""
    check(plain, arguments_of(dtype, str(rows)), {"b": 1, "k": 2 * KEYS + 9}, tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_that_are_not_known(dtype: str) -> None:
    arguments, keys = arguments_of(dtype, "q"), 2 * KEYS
    for rows, parts in ((1, 2), (3, 2), (FEW, 2), (FEW + 1, 1)):
        dims = {"b": 1, "q": rows, "k": keys}
        assert parts_of(arguments, dims) == parts
        if rows != FEW:
            check(plain, arguments, dims, tolerance=5 * TOLERANCE[dtype])


def test_the_choice_is_explained() -> None:
    (call,) = re.findall(r"disc_host\.launch.*", str(lowered(plain, *arguments_of("float32", "q")).snapshots["host"]))
    assert "keys in parts" in call and "several blocks for each result" in call


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (7, 24), (16, 8), (24, 17), (33, 64), (128, 128)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rows", ["1", "6"])
def test_heads_of_any_size(depth: int, width: int, dtype: str, rows: str) -> None:
    check(plain, arguments_of(dtype, rows, depth, width), {"b": 1, "k": 2 * KEYS + 3}, tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_heads_that_share_keys_with_lengths(dtype: str) -> None:
    """Query [b, g, h, d] with g groups of h heads, key and value [b, t, g, d], of which each b sees some."""

    def function(q: Any, k: Any, v: Any, length: Any) -> Any:
        s = jnp.einsum("bghd,btgd->bght", q, k, preferred_element_type=jnp.float32)
        s = jnp.where(jnp.arange(k.shape[1]) < length[:, None, None, None] + 99, s, -1e30)
        return jnp.einsum("bght,btgd->bghd", jax.nn.softmax(s).astype(v.dtype), v)

    keys = ("b, t, 2, 8", dtype)
    arguments = (("b, 2, 3, 8", dtype), keys, keys, ("b", "int32"))
    (launch,) = [one for one in launches_of(lowered(function, *arguments)) if one.kind == "attention"]
    assert launch.blocks.evaluate({"b": 2, "t": 300}) == 2 * 2 * 2
    check(function, arguments, {"b": 2, "t": 300}, tolerance=TOLERANCE[dtype])


# ---- numbers --------------------------------------------------------------------------------------------------------


def biased(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return mixed(jax.nn.softmax(scores(q, k).astype(jnp.float32) + bias).astype(v.dtype), v)


COUNT = 3 * KEYS


def rows_of_biases() -> np.ndarray:
    """Rows with all parts hidden, one or two of them, a NaN, infinities, and steps between parts."""
    found = np.zeros((1, 10, COUNT), np.float32)
    found[0, 0] = -np.inf
    found[0, 1, :KEYS], found[0, 2, KEYS : 2 * KEYS], found[0, 3, KEYS:] = -np.inf, -np.inf, -np.inf
    found[0, 4], found[0, 4, 2 * KEYS + 5] = -np.inf, -3.0
    found[0, 5, KEYS + 1], found[0, 6, 2 * KEYS] = np.nan, np.inf
    found[0, 7, :KEYS], found[0, 7, 2 * KEYS :] = 3e38, 50.0
    found[0, 8, 2 * KEYS :] = 200.0
    found[0, 9] = -1e30
    return found


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_hidden_parts_and_numbers_that_are_none(dtype: str) -> None:
    bias = rows_of_biases()
    arguments = (*arguments_of(dtype, "10"), ("b, 10, k", "float32"))
    given = [random_array((1, n, 8), dtype, i) for i, n in enumerate((10, COUNT, COUNT))]
    c = lowered(biased, *arguments)
    with c.context, ir.Location.unknown():
        (found,) = Run(c, {"b": 1, "k": COUNT}, Emulator(device_module(c.module)))([*given, bias])
    expected = np.asarray(jax.jit(biased)(*given, bias)).astype(np.float32)
    assert np.isnan(expected[0, [0, 5, 6]]).all() and np.isfinite(expected[0, [1, 2, 3, 4, 7, 8, 9]]).all()
    found = np.asarray(found).view(given[2].dtype).astype(np.float32).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * TOLERANCE[dtype])


def test_rows_of_which_nothing_is_seen_are_zeros_where_the_program_says_so() -> None:
    check(hiding, arguments_of("float32", "5"), {"b": 1, "k": 2 * KEYS})


@pytest.mark.parametrize(("dtype", "value"), [("float32", 3.3e38), ("float16", 6e4), ("bfloat16", 3.3e38)])
def test_sums_stay_in_the_range_of_the_values(dtype: str, value: float) -> None:
    """Keys of equal weight and values near the largest, and one without a number behind the last key of a block."""
    type_ = {"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype)
    q, k = (np.zeros((1, n, 8), type_) for n in (1, 2 * KEYS + 40))
    v = np.full((1, 2 * KEYS + 40, 8), value, type_)
    c = lowered(plain, *arguments_of(dtype))
    with c.context, ir.Location.unknown():
        (found,) = Run(c, {"b": 1, "k": k.shape[1]}, Emulator(device_module(c.module)))([q, k, v])
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), float(v[0, 0, 0]), rtol=TOLERANCE[dtype])


def test_narrow_weights_are_not_rounded() -> None:
    """256 keys whose weights round to a little less in bf16, beside one of half of the weight."""
    bias = np.full((1, 1, 2 * KEYS), np.log(1.00341), np.float32)
    bias[0, 0, 0] = np.log(2 * KEYS)
    q, k = (np.zeros((1, n, 8), ml_dtypes.bfloat16) for n in (1, 2 * KEYS))
    v = np.ones((1, 2 * KEYS, 8), ml_dtypes.bfloat16)
    v[0, 0] = -1
    c = lowered(biased, *arguments_of("bfloat16"), ("b, 1, k", "float32"))
    with c.context, ir.Location.unknown():
        (found,) = Run(c, {"b": 1, "k": 2 * KEYS}, Emulator(device_module(c.module)))([q, k, v, bias])
    powers = np.exp(bias[0, 0].astype(np.float64))
    expected = (powers * v[0, :, 0].astype(np.float64)).sum() / powers.sum()
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), expected, atol=2e-5)


# ---- what keeps blocks apart ----------------------------------------------------------------------------------------


def launch_changed(change: Callable[[str], str], times: int = 1, blocks: int | None = None, matrices: int = 2) -> None:
    """Check launches of the kernel whose text is changed, one after the other on a device, in as many blocks as have
    work or fewer."""
    arguments, dims = arguments_of("float32", "2"), {"b": matrices, "k": 2 * KEYS + 1}
    c = lowered(plain, *arguments)
    (launch,) = launches_of(c)
    sizes = [size.evaluate(dims) for size in launch.sizes]
    with c.context, ir.Location.unknown():
        emulator = Emulator(device_module(ir.Module.parse(change(str(c.snapshots["host"])))))
        for number in range(times):
            given = [
                random_array((matrices, n, 8), "float32", number + i) for i, n in enumerate((2, dims["k"], dims["k"]))
            ]
            result = np.zeros(matrices * 2 * 8, np.float32)
            partials = [np.full(2 * matrices * 2 * n, np.nan, np.float32) for n in (1, 1, 8)]
            many = launch.blocks.evaluate(dims) if blocks is None else blocks
            emulator.launch(launch.name, many, [*(g.reshape(-1) for g in given), result, *partials], sizes)
            assert_close([result], [plain(*given)], 1e-5)


COUNTS = {r"llvm\.fence": 2, r"memref\.atomic_rmw assign": 1, r"gpu\.barrier": 9}


@pytest.mark.parametrize("blocks", [None, 1, 3])
def test_a_kernel_can_be_launched_again(blocks: int | None) -> None:
    launch_changed(str, 3, blocks)


def test_the_last_block_resets_the_ticket() -> None:
    with pytest.raises(AssertionError):
        launch_changed(without(r"memref\.atomic_rmw assign", 0, COUNTS), 2)


@pytest.mark.parametrize("fence", [0, 1])
def test_no_fence_can_be_left_out(fence: int) -> None:
    with pytest.raises(AssertionError, match="two blocks touch one element, and one writes it"):
        launch_changed(without(r"llvm\.fence", fence, COUNTS))


def test_a_ticket_has_to_be_atomic() -> None:
    def change(text: str) -> str:
        """Adds to the ticket by a load and a store."""
        pattern = r"(%\d+) = memref\.atomic_rmw addi (%\S+), (%\S+)\[(%\S+)\] : \(i32, (memref<.*>)\) -> i32"
        plain_add = r"\1 = memref.load \3[\4] : \5\n%next = arith.addi \1, \2 : i32\nmemref.store %next, \3[\4] : \5"
        return re.sub(pattern, plain_add, text, count=1)

    with pytest.raises(AssertionError, match="two blocks touch one element"):
        launch_changed(change)


@pytest.mark.parametrize("barrier", range(COUNTS[r"gpu\.barrier"]))
def test_no_barrier_can_be_left_out(barrier: int) -> None:
    """The last one stands between two items of a block."""
    with pytest.raises(AssertionError, match="two (threads|blocks) touch one element"):
        launch_changed(without(r"gpu\.barrier", barrier, COUNTS), blocks=1 if barrier == 8 else None)


# ---- what is not split ----------------------------------------------------------------------------------------------


def refused(arguments: Texts, function: Callable[..., Any] = plain) -> set[str]:
    before = OUTCOMES.copy()
    c = lowered(function, *arguments)
    assert "partials" not in str(c.snapshots["fuse"])
    return {name for (name, holds) in OUTCOMES - before if name.startswith("keys-over-blocks.") and not holds}


def test_conditions_of_keys_in_parts() -> None:
    few_keys = (("b, 1, 8", "float32"), *(("b, 255, 8", "float32"),) * 2)
    assert refused(arguments_of("float32", str(FEW + 1))) == {"keys-over-blocks.may-have-few-queries"}
    assert refused(few_keys) == {"keys-over-blocks.may-be-long"}
    assert refused(arguments_of("float32", batch="b + 132")) == {"keys-over-blocks.may-be-few"}


def test_wrong_room_for_parts_is_found() -> None:
    c = lowered(plain, *arguments_of("float32"))
    expect_refused(c, r"(partials = )3", r"\g<1>2", "has other sizes than rows and what they weigh")


@pytest.mark.parametrize("rows", ["1", "3"])
def test_sizes_that_are_known_but_for_the_keys(rows: str) -> None:
    """Reductions to few results would be cut into parts by themselves, and there would be no attention."""
    arguments = arguments_of("bfloat16", rows, batch="2")
    assert [launch.kind for launch in launches_of(lowered(plain, *arguments))] == ["attention"]
    check(plain, arguments, {"k": 2 * KEYS}, tolerance=TOLERANCE["bfloat16"])


def test_a_softmax_of_a_product_alone_is_cut_into_parts() -> None:
    arguments = (("2, 8", "float32"), ("k, 8", "float32"))
    before = OUTCOMES["split-reductions", True]
    kinds = [one.kind for one in launches_of(lowered(lambda q, k: jax.nn.softmax(q @ k.T), *arguments))]
    assert "attention" not in kinds and OUTCOMES["split-reductions", True] > before
    assert len(kinds) > 3
