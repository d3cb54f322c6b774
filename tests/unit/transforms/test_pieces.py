# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions for products to read pieces of arrays where they lie, in programs that meet all other conditions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from jax import lax

import shlo_disc
from tests.unit.transforms.deciding import Function, compiled, taken

X, STACK, ODD = "3, 64", "5, 64, 64", "5, 7, 7"


def at_a_number(x: Any, w: Any) -> Any:
    return x @ w[2]


def in_a_loop(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, layer: (jnp.tanh(c @ layer), None), x, w)[0]


def at_two_indices(x: Any, w: Any) -> Any:
    """The places are computed of data."""
    i = x[0, 0].astype(jnp.int32)
    return x @ lax.dynamic_slice(w, (i, i % 3, 0, 0), (1, 1, 64, 64))[0, 0]


TAKEN: list[tuple[Function, tuple[str, ...], int]] = [
    (at_a_number, (X, STACK), 1),
    (in_a_loop, (X, STACK), 1),
    (in_a_loop, (X, "layers, 64, 64"), 1),
    (at_two_indices, (X, "5, 4, 64, 64"), 1),
]


@pytest.mark.parametrize(("function", "shapes", "count"), TAKEN)
def test_pieces(function: Function, shapes: tuple[str, ...], count: int) -> None:
    done, _ = compiled(function, *shapes, last="plan", strict=True)
    assert taken(done, "piece") == count


def columns(x: Any, w: Any) -> Any:
    return x @ w[:, 16:32]


def also_returned(x: Any, w: Any) -> Any:
    layer = w[2]
    return x @ layer, layer


def also_read_by_a_loop(x: Any, w: Any) -> Any:
    layer = lax.dynamic_index_in_dim(w, x[0, 0].astype(jnp.int32), keepdims=False)
    return lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ layer), x)


def at_a_place_of_8_bits(x: Any, w: Any) -> Any:
    return x @ lax.dynamic_index_in_dim(w, x[0, 0].astype(jnp.int8), keepdims=False)


REFUSED: list[tuple[str, Function, tuple[str, ...]]] = [
    ("are-dense", columns, (X, "64, 64")),
    ("are-dense", at_a_number, ("3, 7", ODD)),
    ("are-dense", in_a_loop, ("3, 7", ODD)),
    ("begin-at-integers", at_a_place_of_8_bits, (X, STACK)),
    ("are-for-products", also_returned, (X, STACK)),
    ("are-for-products", also_read_by_a_loop, (X, STACK)),
]


@pytest.mark.parametrize(("condition", "function", "shapes"), REFUSED)
def test_what_has_a_buffer_of_its_own(condition: str, function: Function, shapes: tuple[str, ...]) -> None:
    done, failed = compiled(function, *shapes, last="plan", strict=True)
    assert f"piece.{condition}" in failed
    assert taken(done, "piece") == 0


def test_gpus_copy_pieces() -> None:
    executable = shlo_disc.compile(at_a_number, args=((X, "float32"), (STACK, "float32")), target="cuda:sm_90")
    assert "loop_slice" in [kernel.name for kernel in executable.kernels]
