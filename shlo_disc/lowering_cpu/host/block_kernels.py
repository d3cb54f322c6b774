# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that copy and clear whole buffers, block by block."""

from __future__ import annotations

from shlo_disc.lowering.host_llvm.builder import Builder, Function, LlvmDialect
from shlo_disc.lowering.launches import CLEAR, COPY
from shlo_disc.lowering_cpu.host.blocks import entry_name
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.mlir import ir

BLOCK_BYTES = 1 << 16
"""A work item of both."""
BLOCK_GRAIN = 8


def build_copy(dialect: LlvmDialect) -> ir.Operation:
    """The entry point of the copying kernel."""
    function = _kernel(dialect, COPY)
    body = function.body
    target, first, size = _range(function)
    source = _address(body, body.gep(function.arguments[0], 2, dialect.i64))
    body.memcpy(target, body.gep(source, first, dialect.i8), size)
    body.return_()
    return function.op


def build_clear(dialect: LlvmDialect) -> ir.Operation:
    """The entry point of the clearing kernel."""
    function = _kernel(dialect, CLEAR)
    target, _, size = _range(function)
    function.body.memset(target, function.body.constant(0, 8), size)
    function.body.return_()
    return function.op


def _kernel(dialect: LlvmDialect, name: str) -> Function:
    return dialect.function(entry_name(name), dialect.parameters(abi.KERNEL))


def _range(function: Function) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The address of the kernel's part of the target, that many bytes into it, and the part's bytes."""
    arguments, begin, end = function.arguments
    body, dialect = function.body, function.body.dialect
    target = _address(body, arguments)
    total = body.load(body.gep(arguments, 1, dialect.i64), dialect.i64)
    block = body.constant(BLOCK_BYTES)
    first = body.arithmetic("mul", begin, block)
    last = body.arithmetic("intr.smin", body.arithmetic("mul", end, block), total)
    size = body.arithmetic("sub", last, first)
    return body.gep(target, first, dialect.i8), first, size


def _address(body: Builder, word: ir.Value) -> ir.Value:
    return body.load(word, body.dialect.pointer)
