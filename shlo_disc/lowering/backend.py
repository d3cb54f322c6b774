# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interface of a target to the pipeline: one instance per target, all of equal rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from shlo_disc.lowering.host_llvm.program import LoweredProgram
from shlo_disc.shape_dialect.dialect.host import GemmTile
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.policy import Policy
from shlo_disc.shape_dialect.symbolic.facts import Facts


class Backend(Protocol):
    """A target, asked by the passes in this order. What it cannot do raises UnsupportedError or CompilerError.

    A program becomes one section of code of the artifact or several, each of a module of its own.
    """

    @property
    def policy(self) -> Policy:
        """The target's policy: the transformations that pay on it."""

    @property
    def views(self) -> tuple[str, ...]:
        """The names of texts below MLIR."""

    def tile_of(self, element: str, registers: int) -> GemmTile:
        """The tile that the target's micro-kernel of an element type (MLIR's name) computes, with so many registers in
        a row where it may have."""

    def build_kernels(self, module: ir.Module, facts: Facts) -> ir.Module:
        """A copy of a planned module, with a kernel for each fusion."""

    def lower_host(self, module: ir.Module, signature: Signature) -> LoweredProgram:
        """The host program of a module, and its kernels, as ops that code is made of."""

    def legalize(self, section: str, module: ir.Module) -> None:
        """Rewrite, in place, what the target's code generator gets wrong."""

    def lower_to_llvm(self, section: str, module: ir.Module) -> None:
        """Lower to the LLVM dialect, and those of the target, in place."""

    def translate(self, section: str, module: ir.Module) -> str:
        """LLVM IR."""

    def emit(self, section: str, llvm_ir: str, program: LoweredProgram) -> bytes:
        """The section's code, in which the program's `exported` functions can be found."""

    def view(self, name: str, llvm_ir: Mapping[str, str], program: LoweredProgram) -> str:
        """One of `views`, of the LLVM IR of each section."""


__all__ = ["Backend"]
