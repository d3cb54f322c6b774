# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusions of one structure: those that differ in the names of their sizes alone share a kernel."""

from __future__ import annotations

import pytest

from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.utils.structure import SizeNames, Structure, renamed

LOOP = """
func.func private @loop(%x: tensor<?x?xf32, [@b, @s]>, %y: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xf32, [@b, @s]>
    attributes {disc.fusion = #disc.fusion<"loop", {collapsed}>} {
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "disc.shape"() {dims = [@b, @s]} : () -> tensor<2xi64>
  %1 = stablehlo.dynamic_broadcast_in_dim %c, %0, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @s]>
  %2 = stablehlo.compare GT, %x, %y : (tensor<?x?xf32, [@b, @s]>, tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xi1, [@b, @s]>
  %3 = stablehlo.subtract %x, %1 : tensor<?x?xf32, [@b, @s]>
  %4 = stablehlo.select %2, %3, %y : tensor<?x?xi1, [@b, @s]>, tensor<?x?xf32, [@b, @s]>
  return %4 : tensor<?x?xf32, [@b, @s]>
}"""
# Another program with one structure, and programs that are none.
SAME = {
    "other names": [("@b", "@m"), ("@s", "@n")],
    "exchanged names": [("@b", "@t"), ("@s", "@b"), ("@t", "@s")],
    "expressions": [("@b", '@"4*b"'), ("@s", '@"s + 1"')],
    "another function": [("@loop", "@loop_7")],
}
OTHER = {
    "one size twice": [("@s", "@b")],
    "a number": [("x?xf32, [@b, @s]", "x4xf32, [@b, 4]"), ("x?xi1, [@b, @s]", "x4xi1, [@b, 4]"), ("@s]", "4]")],
    "an attribute": [("compare GT", "compare GE")],
    "a constant": [("dense<1.0>", "dense<2.0>")],
    "an op": [("stablehlo.subtract", "stablehlo.add")],
    "the order of operands": [("subtract %x, %1", "subtract %1, %x")],
    "another operand": [("select %2, %3, %y", "select %2, %3, %x")],
    "another result": [("return %4", "return %3")],
    "element types": [("f32", "f64")],
    "the fusion": [("{collapsed}", "{}")],
}  # fmt: skip


def key_of(text: str, changes: list[tuple[str, str]], names: bool = True) -> tuple[ir.Module, object, SizeNames]:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    module = ir.Module.parse(text)
    (function,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
    sizes = SizeNames()
    return module, Structure(function, sizes if names else None).key, sizes


@pytest.mark.parametrize("name", SAME)
def test_names_make_no_difference(name: str) -> None:
    with make_context(), ir.Location.unknown():
        one, key, _ = key_of(LOOP, [])
        other, same, sizes = key_of(LOOP, SAME[name])
        assert key == same and hash(key) == hash(same)
        assert len(sizes.meaning) == 2
        del one, other


@pytest.mark.parametrize("name", OTHER)
def test_all_else_does(name: str) -> None:
    with make_context(), ir.Location.unknown():
        one, key, _ = key_of(LOOP, [])
        other, different, _ = key_of(LOOP, OTHER[name])
        assert key != different
        del one, other


def test_names_that_count() -> None:
    """Names of sizes are part of the structure where a kernel refers to its sizes by name."""
    with make_context(), ir.Location.unknown():
        keys = [key_of(LOOP, changes, names=False) for changes in ([], SAME["other names"], SAME["another function"])]
        assert keys[0][1] != keys[1][1] and keys[0][1] == keys[2][1]


def test_a_renamed_copy_verifies() -> None:
    with make_context(), ir.Location.unknown():
        module, _, sizes = key_of(LOOP, SAME["expressions"])
        (function,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
        holder, copy = renamed(function, sizes)
        assert holder.operation.verify()
        assert "[@n0, @n1]" in str(copy) and "@b" not in str(copy) and "4*b" not in str(copy)
        assert {name: str(size) for name, size in sizes.meaning.items()} == {"n0": "4*b", "n1": "s + 1"}
        assert "4*b" in str(function)
