# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row kernels that are a softmax that can be done in pieces: one that is, and what each condition keeps out.

What fuses and what checks fusions read the same kernels, in opposite directions, and have to agree.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.transforms.decisions import OUTCOMES
from shlo_disc.transforms.fusion.online_softmax import OnlineSoftmax, Scores, online_softmax
from shlo_disc.verify.fusions import verify_fusions

MATRIX, ROW = "tensor<7x7xf32>", "tensor<7xf32>"

ROWS = f"""
func.func private @rows(%s: {MATRIX}, %b: {MATRIX}) -> {MATRIX}
    attributes {{disc.fusion = #disc.fusion<"row_reduce", {{collapsed, columns = 1 : i64}}>}} {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : {ROW}
  %lows = stablehlo.constant dense<0xFF800000> : {ROW}
  %zeros = stablehlo.constant dense<0.0> : {ROW}
  %x = stablehlo.add %s, %b : {MATRIX}
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] :
    ({MATRIX}, tensor<f32>) -> {ROW}
  %p = stablehlo.maximum %lows, %m : {ROW}
  %ps = stablehlo.broadcast_in_dim %p, dims = [0] : ({ROW}) -> {MATRIX}
  %d = stablehlo.subtract %x, %ps : {MATRIX}
  %e = stablehlo.exponential %d : {MATRIX}
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] :
    ({MATRIX}, tensor<f32>) -> {ROW}
  %ts = stablehlo.broadcast_in_dim %t, dims = [0] : ({ROW}) -> {MATRIX}
  %w = stablehlo.divide %e, %ts : {MATRIX}
  return %w : {MATRIX}
}}
"""

ATTENTION = f"""
func.func private @product(%q: {MATRIX}, %k: {MATRIX}) -> {MATRIX}
    attributes {{disc.fusion = #disc.fusion<"dot", {{}}>}} {{
  %0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : ({MATRIX}, {MATRIX}) -> {MATRIX}
  return %0 : {MATRIX}
}}
func.func private @attention(%q: {MATRIX}, %k: {MATRIX}, %v: {MATRIX}, %b: {MATRIX}) -> {MATRIX}
    attributes {{disc.fusion = #disc.fusion<"attention",
      {{online, row_operands = array<i64: -1, 3>, rows = @rows}}>}} {{
  %0 = call @product(%q, %k) : ({MATRIX}, {MATRIX}) -> {MATRIX}
  %1 = call @rows(%0, %b) : ({MATRIX}, {MATRIX}) -> {MATRIX}
  %2 = call @product(%1, %v) : ({MATRIX}, {MATRIX}) -> {MATRIX}
  return %2 : {MATRIX}
}}
"""

GUARDS = (
    ("%p = stablehlo.maximum %lows, %m", "%p = stablehlo.select %none, %zeros, %m"),
    ("%ps =", f"%none = stablehlo.compare EQ, %m, %lows : ({ROW}, {ROW}) -> tensor<7xi1>\n  %ps ="),
    ("%ts = stablehlo.broadcast_in_dim %t,", "%ts = stablehlo.broadcast_in_dim %u,"),
    ("%ts =", f"%u = stablehlo.select %none, %one, %t : tensor<7xi1>, {ROW}\n  %ts ="),
)


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with make_context(), ir.Location.unknown():
        yield


