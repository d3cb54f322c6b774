# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the runtime's matrix products and convolutions, as `disc_host` has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.host.prepacked import is_packable, packed_form
from shlo_disc.shape_dialect.dialect.fusion import Convolution, accumulators_of, fusion_of, product_of
from shlo_disc.shape_dialect.dialect.host import (
    TILE_REGISTERS,
    ConvolutionCall,
    Gemm,
    GemmEpilogue,
    GemmProduct,
    GemmTile,
    Guard,
    Packed,
    kernel_of,
)
from shlo_disc.shape_dialect.dialect.names import PRECISION
from shlo_disc.shape_dialect.dialect.problems import ConvolutionProduct, MatrixProduct
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.utils.regions import callee_of, is_fixed, terminator_of

Values = Sequence[ir.Value]

TileOf = Callable[[str, int], GemmTile]
"""The largest tile of an element type with so many registers in a row."""


@dataclass(frozen=True)
class PackedOperand:
    """The packed form of a value."""

    value: ir.Value
    form: Packed


class Operands:
    """Those of an op of `disc_host`, each once: values of the planned module, and packed forms of them."""

    def __init__(self, values: Values = ()):
        self.values: list[ir.Value | PackedOperand] = list(values)

    def number(self, value: ir.Value | PackedOperand) -> int:
        """The number of an operand, which is added where it is new."""
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)


@dataclass(frozen=True)
class RuntimeCall:
    """An op of `disc_host`: its name, what it is told, its operands, and what its kernels choose."""

    name: str
    call: Any
    operands: Operands
    guards: tuple[Guard, ...] = ()


