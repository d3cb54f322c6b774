# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GEMMs that fuse an epilogue, and GEMMs that become one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import shlo_disc


def launches(function: Callable[..., Any], *shapes: str) -> list[str]:
    """The kernels of a float32 function, in order."""
    executable = shlo_disc.compile(function, args=[(shape, "float32") for shape in shapes])
    return [kernel.name for kernel in executable.kernels]


def test_a_loop_over_the_same_elements_is_an_epilogue() -> None:
    assert launches(lambda x, w, c: jax.nn.relu(x @ w + c), "b, 8", "8, 20", "20") == ["gemm_f32+epilogue_add_maximum"]


def test_a_loop_that_reads_elsewhere_is_not() -> None:
    assert launches(lambda x, w: jnp.flip(x @ w, 1), "b, 8", "8, 20") == ["gemm_f32", "loop_reverse"]


def test_a_product_that_others_read_too_keeps_its_result() -> None:
    def f(x: Any, w: Any) -> Any:
        y = x @ w
        return jnp.exp(y) + 1, y[:, ::-1]

    assert launches(f, "b, 8", "8, 20")[0] == "gemm_f32"


def test_two_products_that_meet_share_the_loop_with_one_of_them() -> None:
    names = launches(lambda x, y, v, w: jax.nn.silu(x @ v) * (y @ w), "b, 8", "b, 8", "8, 20", "8, 20")
    assert len(names) == 2
    assert names[0] == "gemm_f32"
    assert names[1].startswith("gemm_f32+epilogue")


def test_a_transposed_result_has_no_epilogue() -> None:
    names = launches(lambda p, v: jnp.einsum("bhqk,bkhd->bqhd", p, v) + 1, "b, 4, s, t", "b, t, 4, 8")
    assert names == ["gemm_f32", "loop_add"]


def test_products_of_one_left_hand_side_are_one_call() -> None:
    def f(x: Any, *weights: Any) -> Any:
        return [jnp.tanh(x @ w) for w in weights]

    assert launches(f, "b, 8", *["8, 20"] * 3) == ["gemm_f32+epilogue_tanh"]
    assert len(launches(f, "b, 8", *["8, 20"] * 9)) == 2  # eight at most


def test_a_product_waits_for_its_right_hand_side() -> None:
    """The second weights are made of the first product: the two cannot be one."""

    def f(x: Any, w: Any) -> Any:
        y = x @ w
        return x @ (y.T @ y)

    names = launches(f, "b, 8", "8, 8")
    assert len(names) >= 3


def arena(function: Callable[..., Any], *shapes: str) -> str:
    """The size of the arena in bytes, as the plan has it."""
    executable = shlo_disc.compile(function, args=[(shape, "float32") for shape in shapes])
    found = re.search(r'disc.arenas = \[@?"?([^",\]]*)', executable.as_text("plan"))
    assert found is not None
    return found.group(1).split(" : ")[0]


def test_an_epilogue_overwrites_what_it_reads_last() -> None:
    def f(x: Any, y: Any, a: Any, b: Any) -> Any:
        r = jnp.tanh(x @ a)
        return jnp.tanh(y @ b + r) @ a

    assert arena(f, "b, 16", "b, 16", "16, 16", "16, 16") == "64*b"


def test_a_left_hand_side_is_not_overwritten() -> None:
    def f(x: Any, a: Any, b: Any) -> Any:
        r = jnp.tanh(x @ a)
        return jnp.tanh(r @ b + r) @ a

    assert arena(f, "b, 16", "16, 16", "16, 16") == "128*b"


def test_sums_that_wait_for_their_rows_do_not_lie_on_what_is_read_with_them() -> None:
    def f(x: Any, y: Any, a: Any, b: Any) -> Any:
        r = jnp.tanh(x @ a)
        return jax.nn.softmax(y @ b + r) @ a

    assert arena(f, "b, 16", "b, 16", "16, 16", "16, 16") == "128*b"
