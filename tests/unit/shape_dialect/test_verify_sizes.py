# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes against what ops imply: a module that states others is refused, one from which they follow is not."""

from __future__ import annotations

import pytest

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.declarations import facts_of
from shlo_disc.shape_dialect.dialect.records import Malformed
from shlo_disc.shape_dialect.inference.verify_sizes import verify_sizes
from shlo_disc.shape_dialect.mlir import ir

X = "%x: tensor<?x?xf32, [@b, @s]>"

WRONG = {
    "transpose": (
        "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32, [@b, @s]>",
        "its result has the size b where it is s",
    ),
    "operands": (
        '%0 = "stablehlo.add"(%x, %y) : (tensor<?x?xf32, [@b, @s]>, tensor<?x?xf32, [@s, @b]>) '
        "-> tensor<?x?xf32, [@b, @s]>",
        "it needs b == s, which is not known",
    ),
    "concatenation": (
        "%0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?x?xf32, [@b, @s]>, tensor<?x?xf32, [@b, @s]>) "
        '-> tensor<?x?xf32, [@"3*b", @s]>',
        "its result has the size 3*b where it is 2*b",
    ),
    "reshape": (
        '%d = "disc.shape"() {dims = [@b]} : () -> tensor<1xi64>\n'
        "%0 = stablehlo.dynamic_reshape %x, %d : (tensor<?x?xf32, [@b, @s]>, tensor<1xi64>) -> tensor<?xf32, [@b]>",
        "it needs b*s == b, which is not known",
    ),
    "reduction": (
        "%0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] "
        ": (tensor<?x?xf32, [@b, @s]>, tensor<f32>) -> tensor<?xf32, [@b]>",
        "its result has the size b where it is s",
    ),
    "branch": (
        '%0 = "stablehlo.if"(%p) ({ stablehlo.return %x : tensor<?x?xf32, [@b, @s]> }, '
        "{ stablehlo.return %y : tensor<?x?xf32, [@s, @b]> }) : (tensor<i1>) -> tensor<?x?xf32, [@b, @s]>",
        "what a block returns has the size b where it is s",
    ),
}


def refusal(body: str, *constraints: str) -> str:
    """The error for a function of two matrices, a scalar and a choice; "" for none."""
    declared = "\n".join(
        [
            *(f'"disc.symbol"() {{min = 1 : i64, name = "{name}"}} : () -> ()' for name in "bs"),
            *(f'"disc.constraint"() {{origin = "a test", relation = "{text}"}} : () -> ()' for text in constraints),
        ]
    )
    arguments = f"{X}, %y: tensor<?x?xf32, [@s, @b]>, %c: tensor<f32>, %p: tensor<i1>"
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"{declared}\nfunc.func @main({arguments}) {{\n{body}\nreturn\n}}")
        module.operation.verify()
        try:
            verify_sizes(module, facts_of(module))
        except Malformed as error:
            return str(error)
    return ""


@pytest.mark.parametrize("name", WRONG)
def test_other_sizes_are_refused(name: str) -> None:
    body, message = WRONG[name]
    assert message in refusal(body)


@pytest.mark.parametrize("name", ["transpose", "operands", "reduction", "branch"])
def test_equal_sizes_are_not(name: str) -> None:
    """Sizes are right where all of them are the same."""
    assert refusal(WRONG[name][0], "b == s") == ""


def test_what_follows_from_a_constraint() -> None:
    assert refusal(WRONG["reshape"][0], "s == 1") == ""
    assert refusal(WRONG["concatenation"][0]) != ""


def test_sizes_that_are_arguments_are_left_out() -> None:
    """Inside of a fusion, which elements a shape operand has is not known."""
    text = "%0 = stablehlo.dynamic_reshape %x, %d : (tensor<?xf32, [@b]>, tensor<1xi64>) -> tensor<?xf32, [@s]>"
    with make_context(), ir.Location.unknown():
        symbols = "\n".join(f'"disc.symbol"() {{name = "{name}"}} : () -> ()' for name in "bs")
        module = ir.Module.parse(
            f"{symbols}\nfunc.func @main(%x: tensor<?xf32, [@b]>, %d: tensor<1xi64>) {{ {text}\nreturn }}"
        )
        verify_sizes(module, facts_of(module))
