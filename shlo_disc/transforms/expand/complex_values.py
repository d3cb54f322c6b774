# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex values become pairs of real ones.

One walk in program order, into the regions of ops as well. Arguments and results of the program are interleaved
buffers; everything between works on the two parts, each a tensor of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import broadcast_scalar
from shlo_disc.shape_dialect.dialect.types import dims_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import main_function
from shlo_disc.transforms.expand import complex_math, complex_products
from shlo_disc.transforms.expand.complex_constants import parts_of
from shlo_disc.transforms.expand.complex_math import Complex
from shlo_disc.transforms.expand.interleaved import deinterleave, interleave
from shlo_disc.transforms.expand.reals import Real, constant

Handler = Callable[["Decomposition", ir.OpView], None]


def decompose(module: ir.Module) -> None:
    """Replace every complex value of an annotated module, in place."""
    function = main_function(module)
    block = function.regions[0].blocks[0]
    ops = list(block.operations)
    decomposition = Decomposition()
    with ir.InsertionPoint.at_block_begin(block), function.location:
        for argument in block.arguments:
            if is_complex(argument.type):
                argument.set_type(interleaved_type(argument.type))
                decomposition.parts[argument] = _complex(*deinterleave(argument))
    decomposition.visit(ops)
    decomposition.erase()
    terminator = block.operations[len(block.operations) - 1]
    inputs, results = [a.type for a in block.arguments], [v.type for v in terminator.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def is_complex(type_: ir.Type) -> bool:
    """Tells whether it is a tensor of complex numbers."""
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.ComplexType)


def real_type(type_: ir.Type) -> ir.RankedTensorType:
    """The type of each part of a complex tensor."""
    tensor = ir.RankedTensorType(type_)
    return ir.RankedTensorType.get(tensor.shape, ir.ComplexType(tensor.element_type).element_type, tensor.encoding)


def interleaved_type(type_: ir.Type) -> ir.RankedTensorType:
    """The type of a complex tensor in a buffer."""
    return tensor_type((*dims_of(type_), Expr.const(2)), real_type(type_).element_type)