def kernel(*changes: tuple[str, str]) -> str:
    text = ROWS
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def matched(text: str) -> tuple[OnlineSoftmax | None, set[str]]:
    """The softmax that is found, and the conditions that did not hold."""
    module = ir.Module.parse(text)
    (rows,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
    before = OUTCOMES.copy()
    found = online_softmax(Scores(rows, 0))
    return found, {name for (name, holds), count in (OUTCOMES - before).items() if count and not holds}


def check(text: str, *, hides: bool = False) -> None:
    attention = ATTENTION.replace("{online", "{hides, online") if hides else ATTENTION
    verify_fusions(ir.Module.parse(text + attention))


def test_a_softmax() -> None:
    found, failed = matched(kernel())
    assert not failed
    assert found is not None
    assert not found.hides
    check(kernel())


def guarded() -> str:
    (peak, new_peak), (place, compare), *rest = GUARDS
    line = next(line for line in ROWS.splitlines() if peak in line)
    chosen = f"  {compare.splitlines()[0]}\n  {new_peak} : tensor<7xi1>, {ROW}"
    return kernel((line, chosen), *rest)


def test_a_softmax_that_hides_rows() -> None:
    found, failed = matched(guarded())
    assert not failed
    assert found is not None
    assert found.hides
    check(guarded(), hides=True)


@pytest.mark.parametrize("hides", [False, True])
def test_what_is_said_of_rows_of_nothing_is_checked(hides: bool) -> None:
    with pytest.raises(CompilerError, match="gives other weights to rows of nothing but -inf"):
        check(kernel() if hides else guarded(), hides=hides)


def test_the_first_reduction_reads_what_the_softmax_is_of() -> None:
    line = next(line for line in ROWS.splitlines() if "%m = " in line)
    other = f"{line.replace('%m', '%unused').replace('%x', '%s')}\n    ({MATRIX}, tensor<f32>) -> {ROW}\n{line}"
    with pytest.raises(CompilerError, match="first reduces something else"):
        check(kernel((line, other)))


@pytest.mark.parametrize("kind", ["i32", "f16"])
def test_numbers_of_other_types(kind: str) -> None:
    zero, line = ("0" if kind == "i32" else "0.0"), f"%zeros = stablehlo.constant dense<0.0> : {ROW}"
    other = f"%z = stablehlo.constant dense<{zero}> : tensor<7x{kind}>\n  "
    other += f"%zeros = stablehlo.convert %z : (tensor<7x{kind}>) -> {ROW}"
    text = guarded().replace(line, other)
    assert text != guarded()
    found, failed = matched(text)
    assert not failed
    assert found is not None
    assert found.hides
    check(text, hides=True)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_conversions_in_between(kind: str) -> None:
    narrow = f"tensor<7x7x{kind}>"
    text = kernel(
        ("%w = stablehlo.divide %e, %ts", f"%n = stablehlo.convert %e : ({MATRIX}) -> {narrow}\n"
         f"  %wide = stablehlo.convert %n : ({narrow}) -> {MATRIX}\n  %w = stablehlo.divide %wide, %ts"),
    )  # fmt: skip
    assert matched(text)[0] is not None
    check(text)


OTHERS = {
    "peak-is-of-x": [
        [("%m = stablehlo.reduce(%x", "%m = stablehlo.reduce(%s")],
        [("%m = stablehlo.reduce(%x init: %low)", "%m = stablehlo.reduce(%x init: %zero)")],
        [("applies stablehlo.maximum", "applies stablehlo.minimum")],
    ],
    "total-is-of-powers": [
        [("%t = stablehlo.reduce(%e", "%t = stablehlo.reduce(%d")],
        [("%t = stablehlo.reduce(%e init: %zero) applies stablehlo.add",
          "%t = stablehlo.reduce(%e init: %zero) applies stablehlo.maximum")],
        [("%t = stablehlo.reduce(%e init: %zero)", "%t = stablehlo.reduce(%e init: %low)")],
    ],
    "reductions-are-along-columns": [
        [("maximum across dimensions = [1]", "maximum across dimensions = [0]")],
        [("add across dimensions = [1]", "add across dimensions = [0]")],
    ],
    "rows-get-their-own": [
        [("broadcast_in_dim %p, dims = [0]", "broadcast_in_dim %p, dims = [1]")],
        [("broadcast_in_dim %t, dims = [0]", "broadcast_in_dim %t, dims = [1]")],
    ],
    "x-has-no-reduction": [
        [("%x = stablehlo.add %s, %b",
          f"%r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1] : "
          f"({MATRIX}, tensor<f32>) -> {ROW}\n  %rs = stablehlo.broadcast_in_dim %r, dims = [0] : ({ROW}) -> {MATRIX}\n"
          "  %x = stablehlo.add %s, %rs")],
        [("%x = stablehlo.add %s, %b",
          f"%r = stablehlo.reverse %b, dims = [1] : {MATRIX}\n  %x = stablehlo.add %s, %r")],
    ],
    "scores-stand-in-place": [
        [("%x = stablehlo.add %s, %b", "%x = stablehlo.add %b, %b")],
        [("%x = stablehlo.add %s, %b", f"%r = stablehlo.broadcast_in_dim %s, dims = [1, 0] : ({MATRIX}) -> {MATRIX}\n"
          "  %x = stablehlo.add %r, %b")],
    ],
}  # fmt: skip
CASES = [(name, tuple(changes)) for name, cases in OTHERS.items() for changes in cases]


@pytest.mark.parametrize(("condition", "changes"), CASES)
def test_what_is_no_softmax(condition: str, changes: tuple[tuple[str, str], ...]) -> None:
    found, failed = matched(kernel(*changes))
    assert found is None
    assert failed == {f"online-softmax.{condition}"}
    with pytest.raises(CompilerError, match="no softmax of the scores|not along the same rows"):
        check(kernel(*changes))


def test_wide_floats_are_none() -> None:
    text = kernel().replace("f32", "f64").replace("0xFF800000", "0xFFF0000000000000")
    assert matched(text)[1] == {"online-softmax.floats-are-narrow"}


@pytest.mark.parametrize(
    "changes",
    [
        [("%d = stablehlo.subtract %x, %ps", "%d = stablehlo.add %x, %ps")],
        [("%e = stablehlo.exponential %d", "%e = stablehlo.tanh %d")],
        [("%w = stablehlo.divide %e, %ts", "%w = stablehlo.multiply %e, %ts")],
        [("%w = stablehlo.divide %e, %ts", "%w = stablehlo.divide %x, %ts")],
        [("%p = stablehlo.maximum %lows, %m", "%p = stablehlo.maximum %zeros, %m")],
        [("return %w", f"%twice = stablehlo.add %w, %w : {MATRIX}\n  return %twice")],
    ],
)
def test_what_has_not_the_form_of_a_softmax(changes: list[tuple[str, str]]) -> None:
    assert matched(kernel(*changes))[0] is None
    with pytest.raises(CompilerError, match="no softmax of the scores"):
        check(kernel(*changes))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("select %none, %one, %t", "select %none, %zeros, %t"),
        ("select %none, %zeros, %m", "select %none, %one, %m"),
        ("compare EQ, %m, %lows", "compare EQ, %m, %zeros"),
        ("compare EQ, %m", "compare NE, %m"),
    ],
)
def test_what_hides_other_rows(old: str, new: str) -> None:
    text = guarded().replace(old, new)
    assert text != guarded()
    assert matched(text)[0] is None
    with pytest.raises(CompilerError, match="no softmax of the scores"):
        check(text)


def test_the_row_kernel_reads_what_the_attention_says() -> None:
    text = ATTENTION.replace("-1, 3>", "-1, 2>")
    with pytest.raises(CompilerError, match="reads other operands than it says"):
        verify_fusions(ir.Module.parse(kernel() + text))
