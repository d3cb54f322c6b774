# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of f32 by TF32 in the emulator, whose products read no bits that TF32 has not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from shlo_disc.lowering_gpu import tf32_attention
from shlo_disc.lowering_gpu.few_queries import FEW
from shlo_disc.shape_dialect.mlir import ir
from tests.ir.gpu_cases import TARGETS, Run, assert_close, launches_of
from tests.ir.gpu_emulator import Emulator
from tests.ir.test_gpu_attention import OneBlock, biased, causal, hiding, plain, transposed_values
from tests.ir.test_gpu_epilogues import Texts, device_module, given

TOLERANCE = 2e-3
"""The part of the largest result that others may be off by: operands of up to about 4, each off by 2^-12."""


def lowered(function: Any, arguments: Texts, precision: str = "tf32") -> Compilation:
    options = shlo_disc.Options(matmul_precision=precision)
    return run_pipeline(import_stage(function, TARGETS[0], options, arguments, None, ()), "host")


def arguments_of(depth: int, width: int | None = None) -> Texts:
    return tuple((f"b, {size}, {n}", "float32") for size, n in zip("qkk", (depth, depth, width or depth), strict=True))


def check(
    function: Callable[..., Any],
    arguments: Texts,
    *all_dims: dict[str, int],
    change: Callable[[str], str] = str,
    machine_of: Callable[[Emulator], Any] = lambda emulator: emulator,
) -> None:
    c = lowered(function, arguments)
    assert [launch.kind for launch in launches_of(c)].count("attention") == 1
    with c.context, ir.Location.unknown():
        text = str(device_module(c.module))
        assert "tf32Enabled" in text
        machine = machine_of(Emulator(ir.Module.parse(change(text))))
        for dims in all_dims:
            values = given(arguments, dims)
            assert_close(Run(c, dims, machine)(values), jax.jit(function)(*values), TOLERANCE)


def dims(b: int, q: int, k: int) -> dict[str, int]:
    return {"b": b, "q": q, "k": k}


@pytest.mark.parametrize("keys", [0, 1, 63, 64, 65, 130])
@pytest.mark.parametrize("queries", [1, 128, 129])
@pytest.mark.parametrize("function", [plain, causal])
def test_sizes_around_tiles(function: Callable[..., Any], queries: int, keys: int) -> None:
    check(function, arguments_of(8), dims(1, queries, keys))


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (7, 24), (8, 8), (24, 17), (33, 64), (64, 64), (60, 36)])
def test_heads_of_any_size(depth: int, width: int) -> None:
    """Aligned or not, with queries in shared memory and in registers."""
    check(causal, arguments_of(depth, width), dims(2, 5, 19), dims(1, 130, 140))


@pytest.mark.parametrize("function", [hiding, transposed_values])
def test_forms(function: Callable[..., Any]) -> None:
    check(function, arguments_of(8), dims(2, 66, 70))


@pytest.mark.slow
def test_biases_and_shared_keys() -> None:
    check(biased, (*arguments_of(16), ("b, q, k", "float32")), dims(1, 17, 67))

    def function(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("sghd,tgd->ghst", q, k))
        return jnp.einsum("ghst,tgd->sghd", weights, v)

    keys = ("t, 2, 8", "float32")
    check(function, (("s, 2, 3, 8", "float32"), keys, keys), {"s": 5, "t": 17}, {"s": 130, "t": 66})


# ---- rounding -------------------------------------------------------------------------------------------------------

UP, DOWN = 1 + 0.75 * 2.0**-10, 1 + 0.25 * 2.0**-10
"""Numbers whose nearest in TF32 are 1 + 2^-10, and 1."""


def attention_of(q: list[float], keys: list[list[float]], values: list[float]) -> float:
    """The result for a query, as often as takes it to tensor cores; heads have eight elements: the given, then 0."""

    def padded(rows: list[list[float]]) -> np.ndarray:
        return np.array([[*row, *[0] * (8 - len(row))] for row in rows], np.float32)[None]

    c = lowered(
        lambda q, k, v: jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)), v), arguments_of(8)
    )
    with c.context, ir.Location.unknown():
        machine = Emulator(ir.Module.parse(str(device_module(c.module))))
        arrays = [padded([q] * (FEW + 1)), padded(keys), padded([[v] for v in values])]
        (found,) = Run(c, dims(1, FEW + 1, len(keys)), machine)(arrays)
    return float(np.asarray(found).reshape(-1)[0])


def roundings() -> list[bool]:
    """Tells whether values, keys and queries are rounded to the nearest: by results that are far from what is cut."""
    e = float(np.e)
    return [
        attention_of([0], [[0], [0], [0]], [UP] * 3) == 1 + 2.0**-10,
        abs(attention_of([1024], [[UP], [DOWN]], [1, 0]) - e / (e + 1)) < 1e-3,
        abs(attention_of([UP, 1], [[1024, -1024], [0]], [1, 0]) - e / (e + 1)) < 1e-3,
    ]


def test_operands_are_rounded_to_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert roundings() == [True] * 3
    monkeypatch.setattr(tf32_attention, "round_to_tf32", lambda value: value)
    assert roundings() == [False] * 3


@pytest.mark.parametrize("precision", ["highest", "tf32x3"])
def test_more_bits_than_tf32_are_exact(precision: str) -> None:
    c = lowered(plain, arguments_of(8), precision)
    with c.context:
        assert "mma" not in str(device_module(c.module))


@pytest.mark.parametrize(("depth", "width"), [(65, 8), (8, 65)])
def test_wide_heads_are_exact(depth: int, width: int) -> None:
    c = lowered(plain, arguments_of(depth, width))
    with c.context:
        assert "mma" not in str(device_module(c.module))


def test_attentions_of_two_precisions_share_no_kernel() -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        def one(precision: str) -> Any:
            weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k, precision=precision))
            return jnp.einsum("bqk,bkd->bqd", weights, v, precision=precision)

        return one("highest"), one("default")

    c = run_pipeline(import_stage(function, TARGETS[0], shlo_disc.Options(), arguments_of(8), None, ()), "host")
    with c.context:
        text = str(device_module(c.module))
    kernels = re.split(r"(?=gpu\.func @attention)", text)[1:]
    assert sorted("tf32Enabled" in kernel for kernel in kernels) == [False, True]


# ---- barriers -------------------------------------------------------------------------------------------------------

KINDS = {8: (0, 5, 8), 7: (5, 8, 8), 64: (0, 8, 14), 63: (8, 14, 14)}
"""By the size of heads: the barriers that are met there, and all of the kernel."""


@pytest.mark.parametrize(
    ("depth", "number"), [(d, i) for d, (begin, end, _) in KINDS.items() for i in range(begin, end)]
)
def test_no_barrier_can_be_left_out(depth: int, number: int) -> None:
    def change(text: str) -> str:
        places = [found.start() for found in re.finditer(r"gpu\.barrier\n", text)]
        assert len(places) == KINDS[depth][2] + 5  # the body for few queries has five
        return text[: places[number]] + text[places[number] + len("gpu.barrier\n") :]

    check(causal, arguments_of(depth), dims(2, 130, 130), machine_of=OneBlock)
    with pytest.raises(AssertionError, match="two threads touch one element"):
        check(causal, arguments_of(depth), dims(2, 130, 130), change=change, machine_of=OneBlock)
