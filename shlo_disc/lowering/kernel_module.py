# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The module `@kernels` within a program's module, where the kernels of a CPU are."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.host import KERNELS
from shlo_disc.shape_dialect.mlir import ir


def copied(module: ir.Module) -> ir.Module:
    """A copy of a module."""
    copy = ir.Module.create()
    for name, attribute in module.operation.attributes.items():
        copy.operation.attributes[name] = attribute
    for op in module.body.operations:
        copy.body.append(op.operation.clone(ip=False))
    return copy


class KernelModule:
    """A new one, at the end of a module."""

    def __init__(self, module: ir.Module):
        attributes: dict[str, ir.Attribute] = {"sym_name": ir.StringAttr.get(KERNELS)}
        with ir.InsertionPoint(module.body):
            self.operation = ir.Operation.create("builtin.module", attributes=attributes, regions=1)
        self.body = self.operation.regions[0].blocks.append()


def kernel_module_of(module: ir.Module) -> ir.Operation:
    """The module of a program's kernels: a `builtin.module`, or a `gpu.module`."""
    return next(op.operation for op in module.body.operations if op.operation.name in ("builtin.module", "gpu.module"))
