# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of legal ops: what each stage has to have left behind it."""

from __future__ import annotations

import pytest

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.dialect.scope import ORDER
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.legality import LEGAL
from tests.unit.shape_dialect.test_dialect_verifier import refusal

GONE = {
    "annotate": ("stablehlo.composite", "stablehlo.tuple", "chlo.tan", "disc_host.launch"),
    "simplify": ("stablehlo.get_dimension_size", "stablehlo.fft", "stablehlo.map", "stablehlo.batch_norm_training"),
    "fuse": ("stablehlo.optimization_barrier", "stablehlo.complex", "stablehlo.dynamic_conv"),
    "plan": ("stablehlo.cholesky", "stablehlo.uniform_quantize"),
    "kernels": ("disc_host.launch", "llvm.call"),
    "host": ("stablehlo.add", "func.call", "disc.shape", "llvm.call"),
}


def test_every_stage_has_a_table() -> None:
    assert list(LEGAL) == list(ORDER)


@pytest.mark.parametrize("stage", ORDER)
def test_tables_name_ops_that_there_are(stage: str) -> None:
    with make_context() as context:
        ir.Module.parse("module { func.func @f() { return } gpu.module @g {} memref.global @m : memref<1xi8> }")
        unknown = [n for n in LEGAL[stage] if not n.startswith("disc") and not context.is_registered_operation(n)]
    assert not [name for name in unknown if not name.startswith(("scf.", "arith."))]


@pytest.mark.parametrize(("stage", "name"), [(stage, name) for stage, names in GONE.items() for name in names])
def test_what_a_stage_has_left_behind(stage: str, name: str) -> None:
    assert name not in LEGAL[stage]


def test_an_op_of_an_earlier_stage_is_refused() -> None:
    text = """module attributes {disc.stage = "simplify"} {
      func.func @main(%x: tensor<4xf32>) -> tensor<i32> {
        %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<4xf32>) -> tensor<i32>
        return %0 : tensor<i32>
      }
    }"""
    assert "there is no stablehlo.get_dimension_size after the stage simplify" in refusal(text)
    assert refusal(text.replace('"simplify"', '"annotate"')) == ""
