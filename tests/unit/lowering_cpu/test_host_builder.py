# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The builder of host programs: what it builds is verified, and is the same as its text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shlo_disc.lowering.host_llvm.builder import Function, LlvmDialect
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.dialect.context import make_context
from shlo_disc.shape_dialect.mlir import ir


@pytest.fixture
def dialect() -> Iterator[LlvmDialect]:
    with make_context(), ir.Location.unknown():
        yield LlvmDialect()


def text_of(*ops: ir.Operation) -> str:
    """The text of ops in a module, which parses to the same."""
    module = ir.Module.create()
    for op in ops:
        module.body.append(op)
    assert module.operation.verify()
    text = str(module)
    assert str(ir.Module.parse(text)) == text
    return text


def body_of(dialect: LlvmDialect) -> Function:
    return dialect.function("f", [dialect.pointer, dialect.i64])


def test_memory(dialect: LlvmDialect) -> None:
    function = body_of(dialect)
    body, (table, index) = function.body, function.arguments
    element = body.load(body.gep(table, 3, dialect.i64), dialect.i64)
    body.store(body.arithmetic("add", element, index), body.gep(table, index, dialect.i64))
    body.memcpy(table, body.address_of("words"), body.constant(16))
    body.memset(table, body.constant(0, 8), index)
    body.return_()
    text = text_of(dialect.constant_words("words", [7, -1]), function.op)
    assert "@words(dense<[7, -1]> : tensor<2xi64>) {addr_space = 0 : i32, alignment = 64 : i64}" in text
    assert "getelementptr %arg0[3] : (!llvm.ptr) -> !llvm.ptr, i64" in text
    assert "getelementptr %arg0[%arg1] : (!llvm.ptr, i64) -> !llvm.ptr, i64" in text


def test_slots_are_reserved_where_the_function_begins(dialect: LlvmDialect) -> None:
    function = body_of(dialect)
    first = function.slot(2)
    function.body.store(function.arguments[1], first)
    function.body.store(first, function.slot(3))
    function.body.return_()
    names = [op.operation.name.removeprefix("llvm.") for op in function.entry.operations]
    assert names == ["mlir.constant", "alloca"] * 2 + ["store", "store", "return"]
    text_of(function.op)


def test_calls(dialect: LlvmDialect) -> None:
    function = body_of(dialect)
    table, index = function.arguments
    function.body.call("kernel", table, index, index)
    function.body.call(function.body.load(table, dialect.pointer), index)
    function.body.return_()
    function.pass_through("noinline", "optnone")
    text = text_of(dialect.declaration("kernel", dialect.parameters(abi.KERNEL)), function.op)
    assert "llvm.call @kernel(%arg0, %arg1, %arg1) : (!llvm.ptr, i64, i64) -> ()" in text
    assert "llvm.call %0(%arg1) : !llvm.ptr, (i64) -> ()" in text
    assert 'passthrough = ["noinline", "optnone"]' in text


def test_blocks_stand_behind_the_one_that_branches(dialect: LlvmDialect) -> None:
    function = body_of(dialect)
    body, (_, index) = function.body, function.arguments
    default, other, behind = body.blocks(3)
    body.switch(index, default, {4: other})
    body.enter(default)
    yes, no = body.blocks(2)
    body.cond_br(body.compare("slt", index, index), yes, no)
    for block in (yes, no, other):
        body.enter(block)
        body.br(behind)
    body.enter(behind)
    body.return_()
    assert list(function.op.regions[0].blocks) == [function.entry, default, yes, no, other, behind]
    assert body.count == 12
    text_of(function.op)
