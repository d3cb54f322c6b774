# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies of reductions whose elements may be combined in any order."""

from __future__ import annotations

import pytest

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.reducers import is_reorderable

ARGMAX = """
  %0 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %2 = stablehlo.or %0, %1 : tensor<i1>
  %3 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %4 = stablehlo.compare LT, %i, %j, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %5 = stablehlo.and %3, %4 : tensor<i1>
  %6 = stablehlo.or %2, %5 : tensor<i1>
  %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<f32>
  %8 = stablehlo.select %6, %i, %j : tensor<i1>, tensor<i32>
"""

FIRST, LAST = "%7, %8", "%a, %i"


def reduction(body: str, returned: str = FIRST, iota: str = "1", init: str = "0", along: str = "1") -> str:
    kept = "3" if along == "1" else "4"
    return f"""
      func.func private @f(%x: tensor<3x4xf32>, %a0: tensor<f32>) -> (tensor<{kept}xf32>, tensor<{kept}xi32>) {{
        %i0 = stablehlo.constant dense<{init}> : tensor<i32>
        %n = stablehlo.iota dim = {iota} : tensor<3x4xi32>
        %r:2 = stablehlo.reduce(%x init: %a0), (%n init: %i0) across dimensions = [{along}]
            : (tensor<3x4xf32>, tensor<3x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<{kept}xf32>, tensor<{kept}xi32>)
          reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {{
            {body}
            stablehlo.return {returned} : tensor<f32>, tensor<i32>
          }}
        return %r#0, %r#1 : tensor<{kept}xf32>, tensor<{kept}xi32>
      }}"""


def of(text: str) -> bool:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (function,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
        reductions = (op for op in function.entry_block.operations if op.operation.name == "stablehlo.reduce")
        return is_reorderable(next(reductions))


def test_the_first_largest_element() -> None:
    assert of(reduction(ARGMAX))
    assert of(reduction(ARGMAX, iota="0", along="0"))
    assert of(reduction(ARGMAX.replace("GT", "LT")))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("LT, %i, %j", "GT, %i, %j", True),  # the last of equal values
        ("GT, %a, %b", "GE, %a, %b", True),
        ("NE, %a, %a", "NE, %b, %b", True),  # NaN is passed over
        ("%5 = stablehlo.and", "%5 = stablehlo.or", True),  # the largest value, and the first place
        ("FLOAT", "TOTALORDER", False),
        ("select %6, %i, %j", "select %6, %j, %i", False),
        ("select %2, %a, %b", "select %2, %b, %a", False),
        ("NE, %a, %a", "LT, %a, %a", False),  # NaN is forgotten by what comes behind it
    ],
)
def test_a_body_next_to_it(old: str, new: str, expected: bool) -> None:
    """`tests/run/test_arg_reductions.py` runs the ones that are taken, and others, in order and by lanes."""
    assert old in ARGMAX
    assert of(reduction(ARGMAX.replace(old, new))) == expected


def test_other_reductions() -> None:
    assert not of(reduction(ARGMAX, returned=LAST))  # the first element that there is
    assert not of(reduction(ARGMAX, iota="0"))  # numbered along the other axis
    assert not of(reduction(ARGMAX, init="7"))  # may be behind an element
    sums = "%7 = stablehlo.add %a, %b : tensor<f32> %8 = stablehlo.add %i, %j : tensor<i32>"
    assert not of(reduction(sums))
    mixed = ARGMAX.replace("%3 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>)",
                           "%c = stablehlo.convert %i : (tensor<i32>) -> tensor<f32> "
                           "%3 = stablehlo.compare EQ, %a, %c, FLOAT : (tensor<f32>, tensor<f32>)")  # fmt: skip
    assert not of(reduction(mixed))