class Decomposition:
    """The state of the walk: the parts of each complex value, and the ops that nothing uses any more."""

    def __init__(self) -> None:
        self.parts: dict[ir.Value, Complex] = {}
        self.dead: list[ir.Operation] = []
        self.dead_arguments: list[tuple[ir.Block, int]] = []

    def erase(self) -> None:
        """Remove what has been replaced."""
        for op in reversed(self.dead):
            op.erase()
        for block, count in self.dead_arguments:
            for _ in range(count):
                block.erase_argument(0)

    def visit(self, ops: Sequence[ir.OpView]) -> None:
        """Decompose ops of one block, in order."""
        for op in ops:
            with ir.InsertionPoint(op), op.location:
                self._visit(op)

    def _visit(self, op: ir.OpView) -> None:
        arguments = [a for region in op.regions for block in region.blocks for a in block.arguments]
        made = any(is_complex(v.type) for v in (*op.results, *arguments))
        if not made and op.operation.name not in _PARTS and not any(v in self.parts for v in op.operands):
            for region in op.regions:
                for block in region.blocks:
                    self.visit(list(block.operations))
            return
        name = op.operation.name
        handler = HANDLERS.get(name)
        if handler is not None:
            handler(self, op)
        elif len(op.regions):
            self._with_regions(op)
        elif name.removeprefix("stablehlo.") in complex_math.FUNCTIONS:
            operands = [self.parts[v] for v in op.operands]
            self.replace(op, complex_math.FUNCTIONS[name.removeprefix("stablehlo.")](*operands))
        elif is_complex(op.results[0].type) and len(op.results) == 1:
            self._by_parts(op)
        else:
            raise CompilerError(f"expand: {name} on complex numbers has no rule")

    def replace(self, op: ir.OpView, result: Complex | Real) -> None:
        """Give the op's one result its value."""
        if isinstance(result, Complex):
            self.parts[op.results[0]] = result
        else:
            op.results[0].replace_all_uses_with(result.value)
        self.dead.append(op.operation)

    def flat(self, values: Iterable[ir.Value]) -> list[ir.Value]:
        """Values with each complex one as its two parts."""
        found: list[ir.Value] = []
        for value in values:
            found += [part.value for part in self.parts[value]] if value in self.parts else [value]
        return found

    # ---- ops that only move or choose elements --------------------------------------------------------------------

    def _by_parts(self, op: ir.OpView) -> None:
        """Do to each part what the op does to the whole."""
        parts = []
        for index in range(2):
            operands = [self.parts[v][index].value if v in self.parts else v for v in op.operands]
            parts.append(_same_op(op, operands, [real_type(op.results[0].type)]).results[0])
        self.replace(op, _complex(*parts))

    # ---- ops with regions -----------------------------------------------------------------------------------------

    def _with_regions(self, op: ir.OpView) -> None:
        """The op on twice as many tensors, its bodies' arguments and results likewise."""
        types = [t for r in op.results for t in _flat_types(r.type)]
        new = _same_op(op, self.flat(op.operands), types, len(op.regions))
        pairs_of_arguments = op.operation.name == "stablehlo.sort"
        for old_region, new_region in zip(op.regions, new.regions, strict=True):
            for block in list(old_region.blocks):
                block.append_to(new_region)
                self._split_arguments(block, pairs_of_arguments)
                self.visit(list(block.operations))
        results = iter(new.results)
        for result in op.results:
            if is_complex(result.type):
                self.parts[result] = _complex(next(results), next(results))
            else:
                result.replace_all_uses_with(next(results))
        self.dead.append(op.operation)

    def _split_arguments(self, block: ir.Block, pairs: bool) -> None:
        """New block arguments for the parts. With `pairs` two arguments belong to each tensor, and stay neighbours."""
        old = list(block.arguments)
        if not any(is_complex(argument.type) for argument in old):
            return
        step = 2 if pairs else 1
        for first in range(0, len(old), step):
            group = old[first : first + step]
            columns = [[block.add_argument(t, a.location) for a in group] for t in _flat_types(group[0].type)]
            for argument, parts in zip(group, zip(*columns, strict=True), strict=True):
                if is_complex(argument.type):
                    self.parts[argument] = _complex(*parts)
                else:
                    argument.replace_all_uses_with(parts[0])
        self.dead_arguments.append((block, len(old)))


def _complex(re: ir.Value, im: ir.Value) -> Complex:
    return Complex(Real(re), Real(im))


def _flat_types(type_: ir.Type) -> list[ir.Type]:
    return [real_type(type_)] * 2 if is_complex(type_) else [type_]


def _same_op(op: ir.OpView, operands: Sequence[ir.Value], types: Sequence[ir.Type], regions: int = 0) -> ir.Operation:
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.operation.name, list(types), list(operands), attributes, regions=regions)


# ---- ops of their own kind -------------------------------------------------------------------------------------------


def _return(d: Decomposition, op: ir.OpView) -> None:
    """The program's results are interleaved."""
    for position, value in enumerate(op.operands):
        if value in d.parts:
            re, im = d.parts[value]
            op.operands[position] = interleave(re.value, im.value)


def _library_call(d: Decomposition, op: ir.OpView) -> None:
    """Library functions read and write buffers, which are interleaved."""
    operands = [interleave(*(p.value for p in d.parts[v])) if v in d.parts else v for v in op.operands]
    types = [interleaved_type(r.type) if is_complex(r.type) else r.type for r in op.results]
    new = _same_op(op, operands, types)
    for old, result in zip(op.results, new.results, strict=True):
        if is_complex(old.type):
            d.parts[old] = _complex(*deinterleave(result))
        else:
            old.replace_all_uses_with(result)
    d.dead.append(op.operation)


def _inner_return(d: Decomposition, op: ir.OpView) -> None:
    _same_op(op, d.flat(op.operands), [])
    d.dead.append(op.operation)


def _constant(d: Decomposition, op: ir.OpView) -> None:
    real = real_type(op.results[0].type)
    parts = [build.dense(part) for part in parts_of(op, real)]
    d.replace(op, _complex(*parts))


