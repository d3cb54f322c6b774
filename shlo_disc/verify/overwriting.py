# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Test whether a kernel still computes the same when one of its results lies where one of its operands is."""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.fusion import accumulators_of, kind_of, results_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.verify.accesses import Reads, Walk, reads_of

_CHANGES = ("stablehlo.scatter", "stablehlo.dynamic_update_slice")
_VIEWS = ("stablehlo.reshape", "stablehlo.dynamic_reshape", "disc.shape")


class Kernels:
    """The kernels of a module that does not change, and what each reads, which is found once."""

    def __init__(self, module: ir.Module):
        self._by_name = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
        self._reads: dict[str, Reads] = {}

    def called_by(self, call: ir.Operation) -> func.FuncOp:
        """The kernel that a call names."""
        return self._by_name[callee_of(call)]

    def reads_of(self, kernel: func.FuncOp) -> Reads:
        """The indices at which a kernel reads its arguments."""
        name = kernel.name.value
        if name not in self._reads:
            self._reads[name] = reads_of(kernel)
        return self._reads[name]


def may_write_over(call: ir.Operation, operand: int, result: int, kernels: Kernels) -> bool:
    """Tells whether a call may write a result over an operand, by what its kernel reads and when; False if unknown."""
    if call.name != "func.call":
        return False
    return _kernel_may(kernels.called_by(call), operand, result, kernels)


def _kernel_may(kernel: func.FuncOp, operand: int, result: int, kernels: Kernels) -> bool:
    kind = kind_of(kernel)
    if kind == "gemm":
        return _gemm_may(kernel, operand, result, kernels)
    argument = kernel.entry_block.arguments[operand]
    *_, last = kernel.entry_block.operations
    output = last.operands[result]
    if argument.type != output.type or result >= len(results_of(kernel)):
        return False
    if kind in ("scatter", "update"):
        return _is_changed_in_place(argument, output)
    walk = Walk.of(kernel)
    return walk is not None and all(walk.allows(read, output) for read in kernels.reads_of(kernel)[argument])


def _is_changed_in_place(argument: ir.Value, output: ir.Value) -> bool:
    """Tells whether the output is the argument with some elements changed, and nothing else reads the argument."""
    if isinstance(output.owner, ir.Block) or output.owner.operation.name not in _CHANGES:
        return False
    op = output.owner.operation
    number = list(op.results).index(output)
    return op.operands[number] == argument and sum(1 for _ in argument.uses) == 1


def _gemm_may(kernel: func.FuncOp, operand: int, result: int, kernels: Kernels) -> bool:
    """Tells whether one epilogue alone reads the operand, writes the result, and reads after the sums are there."""
    *_, last = kernel.entry_block.operations
    output = last.operands[result]
    readers: list[tuple[ir.Operation, int]] = []
    pending = [kernel.entry_block.arguments[operand]]
    while pending:
        for use in pending.pop().uses:
            if use.owner.operation.name in _VIEWS:
                pending += list(use.owner.results)
            else:
                readers.append((use.owner.operation, use.operand_number))
    if len(readers) != 1 or isinstance(output.owner, ir.Block) or readers[0][0] != output.owner.operation:
        return False
    call, position = readers[0]
    epilogue = kernels.called_by(call)
    number = list(call.results).index(output)
    kind = kind_of(epilogue)
    if accumulators_of(epilogue) == number:
        return False
    return kind in ("row_reduce", "epilogue") and _kernel_may(epilogue, position, number, kernels)
