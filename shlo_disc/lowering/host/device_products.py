# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products on devices that are apart from the processor, as `disc_host` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.host.library_epilogue import library_epilogue
from shlo_disc.lowering.host.products import Operands, RuntimeCall, Values, precision_of
from shlo_disc.shape_dialect.dialect.fusion import Dot, Epilogue, accumulators_of, fusion_of, product_of
from shlo_disc.shape_dialect.dialect.host import KERNEL, DeviceEpilogue, DeviceProduct, Guard, kernel_of
from shlo_disc.shape_dialect.dialect.problems import MatrixProduct
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Expr
from shlo_disc.shape_dialect.utils.regions import callee_of, terminator_of

Functions = Mapping[str, func.FuncOp]


def calls_in(gemm: func.FuncOp) -> list[ir.OpView]:
    """The calls of a fusion of kind "gemm"; on a device they are a product and its epilogue."""
    return [op for op in gemm.entry_block.operations if op.operation.name == "func.call"]


def is_on_device(gemm: func.FuncOp) -> bool:
    """Tells whether the product of a fusion of kind "gemm" has a kernel, as on devices apart from the processor."""
    return KERNEL in calls_in(gemm)[0].attributes


def single(call: ir.OpView, fusion: func.FuncOp) -> RuntimeCall:
    """The call of a product by itself, which the kernel of the call can compute."""
    problem = _problem(fusion)
    sides = [call.operands[problem.lhs], call.operands[problem.rhs]]
    result, *memory = call.results
    operands = Operands([*sides, result])
    told = _with_narrow_side(_product(call, fusion, problem), fusion, operands, list(call.operands))
    return RuntimeCall("product", _with_parts(told, operands, memory), operands, kernel_of(call).guards)


def followed(gemm: func.FuncOp, functions: Functions, inputs: Values, outputs: Values) -> RuntimeCall:
    """The call of a product with its epilogue, whose kernels stand on the calls in the fusion."""
    call, reader = calls_in(gemm)
    dot, loop = (functions[callee_of(op)] for op in (call, reader))
    outer = _outer(gemm, inputs, outputs)
    problem, sums = _problem(dot), _epilogue_of(loop).sums
    held = accumulators_of(loop)
    results = [outer[result] for result in reader.results]
    room = results[held] if held is not None and held >= 0 else outer[call.results[0]]
    operands = Operands([outer[root(call.operands[problem.lhs])], outer[root(call.operands[problem.rhs])], room])
    read = [2 if i == sums else operands.number(outer[root(v)]) for i, v in enumerate(reader.operands)]
    buffers = (*read, *map(operands.number, results))
    library = library_epilogue(loop, problem, buffers)
    told = _product(call, dot, problem)
    told = replace(told, epilogue=DeviceEpilogue(kernel_of(reader).use, buffers, sums, library))
    told = _with_narrow_side(told, dot, operands, [outer[root(v)] for v in call.operands])
    told = _with_parts(told, operands, [outer[v] for v in list(call.results)[1:]])
    return RuntimeCall("product", told, operands, _guards(call, reader))


def _outer(gemm: func.FuncOp, inputs: Values, outputs: Values) -> dict[ir.Value, ir.Value]:
    """The values at the call site that the arguments and results of a fusion stand for."""
    block = gemm.entry_block
    outer = dict(zip(block.arguments, inputs, strict=True))
    return outer | dict(zip(terminator_of(block).operands, outputs, strict=True))


def _guards(*calls: ir.OpView) -> tuple[Guard, ...]:
    return tuple(dict.fromkeys(guard for call in calls for guard in kernel_of(call).guards))


def _problem(dot: func.FuncOp) -> MatrixProduct:
    problem = product_of(dot)
    if problem is None:
        raise CompilerError(f"host: @{dot.name.value} is no matrix product")
    return problem.by_rows()


def _epilogue_of(loop: func.FuncOp) -> Epilogue:
    what = fusion_of(loop)
    if not isinstance(what, Epilogue):
        raise CompilerError(f"host: @{loop.name.value}, a {what.kind}, follows no product on a device")
    return what


def _product(call: ir.OpView, dot: func.FuncOp, problem: MatrixProduct) -> DeviceProduct:
    rounded = problem.rounds_to(str(element_type_of(call.results[0])))
    return DeviceProduct(replace(problem, lhs=0, rhs=1), kernel_of(call).use, precision_of(dot), rounded)


def _with_narrow_side(product: DeviceProduct, dot: func.FuncOp, operands: Operands, values: Values) -> DeviceProduct:
    """The product of a kernel that reads other buffers than its right-hand side, if it does. `values`: the arguments of
    the fusion."""
    what = fusion_of(dot)
    if not isinstance(what, Dot) or not what.narrow or what.product is None:
        return product
    rhs = what.product.rhs
    rows = dims_of(dot.entry_block.arguments[rhs])[0]
    written = ZERO if rhs in what.narrow else Expr.minimum(rows, 1)
    return replace(product, narrow=tuple(operands.number(values[i]) for i in what.narrow), written=written)


def _with_parts(product: DeviceProduct, operands: Operands, memory: Values) -> DeviceProduct:
    """The product of a kernel that leaves parts in scratch memory, if it has some."""
    if not memory:
        return product
    return replace(product, partials=operands.number(memory[0]), parts=dims_of(memory[0])[0])


__all__ = ["calls_in", "followed", "is_on_device", "single"]
