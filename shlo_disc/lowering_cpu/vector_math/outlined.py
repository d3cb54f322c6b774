# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of this package out of line: each one is written once for a type, and called where it is used.

A kernel that uses many of them would be long, and LLVM takes as long to compile it. Vectors are passed and returned as
values: LLVM takes registers where the calling convention has enough, else memory. The results are the same, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.kernel_module import KernelModule
from shlo_disc.shape_dialect.mlir import func, ir

_INLINE = frozenset(("sqrt", "rsqrt"))
"""Functions that are no longer than a call."""

Build = Callable[..., ir.Value]


class OutlinedFunctions:
    """Calls of `functions`, under the same names, with their definitions as private functions of `module`."""

    def __init__(self, module: ir.Module | KernelModule, functions: dict[str, Build]):
        self.module = module
        self.definitions: dict[str, func.FuncOp] = {}
        for name, build in functions.items():
            setattr(self, name, build if name in _INLINE else self._caller(name, build))

    def _caller(self, name: str, build: Build) -> Build:
        def call(*operands: ir.Value) -> ir.Value:
            return func.CallOp(self._definition(name, build, operands[0].type, len(operands)), list(operands)).result

        return call

    def _definition(self, name: str, build: Build, type_: ir.Type, operands: int) -> func.FuncOp:
        suffix = f"{type_.shape[0]}x{type_.element_type}" if isinstance(type_, ir.VectorType) else str(type_)
        symbol = f"{name}_{suffix}"
        if symbol not in self.definitions:
            with ir.InsertionPoint(self.module.body):
                signature = ir.FunctionType.get([type_] * operands, [type_])
                function = func.FuncOp(symbol, signature, visibility="private")
            function.attributes["llvm.no_inline"] = ir.UnitAttr.get()
            block = function.add_entry_block()
            with ir.InsertionPoint(block):
                func.ReturnOp([build(*block.arguments)])
            self.definitions[symbol] = function
        return self.definitions[symbol]
