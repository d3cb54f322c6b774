# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions in the LLVM dialect as text, line by line."""

from __future__ import annotations


class LlvmWriter:
    """`lines` of a function's body, whose values are numbered as they come."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def op(self, text: str) -> str:
        """Add an op with one result; returns that."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def constant(self, number: int, bits: int = 64) -> str:
        """An integer."""
        return self.op(f"llvm.mlir.constant({number} : i{bits}) : i{bits}")