class Products:
    """Makes the calls of one program."""

    def __init__(self, tile_of: TileOf, functions: Mapping[str, func.FuncOp]):
        self.tile_of = tile_of
        self.functions = functions
        self._calls: dict[Any, tuple[RuntimeCall, list[tuple[int, Packed | None]]]] = {}

    def single(self, problem: MatrixProduct, inputs: Values, outputs: Values) -> RuntimeCall:
        """The call of a product by itself.

        One whose right-hand side cannot be packed ahead is computed in the direction in which C's rows lie.
        """
        if problem.writes_columns and not is_packable(problem, inputs[problem.rhs]):
            problem = problem.transposed()
        operands = Operands()
        tile = self.tile_of(problem.element, TILE_REGISTERS)
        product = self._product(problem, inputs, outputs[0], operands, tile)
        return RuntimeCall("gemm", Gemm(tile, (product,)), operands)

    def convolution(self, problem: ConvolutionProduct, inputs: Values, outputs: Values) -> RuntimeCall:
        """The call of a convolution by itself."""
        return _convolution(problem, self.single(problem.product, inputs, outputs))

    def several(self, fusion: func.FuncOp, inputs: Values, outputs: Values) -> RuntimeCall:
        """The call of a fusion of kind "gemm": products of one left-hand side, each with its epilogue.

        The calls of one fusion are alike where operands coincide alike and the same ones can be packed ahead.
        """
        values = [*inputs, *outputs]
        key = fusion.name.value, tuple(map(values.index, values)), tuple(is_fixed(root(v)) for v in inputs)
        if key not in self._calls:
            call = self._several(fusion, inputs, outputs)
            parts = [(v.value, v.form) if isinstance(v, PackedOperand) else (v, None) for v in call.operands.values]
            self._calls[key] = call, [(values.index(value), form) for value, form in parts]
        call, places = self._calls[key]
        operands = Operands()
        for place, form in places:
            operands.number(values[place] if form is None else PackedOperand(values[place], form))
        return replace(call, operands=operands)

    def _several(self, fusion: func.FuncOp, inputs: Values, outputs: Values) -> RuntimeCall:
        block = fusion.entry_block
        outer = dict(zip(block.arguments, inputs, strict=True))
        outer |= dict(zip(terminator_of(block).operands, outputs, strict=True))
        calls = [op for op in block.operations if op.operation.name == "func.call"]
        operands = Operands()
        products: list[GemmProduct] = []
        guards: list[Guard] = []
        tile = self._tile(calls)
        for number, call in enumerate(calls):
            problem = product_of(self._callee(call))
            if problem is None:
                continue
            own = [outer[root(v)] for v in call.operands]
            reader = calls[number + 1] if number + 1 < len(calls) else None
            if reader is None or call.results[0] not in map(root, reader.operands):
                products.append(self._product(problem, own, outer[call.results[0]], operands, tile))
                continue
            sums = [root(v) for v in reader.operands].index(call.results[0])
            products.append(self._with_epilogue(problem, own, reader, sums, outer, operands, tile))
            guards += kernel_of(reader).guards
        if not products:
            raise CompilerError(f"host: @{fusion.name.value} holds no matrix product")
        whole = RuntimeCall("gemm", Gemm(tile, tuple(products)), operands, tuple(dict.fromkeys(guards)))
        first = fusion_of(self._callee(calls[0]))
        convolution = first.product if isinstance(first, Convolution) else None
        return whole if convolution is None else _convolution(convolution, whole)

    def _tile(self, calls: Sequence[ir.OpView]) -> GemmTile:
        """The tile of products that run together: a narrow one where the kernels of all of them are written for it."""
        problems = [product_of(self._callee(call)) for call in calls]
        element = next((problem.element for problem in problems if problem is not None), "f32")
        registers = [kernel_of(c).registers for c, problem in zip(calls, problems, strict=True) if problem is None]
        is_complete = 2 * len(registers) == len(calls)
        return self.tile_of(element, max(registers) if is_complete and registers else TILE_REGISTERS)

    def _callee(self, call: ir.OpView) -> func.FuncOp:
        return self.functions[callee_of(call)]

    def _product(
        self,
        problem: MatrixProduct,
        inputs: Values,
        result: ir.Value | None,
        operands: Operands,
        tile: GemmTile,
        epilogue: GemmEpilogue | None = None,
    ) -> GemmProduct:
        """One product, whose inputs are those of its fusion."""
        lhs, rhs = inputs[problem.lhs], inputs[problem.rhs]
        form = packed_form(problem, rhs, tile)
        here = replace(problem, lhs=operands.number(lhs), rhs=operands.number(rhs))
        written = -1 if result is None else operands.number(result)
        packed = -1 if form is None else operands.number(PackedOperand(rhs, form))
        return GemmProduct(here, written, packed, epilogue)

    def _with_epilogue(
        self,
        problem: MatrixProduct,
        inputs: Values,
        reader: ir.OpView,
        sums: int,
        outer: Mapping[ir.Value, ir.Value],
        operands: Operands,
        tile: GemmTile,
    ) -> GemmProduct:
        """A product whose sums are operand number `sums` of the next call, a kernel."""
        for side in (problem.lhs, problem.rhs):
            operands.number(inputs[side])
        use = kernel_of(reader).use
        held = accumulators_of(self._callee(reader))
        outputs = [outer[r] for r in reader.results]
        result = None if held is None else outer[root(reader.operands[sums])] if held < 0 else outputs[held]
        read = [-1 if i == sums else operands.number(outer[root(v)]) for i, v in enumerate(reader.operands)]
        if result is not None:
            read[sums] = operands.number(result)
        buffers = (*read, *map(operands.number, outputs))
        return self._product(problem, inputs, result, operands, tile, GemmEpilogue(use, buffers))


def precision_of(fusion: func.FuncOp) -> str:
    """The entry of `PRECISIONS` that the import has decided for a fusion's dot."""
    dot = next(iter(fusion.entry_block.operations))
    return ir.StringAttr(dot.attributes[PRECISION]).value if PRECISION in dot.attributes else "full"


def _convolution(problem: ConvolutionProduct, gemm: RuntimeCall) -> RuntimeCall:
    """The call of a convolution whose product is `gemm`."""
    (product,) = gemm.call.products
    call = ConvolutionCall(gemm.call.tile, problem, product)
    return RuntimeCall("convolution", call, gemm.operands, gemm.guards)