def _make_complex(d: Decomposition, op: ir.OpView) -> None:
    d.replace(op, _complex(*op.operands))


def _part(index: int) -> Handler:
    """The real or the imaginary part, of a real tensor too."""

    def handler(d: Decomposition, op: ir.OpView) -> None:
        value = op.operands[0]
        parts = d.parts[value] if value in d.parts else Complex(Real(value), constant(0.0, value))
        d.replace(op, parts[index])

    return handler


def _abs(d: Decomposition, op: ir.OpView) -> None:
    d.replace(op, complex_math.absolute(d.parts[op.operands[0]]))


def _compare(d: Decomposition, op: ir.OpView) -> None:
    direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    d.replace(op, complex_math.ordered(direction, *(d.parts[v] for v in op.operands)))


def _clamp(d: Decomposition, op: ir.OpView) -> None:
    dims = dims_of(op.results[0])
    low, value, high = (d.parts[v] for v in op.operands)
    low, high = (_broadcast(bound, dims_of(bound.re.value) != dims, value) for bound in (low, high))
    d.replace(op, complex_math.minimum(complex_math.maximum(low, value), high))


def _broadcast(bound: Complex, is_scalar: bool, like: Complex) -> Complex:
    return Complex(*(Real(broadcast_scalar(p.value, dims_of(like.re.value))) for p in bound)) if is_scalar else bound


def _convert(d: Decomposition, op: ir.OpView) -> None:
    source, target = op.operands[0], op.results[0].type
    part_type = real_type(target) if is_complex(target) else target
    parts = d.parts.get(source)
    values = [source] if parts is None else [part.value for part in parts]
    converted = [Real(_same_op(op, [v], [part_type]).results[0]) for v in values]
    if not is_complex(target):
        d.replace(op, converted[0])
        return
    d.replace(op, Complex(converted[0], converted[1] if len(converted) == 2 else converted[0].like(0.0)))


def _iota(d: Decomposition, op: ir.OpView) -> None:
    counted = _same_op(op, list(op.operands), [real_type(op.results[0].type)]).results[0]
    d.replace(op, Complex(Real(counted), constant(0.0, counted)))


def _first_part(d: Decomposition, op: ir.OpView) -> None:
    """An op that asks for a size: either part has it."""
    op.operands[0] = d.parts[op.operands[0]].re.value


def _bitcast(d: Decomposition, op: ir.OpView) -> None:
    whole = interleave(*(part.value for part in d.parts[op.operands[0]]))
    result = interleaved_type(op.results[0].type)
    d.replace(op, _complex(*deinterleave(_same_op(op, [whole], [result]).results[0])))


def _product(d: Decomposition, op: ir.OpView) -> None:
    x, y = (d.parts.get(v) or _without_imaginary(Real(v)) for v in list(op.operands)[:2])
    d.replace(op, complex_products.product(op, x, y, real_type(op.results[0].type)))


def _without_imaginary(real: Real) -> Complex:
    return Complex(real, real.like(0.0))


_PARTS = ("stablehlo.imag", "stablehlo.real")

HANDLERS: dict[str, Handler] = {
    "func.return": _return,
    "stablehlo.abs": _abs,
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.complex": _make_complex,
    "stablehlo.constant": _constant,
    "stablehlo.convert": _convert,
    "stablehlo.convolution": _product,
    "stablehlo.custom_call": _library_call,
    "stablehlo.dot": _product,
    "stablehlo.dot_general": _product,
    "stablehlo.dynamic_conv": _product,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.einsum": _product,
    "stablehlo.get_dimension_size": _first_part,
    "stablehlo.imag": _part(1),
    "stablehlo.iota": _iota,
    "stablehlo.real": _part(0),
    "stablehlo.return": _inner_return,
}
"""Ops that are neither a function of complex numbers nor a movement of elements."""

__all__ = ["HANDLERS", "Decomposition", "decompose", "interleaved_type", "is_complex", "real_type"]
