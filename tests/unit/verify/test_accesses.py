# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reads of a kernel are found in one walk, however many results and arguments it has."""

from __future__ import annotations

from typing import Any

import pytest

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.verify import accesses
from shlo_disc.verify.accesses import Read, reads_of

MATRIX, COLUMN = "tensor<4x8xf32>", "tensor<4xf32>"


def test_reads_of_all_arguments() -> None:
    text = f"""func.func @f(%x: {MATRIX}, %y: {COLUMN}, %z: {MATRIX}) -> ({MATRIX}, {COLUMN}) {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : ({MATRIX}, tensor<f32>) -> {COLUMN}
      %both = stablehlo.add %sum, %y : {COLUMN}
      %wide = stablehlo.broadcast_in_dim %both, dims = [0] : ({COLUMN}) -> {MATRIX}
      %result = stablehlo.multiply %wide, %x : {MATRIX}
      return %result, %both : {MATRIX}, {COLUMN}
    }}"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        function = module.body.operations[0]
        x, y, z = function.entry_block.arguments
        found = reads_of(function)
        assert set(found[x]) == {Read((0, 1), False), Read((0, "reduced"), True)}
        assert set(found[y]) == {Read((0,), False)}
        assert found[z] == []


def test_results_of_one_chain_share_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 40
    steps = "\n".join(f"%{i + 1} = stablehlo.add %{i}, %x : {MATRIX}" for i in range(count))
    results = ", ".join(f"%{i + 1}" for i in range(count))
    types = ", ".join([MATRIX] * count)
    text = f"""func.func @f(%x: {MATRIX}) -> ({types}) {{
      %0 = stablehlo.abs %x : {MATRIX}
      {steps}
      return {results} : {types}
    }}"""
    walked = 0
    plain = accesses._operands

    def counting(*arguments: Any) -> Any:
        nonlocal walked
        walked += 1
        return plain(*arguments)

    monkeypatch.setattr(accesses, "_operands", counting)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        reads_of(module.body.operations[0])
    assert walked == count + 1
