# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products on a device that the verifier refuses: one that is right, with one thing changed."""

from __future__ import annotations

import pytest

from shlo_disc.shape_dialect.dialect.document import examples
from tests.unit.shape_dialect.test_dialect_verifier import refusal

PRODUCT = examples()["disc_host.product"].replace("%weights", "%w")

CHANGES = {
    "kernel": ("kernel = @product_f32_mk_kn", "kernel = @nowhere", "@nowhere is no kernel of the module"),
    "another size": ("sizes = [@s, 32, 64,", "sizes = [@s, 32, 63,", "is told another problem"),
    "another order": ("sizes = [@s, 32, 64,", "sizes = [32, @s, 64,", "is told another problem"),
    "given": ("threads = 256 : i64}", "threads = 256 : i64, given = array<i64: 0>}", "is told another problem"),
    "symbol": ('items = @"floordiv(s + 63, 64)"', "items = @t", "names t, which is no symbol"),
    "precision": ('precision = "full"', 'precision = "some"', "no precision 'some'; there are full, tf32, tf32x3"),
    "side": ("lhs = 0 : i64, m =", "lhs = 2 : i64, m =", "its sides are not operands 0 and 1"),
    "columns": ("n = {lhs = 0 : i64, result = 1 : i64", "n = {lhs = 0 : i64, result = 2 : i64", "lies in columns"),
    "neighbours": ("k = {lhs = 1 : i64", "k = {lhs = 2 : i64", "neighbours along neither axis"),
    "result": ("(%x, %w, %y)", "(%x, %w)", "it has no operand 2"),
    "problem": ("problem = {", "product = {", "problem is missing"),
}


def module(op: str) -> str:
    """A program that has nothing else."""
    return f"""module attributes {{disc.stage = "host"}} {{
      "disc.signature"() {{arguments = [], kept = array<i64>, name = "main", results = []}} : () -> ()
      "disc.symbol"() {{name = "s"}} : () -> ()
      "disc_host.plan"() {{call = {{arena = 64 : i64, checks = [], writes = array<i64>}}}} : () -> ()
      func.func @disc_run(%arena: memref<?xi8>) {{
        %c0 = arith.constant 0 : index
        %x = memref.view %arena[%c0][%c0] : memref<?xi8> to memref<?xi8>
        %w = memref.view %arena[%c0][%c0] : memref<?xi8> to memref<?xi8>
        %y = memref.view %arena[%c0][%c0] : memref<?xi8> to memref<?xi8>
        {op}
        return
      }}
      gpu.module @kernels {{
        gpu.func @product_f32_mk_kn() kernel {{
          gpu.return
        }}
      }}
    }}"""


def test_a_product_that_is_right() -> None:
    assert refusal(module(PRODUCT)) == ""


@pytest.mark.parametrize("name", CHANGES)
def test_malformed_product(name: str) -> None:
    old, new, message = CHANGES[name]
    assert old in PRODUCT
    changed = PRODUCT.replace(old, new)
    if "%y" not in changed:
        changed = changed.replace("(memref<?xi8>, memref<?xi8>, memref<?xi8>)", "(memref<?xi8>, memref<?xi8>)")
    assert message in refusal(module(changed))
