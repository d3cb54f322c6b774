# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pipeline asks of a target: one instance a target, equals."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.dialect.host import GemmTile
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.symbolic.facts import Facts


class Code(Protocol):
    """What `lower_host` makes: a module that becomes code, and whatever else the target's artifact is made of."""

    @property
    def module(self) -> ir.Module:
        """The module."""

    @property
    def exported(self) -> Collection[str]:
        """The functions of it that are called from outside."""


class Backend(Protocol):
    """A target. `has_gemm_epilogues`: products are fused with what follows them. `views`: texts below MLIR."""

    @property
    def has_gemm_epilogues(self) -> bool: ...

    @property
    def views(self) -> tuple[str, ...]: ...

    def tile_of(self, element: str) -> GemmTile: ...

    def build_kernels(self, module: ir.Module, facts: Facts) -> ir.Module: ...

    def lower_host(self, module: ir.Module, signature: Signature) -> Code: ...

    def legalize(self, module: ir.Module) -> None: ...

    def lower_to_llvm(self, module: ir.Module) -> None: ...

    def translate(self, module: ir.Module) -> str: ...

    def emit(self, llvm_ir: str, exported: Collection[str]) -> bytes: ...

    def view(self, name: str, llvm_ir: str, exported: Collection[str]) -> str: ...


__all__ = ["Backend", "Code"]
