# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that copy and clear whole buffers, block by block."""

from __future__ import annotations

from shlo_disc.lowering.launches import CLEAR, COPY

BLOCK_BYTES = 1 << 16
"""A work item of both."""
BLOCK_GRAIN = 8


def copy_text() -> str:
    """The entry point of the copying kernel."""
    return _block_text(
        COPY,
        """  %source_word = llvm.getelementptr %args[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %source = llvm.load %source_word : !llvm.ptr -> !llvm.ptr
  %from = llvm.getelementptr %source[%first] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  "llvm.intr.memcpy"(%to, %from, %bytes) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()""",
    )


def clear_text() -> str:
    """The entry point of the clearing kernel."""
    return _block_text(
        CLEAR,
        """  %zero = llvm.mlir.constant(0 : i8) : i8
  "llvm.intr.memset"(%to, %zero, %bytes) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()""",
    )


def _block_text(name: str, body: str) -> str:
    """A kernel that does something to `%bytes` bytes from `%to`, `%first` bytes into the target."""
    return f"""llvm.func @{name}_entry(%args: !llvm.ptr, %begin: i64, %end: i64) {{
  %target = llvm.load %args : !llvm.ptr -> !llvm.ptr
  %total_word = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %total = llvm.load %total_word : !llvm.ptr -> i64
  %block = llvm.mlir.constant({BLOCK_BYTES} : i64) : i64
  %first = llvm.mul %begin, %block : i64
  %behind = llvm.mul %end, %block : i64
  %last = "llvm.intr.smin"(%behind, %total) : (i64, i64) -> i64
  %bytes = llvm.sub %last, %first : i64
  %to = llvm.getelementptr %target[%first] : (!llvm.ptr, i64) -> !llvm.ptr, i8
{body}
  llvm.return
}}"""
