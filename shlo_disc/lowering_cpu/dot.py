# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the runtime's `dot`: products of one left-hand side, each with its epilogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.kernels import Kernel, KernelCache
from shlo_disc.lowering_cpu.convolution import convolution_words
from shlo_disc.lowering_cpu.epilogue_kernel import TILE_SIZES
from shlo_disc.lowering_cpu.gemm_format import FORMATS
from shlo_disc.lowering_cpu.gemm_kernel import Tile, tile_of
from shlo_disc.lowering_cpu.kernel import CpuOptions
from shlo_disc.lowering_cpu.packs import Packs
from shlo_disc.lowering_cpu.steps import ConvolutionCall, DotCall, Epilogue, Place, Product
from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.dialect.fusion import Convolution, accumulators_of, fusion_of, product_of
from shlo_disc.shape_dialect.dialect.problems import MAX_BATCH, ConvolutionProduct, MatrixProduct
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import terminator_of
from shlo_disc.transforms.views import root

Grain = Callable[[Kernel, Mapping[str, Expr]], Expr]


def product_words(product: MatrixProduct, tile: Tile) -> tuple[Expr, ...]:
    """The fields of `DiscDot` before its pointers."""
    padding = MAX_BATCH - len(product.batch)
    zero, one = Expr.const(0), Expr.const(1)
    batch = product.batch
    words = [Expr.const(FORMATS.index(tile.format)), Expr.const(len(batch))]
    words += [a.size for a in batch] + [one] * padding
    for side in ("lhs", "rhs", "result"):
        words += [getattr(a, side) for a in batch] + [zero] * padding
    m, n, k = product.m, product.n, product.k
    words += [m.size, n.size, k.size]
    words += [m.lhs, k.lhs, k.rhs, n.rhs, m.result, n.result]
    return tuple(words)


@dataclass
class DotLowering:
    """Makes the host program's calls of `dot`, and remembers which tiles they need."""

    options: CpuOptions
    functions: Mapping[str, func.FuncOp]
    kernels: KernelCache
    packs: Packs
    grain: Grain
    tiles: dict[str, Tile] = field(default_factory=dict)
    transforms: bool = False

    def single(self, product: MatrixProduct, inputs: Sequence[Place], output: Place) -> DotCall:
        """The call of a product by itself.

        One whose right-hand side cannot be packed ahead is computed in the direction in which C's rows lie.
        """
        if product.writes_columns and not self.packs.is_packable(product, inputs[product.rhs]):
            product = product.transposed()
        return DotCall((self._product(product, inputs, output, None),), self.tile(product.element))

    def convolution(self, convolution: ConvolutionProduct, call: DotCall) -> ConvolutionCall:
        """The call of a convolution whose product is `call`."""
        self.transforms |= convolution.may_transform
        return ConvolutionCall(call, convolution_words(convolution), convolution.may_transform)

    def several(
        self, fusion: func.FuncOp, inputs: Sequence[Place], outputs: Sequence[Place]
    ) -> DotCall | ConvolutionCall:
        """The call of a fusion of kind "product"."""
        block = fusion.entry_block
        places = dict(zip(block.arguments, inputs, strict=True))
        places |= dict(zip(terminator_of(block).operands, outputs, strict=True))
        calls = [op for op in block.operations if op.operation.name == "func.call"]
        products: list[Product] = []
        tile: Tile | None = None
        first = fusion_of(self._callee(calls[0]))
        convolution = first.product if isinstance(first, Convolution) else None
        for number, call in enumerate(calls):
            product = product_of(self._callee(call))
            if product is None:
                continue
            tile = self.tile(product.element)
            own = [places[root(v)] for v in call.operands]
            following = calls[number + 1] if number + 1 < len(calls) else None
            if following is None or call.results[0] not in map(root, following.operands):
                products.append(self._product(product, own, places[call.results[0]], None))
                continue
            sums = [root(v) for v in following.operands].index(call.results[0])
            products.append(self._with_epilogue(product, own, following, sums, places))
        if tile is None:
            raise CompilerError("lower: a fusion of kind product holds no matrix product")
        whole = DotCall(tuple(products), tile)
        return whole if convolution is None else self.convolution(convolution, whole)

    def _callee(self, call: ir.OpView) -> func.FuncOp:
        return self.functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value]

    def tile(self, element: str) -> Tile:
        """The largest tile of an element type."""
        return self.tiles.setdefault(element, tile_of(element, self.options))

    def _product(
        self, product: MatrixProduct, inputs: Sequence[Place], result: Place | None, epilogue: Epilogue | None
    ) -> Product:
        lhs, rhs = inputs[product.lhs], inputs[product.rhs]
        tile = self.tile(product.element)
        packed = self.packs.place(product, rhs, tile)
        return Product(product_words(product, tile), lhs, rhs, result, packed, epilogue)

    def _with_epilogue(
        self,
        product: MatrixProduct,
        inputs: Sequence[Place],
        call: ir.OpView,
        sums: int,
        places: Mapping[ir.Value, Place],
    ) -> Product:
        fusion = self._callee(call)
        kernel, meaning = self.kernels.kernel_for(fusion)
        outputs = [places[r] for r in call.results]
        sizes = tuple(s.substitute(meaning) if meaning else s for s in kernel.sizes)
        room = accumulators_of(fusion)
        is_tile = room is None
        here = None if room is None else places[root(call.operands[sums])] if room < 0 else outputs[room]
        buffers = [here if i == sums else places[root(v)] for i, v in enumerate(call.operands)]
        tile = len(buffers) + len(outputs) + kernel.sizes.index(TILE_SIZES[0]) if is_tile else None
        epilogue = Epilogue(
            kernel.name, (*buffers, *outputs), sizes, self.grain(kernel, meaning), sums if is_tile else None, tile
        )
        return self._product(product, inputs, here, epilogue)
