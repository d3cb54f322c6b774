# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pipeline asks of a target: one instance a target, equals."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.host import GemmTile
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.transforms.policy import Policy


class Code(Protocol):
    """What `lower_host` makes: a module that becomes code, and whatever else the target's artifact is made of."""

    @property
    def module(self) -> ir.Module:
        """The module."""

    @property
    def exported(self) -> Collection[str]:
        """The functions of it that are called from outside."""


class Backend(Protocol):
    """A target, asked by the passes in this order. What it cannot do raises UnsupportedError or CompilerError."""

    @property
    def policy(self) -> Policy:
        """What pays on it."""

    @property
    def views(self) -> tuple[str, ...]:
        """The names of texts below MLIR."""

    def tile_of(self, element: str) -> GemmTile:
        """The tile that the target's micro-kernel of an element type (MLIR's name) computes."""

    def build_kernels(self, module: ir.Module, facts: Facts) -> ir.Module:
        """A copy of a planned module, with a kernel for each fusion."""

    def lower_host(self, module: ir.Module, signature: Signature) -> Code:
        """The host program of a module, and its kernels, as ops that code is made of."""

    def legalize(self, module: ir.Module) -> None:
        """Rewrite, in place, what the target's code generator gets wrong."""

    def lower_to_llvm(self, module: ir.Module) -> None:
        """Lower to the LLVM dialect, and those of the target, in place."""

    def translate(self, module: ir.Module) -> str:
        """LLVM IR."""

    def emit(self, llvm_ir: str, exported: Collection[str]) -> bytes:
        """Object code, in which the `exported` functions can be found."""

    def view(self, name: str, llvm_ir: str, exported: Collection[str]) -> str:
        """One of `views`."""


__all__ = ["Backend", "Code"]
