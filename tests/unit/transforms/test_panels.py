# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions for kernels to look up rows of a matrix in its packed form, and the checker that proves them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from shlo_disc.driver.compiler import Compilation
from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.names import PANELS
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.regions import entry_block
from shlo_disc.transforms.decisions import TURNED_OFF
from shlo_disc.verify import verify_panels
from tests.unit.transforms.deciding import Function, compiled, taken

TABLE, STATES, TOKENS = "50, 64", "b, 64", "b"


def tokens(t: Any) -> Any:
    return t.astype(jnp.int32)


def tied(w: Any, t: Any) -> Any:
    return jnp.tanh(w[tokens(t)]) @ w.T


def normalised(w: Any, t: Any) -> Any:
    x = w[tokens(t)]
    return (x - x.mean(-1, keepdims=True)) @ w.T


def of_one(w: Any, t: Any) -> Any:
    """A row that begins at an integer."""
    return jnp.tanh(lax.dynamic_slice(w, (tokens(t)[0], 0), (1, 64))) @ w.T


def filled(w: Any, t: Any) -> Any:
    return jnp.tanh(jnp.take(w, tokens(t), axis=0, mode="fill", fill_value=0)) @ w.T


def twice(w: Any, t: Any) -> Any:
    """Two kernels, and a product whose sums an epilogue reads."""
    x = jnp.tanh(w[tokens(t)])
    return jax.nn.softmax(x @ w.T), jnp.sin(w[tokens(t * 2)])


def closed_over(w: Any, t: Any) -> Any:
    with jax.ensure_compile_time_eval():
        table = jax.random.normal(jax.random.key(0), (50, 64))
    return jnp.tanh(table[tokens(t)]) @ table.T + w.sum()


@pytest.mark.parametrize("function", [tied, normalised, of_one, filled, twice, closed_over])
def test_tables(function: Function) -> None:
    done, _ = compiled(function, TABLE, TOKENS, last="plan", strict=True, verify=True)
    assert taken(done, "read-panels") == 1
    assert panel_calls(done)


def rows_of_a_product(w: Any, t: Any) -> Any:
    """The rows of the right-hand side are what is multiplied by."""
    return jnp.tanh(w[tokens(t)][:, :50]) @ w


def both(w: Any, t: Any) -> Any:
    x = jnp.tanh(w[tokens(t)])
    return x @ w.T, x[:, :50] @ w


def also_read_whole(w: Any, t: Any) -> Any:
    return jnp.tanh(w[tokens(t)]) @ w.T, w * 2


def also_returned(w: Any, t: Any) -> Any:
    return jnp.tanh(w[tokens(t)]) @ w.T, w


def also_the_left_side(w: Any, t: Any) -> Any:
    return jnp.tanh(w[tokens(t)]) @ w.T, w @ w.T


def also_updated(w: Any, t: Any) -> Any:
    return jnp.tanh(w[tokens(t)]) @ w.T, w.at[tokens(t)].add(1.0)


def also_sorted(w: Any, t: Any) -> Any:
    return jnp.tanh(w[tokens(t)]) @ w.T, jnp.sort(w, axis=0)


def by_halves(w: Any, t: Any) -> Any:
    """The table is read in another form."""
    return jnp.tanh(w.reshape(100, 32)[tokens(t)].repeat(2, axis=1)) @ w.T


def multiplied_after_a_step(w: Any, t: Any) -> Any:
    return jnp.tanh(w[tokens(t)]) @ (w * 2).T


def of_no_known_size(w: Any, t: Any) -> Any:
    return jnp.tanh(w[tokens(t)]) @ w.T


REFUSED: list[tuple[str, Function, str]] = [
    ("has-rows-for-columns", rows_of_a_product, TABLE),
    ("has-rows-for-columns", both, TABLE),
    ("is-looked-up", also_read_whole, TABLE),
    ("is-looked-up", also_returned, TABLE),
    ("is-looked-up", also_the_left_side, TABLE),
    ("is-looked-up", also_updated, TABLE),
    ("is-looked-up", also_sorted, TABLE),
    ("is-looked-up", by_halves, TABLE),
    ("is-matrix-of-words", of_no_known_size, "v, 64"),
]


@pytest.mark.parametrize(("condition", "function", "table"), REFUSED)
def test_what_is_read_where_it_lies(condition: str, function: Function, table: str) -> None:
    done, failed = compiled(function, table, TOKENS, last="plan", strict=True, verify=True)
    assert f"read-panels.{condition}" in failed
    assert not panel_calls(done)


def test_a_table_that_no_product_reads() -> None:
    done, _ = compiled(multiplied_after_a_step, TABLE, TOKENS, last="plan", strict=True)
    assert taken(done, "read-panels") == 0


def panel_calls(done: Compilation) -> list[ir.Operation]:
    assert done.module is not None
    ops = [op.operation for block in all_blocks(entry_block(done.module)) for op in block.operations]
    return [op for op in ops if PANELS in op.attributes]


def check(done: Compilation) -> None:
    assert done.module is not None
    verify_panels(done.module, entry_block(done.module))


@pytest.mark.parametrize(
    "change",
    [
        lambda call: 0 if str(call.operands[0].type).endswith("xi32>") or len(call.operands) < 2 else 1,
        lambda call: len(call.operands) - 1,
    ],
)
def test_the_checker_finds_another_operand(change: Callable[[ir.Operation], int]) -> None:
    """Tokens, or what another kernel makes, for the table."""
    done, _ = compiled(normalised, TABLE, TOKENS, last="plan", strict=True)
    (call,) = panel_calls(done)
    check(done)
    (before,) = call.attributes[PANELS]
    other = change(call)
    other = other if other != before else 1 - before
    with call.context:
        call.attributes[PANELS] = ir.DenseI64ArrayAttr.get([other])
    with pytest.raises(CompilerError, match="is read from panels"):
        check(done)


def reads_more(w: Any, t: Any) -> Any:
    """One kernel looks up rows of the table and reads others of it."""
    return (jnp.tanh(w[tokens(t)]) + w[:1]) @ w.T


def test_the_checker_finds_other_reads() -> None:
    TURNED_OFF.add("read-panels.is-looked-up")
    try:
        done, _ = compiled(reads_more, TABLE, TOKENS, last="plan", strict=True, verify=False)
    finally:
        TURNED_OFF.clear()
    assert panel_calls(done)
    with pytest.raises(CompilerError, match="not only looked up"):
        check(done)
