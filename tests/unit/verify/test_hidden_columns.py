# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checker of causal masks where rows come in pieces: what is said of a mask that is one, and of one that is not."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.errors import CompilerError
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.verify import verify_fusions
from tests.unit.shape_dialect.test_dialect_verifier import refusal

ARGUMENTS = tuple((f"b, {size}, 8", "float32") for size in "qkk")


def attention(change: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """Attention of scores that are changed, by the numbers of their rows and columns."""

    def function(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bqd,bkd->bqk", q, k)
        row, column = (jax.lax.broadcasted_iota(jnp.int32, scores.shape, axis) for axis in (1, 2))
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(change(scores, row, column)), v)

    return function


MASKS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "-inf": lambda s, row, column: jnp.where(column <= row, s, -jnp.inf),
    "-inf of f64": lambda s, row, column: jnp.where(column <= row, s, -jnp.inf),
    "-1e9": lambda s, row, column: jnp.where(column <= row, s, -1e9),
    "-1e9 of f64": lambda s, row, column: jnp.where(column <= row, s, -1e9),
    "strict": lambda s, row, column: jnp.where(row > column, s, -1e9),
    "not": lambda s, row, column: jnp.where(~(column <= row + 2), -5.0, s),
    "scaled": lambda s, row, column: jnp.where(column <= row, s, 7.0) * 0.5 - 3,
    "of functions": lambda s, row, column: jnp.exp(jnp.where(column - 1 <= row, -s, -4.0) / 2),
    "several": lambda s, row, column: jnp.where((column <= row) & (s < 4), s, -jnp.inf),
    "negative": lambda s, row, column: -jnp.where(column <= row, s, 30.0),
}


@functools.cache
def fused(name: str) -> str:
    with jax.enable_x64("f64" in name):
        start = import_stage(attention(MASKS[name]), "cuda:sm_80", Options(strict=True), ARGUMENTS, None, ())
    return str(run_pipeline(start, last="fuse").module)


def check(text: str) -> None:
    with make_context(), ir.Location.unknown():
        verify_fusions(ir.Module.parse(text))


@pytest.mark.parametrize("name", MASKS)
def test_masks_that_hide_columns(name: str) -> None:
    """Compiling checks them, too."""
    assert "causal = {" in fused(name)
    check(fused(name))


@pytest.mark.parametrize("name", [name for name in MASKS if name not in ("-inf", "-inf of f64", "several")])
def test_a_smaller_bound_is_wrong(name: str) -> None:
    (bound,) = re.findall(r"bound = (\S+) : f64", fused(name))
    lower = float(bound) - abs(float(bound)) / 8
    text = fused(name).replace(f"bound = {bound}", f"bound = {lower:e}")
    with pytest.raises(CompilerError, match="may be larger than their bound"):
        check(text)


@pytest.mark.parametrize("name", MASKS)
def test_another_offset_is_wrong(name: str) -> None:
    """Columns that are not hidden may be as large as scores are."""
    (offset,) = re.findall(r"offset = (\S+) : i64", fused(name))
    with pytest.raises(CompilerError, match="may be larger than their bound"):
        check(fused(name).replace(f"offset = {offset} :", f"offset = {int(offset) - 1} :"))


def test_another_number_of_rows_is_wrong() -> None:
    text = re.sub(r"(rows = \{.*?size = )@q", r"\1@k", fused("-inf"))
    assert text != fused("-inf")
    with pytest.raises(CompilerError, match="counts other rows"):
        check(text)


@pytest.mark.parametrize("name", MASKS)
def test_comparisons_are_marked_and_what_is_said_of_them_is_checked(name: str) -> None:
    ((before, truth),) = re.findall(r"(disc.seen = array<i64: 1, 2, )([01])>", fused(name))
    check(fused(name))
    with pytest.raises(CompilerError, match="a comparison is said to be something else"):
        check(fused(name).replace(f"{before}{truth}>", f"{before}{1 - int(truth)}>"))


def test_another_place_of_a_comparison_is_wrong() -> None:
    text = fused("-inf").replace("disc.seen = array<i64: 1, 2, 1>", "disc.seen = array<i64: 0, 2, 1>")
    with pytest.raises(CompilerError, match="a comparison is said to be something else"):
        check(text)


@pytest.mark.parametrize("wrong", ["2, 1, 1", "1, 3, 1", "1, 2, 2", "1, 2"])
def test_axes_and_a_truth_are_said_of_a_comparison(wrong: str) -> None:
    assert refusal(fused("-inf")) == ""
    assert "is not an axis of rows" in refusal(fused("-inf").replace("array<i64: 1, 2, 1>", f"array<i64: {wrong}>"))
