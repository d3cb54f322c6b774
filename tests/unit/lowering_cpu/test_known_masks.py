# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks of lanes that are made of constants: their lanes, as LLVM would fold them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import shlo_disc
from shlo_disc import Options
from shlo_disc.lowering_cpu.emitters.vector_elements import known_lanes
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import arith, ir, vector
from tests.run import test_lanes_in_patterns as patterns

COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
COUNT = 8


def lanes_of(values: Any) -> ir.Value:
    type_ = ir.VectorType.get([COUNT], ir.IndexType.get())
    return arith.constant(type_, ir.DenseElementsAttr.get(np.array(values, np.int64), type=ir.IndexType.get()))


def scalar(number: int) -> ir.Value:
    return vector.broadcast(ir.VectorType.get([COUNT], ir.IndexType.get()), arith.constant(ir.IndexType.get(), number))


@pytest.mark.parametrize("predicate", range(10))
def test_lanes_of_comparisons(predicate: int) -> None:
    rng = np.random.default_rng(predicate)
    compare = COMPARISONS[predicate if predicate < 6 else predicate - 4]
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            for _ in range(20):
                a, b = rng.integers(-4, 4, (2, COUNT))
                added, factor = (int(n) for n in rng.integers(-3, 4, 2))
                left = arith.muli(arith.addi(lanes_of(a), scalar(added)), scalar(factor))
                mask = arith.cmpi(arith.CmpIPredicate(predicate), left, lanes_of(b))
                turned = arith.xori(
                    mask, vector.broadcast(mask.type, arith.constant(ir.IntegerType.get_signless(1), 1))
                )
                x, y = (a + added) * factor, b
                if predicate >= 6:
                    x, y = x.astype(np.uint64), y.astype(np.uint64)
                expected = compare(x, y)
                assert known_lanes(mask) == tuple(expected.tolist())
                assert known_lanes(turned) == tuple((~expected).tolist())
                assert known_lanes(arith.andi(mask, turned)) == (False,) * COUNT


def test_what_is_not_known() -> None:
    text = """func.func @f(%a: vector<8xindex>, %m: vector<8xi1>) {
      %b = arith.constant dense<3> : vector<8xindex>
      %0 = arith.cmpi ult, %a, %b : vector<8xindex>
      %c = arith.constant dense<true> : vector<8xi1>
      %1 = arith.andi %c, %m : vector<8xi1>
      %s = arith.constant dense<3> : vector<8xi32>
      %2 = arith.cmpi slt, %s, %s : vector<8xi32>
      return
    }"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (function,) = module.body.operations
        found = {op.results[0]: op.operation.name for op in function.regions[0].blocks[0].operations if op.results}
        masks = [value for value, name in found.items() if name in ("arith.cmpi", "arith.andi")]
        assert len(masks) == 3 and [known_lanes(mask) for mask in masks] == [None] * 3


@pytest.mark.parametrize("name", ["interleavings", "steps", "repetitions"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_masked_loads_are_of_whole_registers(name: str, dtype: str) -> None:
    """A masked load of 15 lanes was taken apart into registers of 8, the last of which lay behind its mask."""
    executable = shlo_disc.compile(getattr(patterns, name), args=(("m, n", dtype),), options=Options(cpu="x86-64-v3"))
    text = str(executable.listing("kernels"))
    lanes = [
        line.rpartition("vector<")[2].partition("x")[0] for line in text.splitlines() if "vector.maskedload" in line
    ]
    assert all(int(n) & (int(n) - 1) == 0 for n in lanes)
