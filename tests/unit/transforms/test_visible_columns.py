# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks of data whose hidden columns are skipped, forward and backward, and those next to them that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from shlo_disc.driver.compiler import import_stage, run_pipeline
from shlo_disc.options import Options
from shlo_disc.shape_dialect.dialect.fusion import Attention, fusion_of, is_fusion, kind_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.utils.regions import entry_block
from shlo_disc.transforms.decisions import OUTCOMES

SHAPES = (
    *((shape, jnp.float32) for shape in ("b, h, q, 8", "b, h, k, 8", "b, h, k, 8")),
    ("b, q", jnp.int32),
    ("b, k", jnp.int32),
)

Function = Callable[..., Any]


class Fused:
    """A fused program: the kinds of what it calls, its attentions, and the conditions that did not hold."""

    def __init__(self, function: Function, shapes: Any = SHAPES, constraints: Sequence[str] = ()):
        scope = export.SymbolicScope(constraints)
        specs = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), d) for s, d in shapes]
        before = Counter(OUTCOMES)
        program = export.export(jax.jit(function))(*specs)
        module = run_pipeline(import_stage(program, "cpu", Options(strict=True), None, None, ()), last="fuse").module
        self.failed = {name for (name, holds), count in (OUTCOMES - before).items() if count and not holds}
        functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        calls = [op for op in entry_block(module).operations if op.operation.name == "func.call"]
        called = [functions[ir.FlatSymbolRefAttr(c.attributes["callee"]).value] for c in calls]
        self.kinds = [kind_of(f) for f in called]
        self.problems = [f.problem for f in map(fusion_of, filter(is_fusion, called)) if isinstance(f, Attention)]

    @property
    def magnitudes(self) -> list[int]:
        """The bounds of scores of the attentions whose masks are data."""
        return [p.visible.magnitude for p in self.problems if p is not None and p.visible is not None]


def attend(change: Callable[..., Any], weights: Callable[..., Any] = lambda p, *_: p) -> Function:
    """Attention whose scores `change(scores, mask)` changes, the mask being that of equal integers."""

    def run(query: Any, key: Any, value: Any, rows: Any, columns: Any, *others: Any) -> Any:
        scores = jnp.einsum("bhqd,bhkd->bhqk", query, key)
        mask = (rows[:, :, None] == columns[:, None, :])[:, None]
        probabilities = jax.nn.softmax(change(scores, mask, *others), axis=-1)
        return jnp.einsum("bhqk,bhkd->bhqd", weights(probabilities, mask), value)

    return run


def low(scores: Any, mask: Any, *_: Any) -> Any:
    return jnp.where(mask, scores, np.float32(-1e9))


PROVED = {
    "selects": (low, 100_000_000),
    "selects the others": (lambda s, m: jnp.where(~m, np.float32(-1e4), s), 1_000),
    "adds": (lambda s, m: s + jnp.where(m, np.float32(0), np.float32(-1e9)), 100_000_000),
    "multiplies": (lambda s, m: s + (1 - m.astype(jnp.float32)) * np.finfo(np.float32).min, 100_000_000),
    "caps": (lambda s, m: jnp.where(m, 30 * jnp.tanh(s / 30), -jnp.inf), 100_000_000),
}


@pytest.mark.parametrize("name", PROVED)
def test_masks_of_data_are_recognised(name: str) -> None:
    change, magnitude = PROVED[name]
    fused = Fused(attend(change))
    assert fused.kinds == ["row_reduce", "attention"] and fused.magnitudes == [magnitude]


def test_a_mask_from_memory() -> None:
    def change(scores: Any, mask: Any, given: Any) -> Any:
        return jnp.where(given[:, None], scores, -jnp.inf)

    fused = Fused(attend(change), (*SHAPES, ("b, q, k", jnp.bool_)))
    assert fused.kinds == ["row_reduce", "attention"] and fused.magnitudes == [100_000_000]


def test_a_bias_beside_a_mask() -> None:
    """A bias may be of any size, and so lower than any number that stands for hidden elements, but for -inf."""
    shapes = (*SHAPES, ("h, q, k", jnp.float32))
    assert Fused(attend(lambda s, m, bias: jnp.where(m, s + bias, -jnp.inf)), shapes).magnitudes == [1 << 62]
    refused = Fused(attend(lambda s, m, bias: jnp.where(m, s + bias, np.float32(-1e9))), shapes)
    assert refused.magnitudes == [] and "visible-softmax.hidden-elements-are-infinite" in refused.failed


def test_layers_share_what_is_counted() -> None:
    def run(query: Any, key: Any, value: Any, rows: Any, columns: Any) -> Any:
        layer = attend(low)
        return layer(layer(query, key, value, rows, columns), key, value, rows, columns)

    assert Fused(run).kinds == ["row_reduce", "attention", "attention"]


