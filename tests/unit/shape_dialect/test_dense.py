# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants as NumPy arrays, read from the text of the op alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from shlo_disc.shape_dialect.dense import array_of, text_alone
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir

CONSTANTS = {
    "dense<[1.5, -2.0]> : tensor<2xf32>": [1.5, -2.0],
    "dense<0x7F800000> : tensor<f32>": np.inf,
    "dense<[[1], [2]]> : tensor<2x1xi8>": [[1], [2]],
    "dense<[true, false]> : tensor<2xi1>": [True, False],
    "dense<3> : tensor<2xui32>": [3, 3],
    "dense<0.5> : tensor<f8E4M3FN>": 0.5,
    "dense<-7> : tensor<i4>": -7,
    "dense<(1.0,-2.0)> : tensor<complex<f32>>": 1 - 2j,
}


@pytest.fixture
def context() -> Iterator[ir.Context]:
    with make_context() as found, ir.Location.unknown():
        yield found


def constants(text: str) -> tuple[ir.Module, list[ir.OpView]]:
    """A module, and the constants of its function, which holds these lines."""
    module = ir.Module.parse(f"func.func @main() {{\n{text}\nreturn\n}}")
    return module, [op for op in module.body.operations[0].regions[0].blocks[0].operations if op.operation.results]


@pytest.mark.parametrize("text", CONSTANTS)
def test_elements(context: ir.Context, text: str) -> None:
    _module, (constant,) = constants(f"%0 = stablehlo.constant {text}")
    assert (array_of(constant) == np.array(CONSTANTS[text])).all()


def test_the_text_is_that_of_the_op_alone(context: ir.Context) -> None:
    """Its number in the function is not looked for, which takes as long as the function is."""
    _module, (first, second) = constants(
        "%0 = stablehlo.constant dense<1.0> : tensor<f32>\n%1 = stablehlo.constant dense<2.0> : tensor<f32>"
    )
    assert text_alone(second).split(" = ")[0] == text_alone(first).split(" = ")[0] == "%cst"
    assert (array_of(first), array_of(second)) == (1.0, 2.0)
    assert first.operation.parent == second.operation.parent, "the op stays where it is"