REFUSED = {
    "visible-columns.reductions-skip-hidden": attend(lambda s, m: jnp.where(m, s, s - 50)),
    "visible-columns.hidden-weights-are-zero": attend(low, lambda p, m: p + 1),
}


@pytest.mark.parametrize("condition", REFUSED)
def test_masks_that_hide_nothing_for_sure(condition: str) -> None:
    fused = Fused(REFUSED[condition])
    assert fused.magnitudes == [] and condition in fused.failed


def test_a_mask_that_is_read_transposed_as_well() -> None:
    """The transposed one is another array, which hides no column of its own."""
    function = attend(low, lambda p, m: jnp.where(jnp.swapaxes(m, 2, 3), p, np.float32(0)))
    fused = Fused(function, tuple((shape.replace("k", "q"), dtype) for shape, dtype in SHAPES))
    assert fused.kinds == ["loop", "loop", "row_reduce", "attention"] and fused.magnitudes == [100_000_000]


def test_weights_that_are_dropped_are_not_hidden() -> None:
    fused = Fused(attend(lambda s, m: s, lambda p, m: jnp.where(m, p / 0.9, 0)))
    assert "attention" in fused.kinds and fused.magnitudes == []


def test_a_mask_made_of_scores() -> None:
    fused = Fused(attend(lambda s, m: jnp.where(s > 0.5, s, -jnp.inf)))
    assert "attention" in fused.kinds and fused.magnitudes == []


def test_a_mask_that_compares_floats() -> None:
    def run(query: Any, key: Any, value: Any) -> Any:
        scores = jnp.einsum("bhqd,bhkd->bhqk", query, key)
        row, column = (jax.lax.broadcasted_iota(jnp.float32, scores.shape[2:], axis) for axis in (0, 1))
        mask = column * 0.3 <= row * 0.7
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1), value)

    fused = Fused(run, SHAPES[:3])
    assert fused.magnitudes == [] and "visible-columns.masks-are-of-integers" in fused.failed


# ---- gradients ------------------------------------------------------------------------------------------------------


def gradients(function: Function, wrt: tuple[int, ...] = (0, 1, 2)) -> Function:
    def run(*arguments: Any) -> Any:
        return jax.grad(lambda *given: jnp.sin(function(*given)).sum(), wrt)(*arguments)

    return run


@pytest.mark.parametrize("name", sorted(PROVED.keys() - {"caps"}))
def test_gradients_compute_weights_again(name: str) -> None:
    fused = Fused(gradients(attend(PROVED[name][0])))
    counts = Counter(fused.kinds)
    assert counts["attention_gradient"] == counts["attention"] == counts["row_reduce"] == 1 and counts["dot"] == 0


def causal(scores: Any, mask: Any) -> Any:
    row, column = (jax.lax.broadcasted_iota(jnp.int32, scores.shape[2:], axis) for axis in (0, 1))
    return jnp.where(column <= row, scores, -jnp.inf)


def test_the_gradient_of_causal_attention() -> None:
    assert "attention_gradient" in Fused(gradients(attend(causal)), SHAPES).kinds


def test_gradients_without_a_mask_are_products() -> None:
    assert "attention_gradient" not in Fused(gradients(attend(lambda s, m: s))).kinds


def test_the_gradient_of_a_bias_needs_those_of_all_scores() -> None:
    def run(query: Any, key: Any, value: Any, rows: Any, columns: Any, bias: Any) -> Any:
        return attend(lambda s, m: low(s + bias, m))(query, key, value, rows, columns)

    shapes = (*SHAPES, ("h, q, k", jnp.float32))
    assert "attention_gradient" not in Fused(gradients(run, (0, 1, 2, 5)), shapes).kinds


def test_gradients_of_half_precision_are_products() -> None:
    shapes = tuple((shape, jnp.bfloat16 if dtype == jnp.float32 else dtype) for shape, dtype in SHAPES)
    fused = Fused(gradients(attend(low)), shapes)
    assert "attention_gradient" not in fused.kinds


def test_a_mask_of_scalars() -> None:
    """Numbers that are computed from scalar arguments, and a select by one, are part of the mask."""

    def run(query: Any, key: Any, value: Any, place: Any, is_late: Any) -> Any:
        scores = jnp.einsum("bhqd,bhkd->bhqk", query, key)
        row, column = (jax.lax.broadcasted_iota(jnp.int32, scores.shape[2:], axis) for axis in (0, 1))
        last = jax.lax.select(is_late, place * 2, place + 1)
        scores = jnp.where((column <= row + last)[None, None], scores, np.float32(-1e9))
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), value)

    fused = Fused(run, (*SHAPES[:3], ("", jnp.int32), ("", jnp.bool_)))
    assert fused.magnitudes == [100_000_000]
