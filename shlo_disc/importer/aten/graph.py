# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The context of a translation: the op that is translated, and builders of StableHLO with exact symbolic types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from shlo_disc.errors import Unsupported, UnsupportedError
from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir, load_chlo
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .reals import real
from .sizes import NoSize, Sizes

NAMES = {
    torch.bool: "i1", torch.uint8: "ui8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
    torch.uint16: "ui16", torch.uint32: "ui32", torch.uint64: "ui64",
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
    torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e5m2: "f8E5M2", torch.float8_e4m3fnuz: "f8E4M3FNUZ",
    torch.float8_e5m2fnuz: "f8E5M2FNUZ", torch.complex64: "complex<f32>", torch.complex128: "complex<f64>",
}  # fmt: skip
"""MLIR's names of PyTorch's dtypes."""

HALVES = (torch.float16, torch.bfloat16)
_OF_8_BITS = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
"""Dtypes to which PyTorch converts floats of 32 bits alone."""

LEAVE = (
    "leave it to PyTorch: compute it outside of the module that you export, or with torch.compile pass "
    'options={"fallback": True}'
)
"""Advice about an op that has no translation."""

_OTHERS = {"float8_": "use torch.float8_e5m2 in its place", "complex": "use torch.complex64 in its place"}
"""Advice about dtypes, by the first letters of their names."""

Number = bool | int | float | complex


class Spec:
    """The dims and dtype of a tensor, from what PyTorch's tracing says of it."""

    def __init__(self, value: torch.Tensor, sizes: Sizes):
        self.dims: Dims = sizes.sizes_of(value.shape)
        self.dtype: torch.dtype = value.dtype


class Graph:
    """A translation under way. Ops are built at the insertion point, at the place of the op that is translated.

    `sizes` reads the expressions of SymPy. `outs` are the results of that op as PyTorch says they are. `stated` are
    the symbols that the program's arguments determine, `bound` those that were read from data, and `reals` floats
    that the program is given (f64), by the expressions of SymPy that they are. `sources` says of PyTorch's symbols
    that are data what they are, in messages; `origins` says what made PyTorch take a relation, or the end of a range,
    to hold. `literals` has the least and the greatest element of arguments that
    are numbers in the user's code, such as `torch.tensor([0, 4])`, by their positions. `key` is what random numbers
    are drawn by, an argument of the program. `loops` says how many loops the op is in.
    """

    def __init__(self, context: ir.Context, sizes: Sizes):
        self.context = context
        self.sizes = sizes
        self.node: Any = None
        self.line = ""
        self.outs: list[Spec] = []
        self.stated: set[str] = set()
        self.bound: set[str] = set()
        self.sources: dict[str, str] = {}
        self.origins: Mapping[Any, str] = {}
        self.reals: dict[Any, ir.Value] = {}
        self.literals: dict[int, tuple[int, int]] = {}
        self.key: ir.Value | None = None
        self.loops = 0
        self._draws = 0

    # ---- the op that is translated ----------------------------------------------------------------------------------

    @property
    def dims(self) -> Dims:
        """The sizes of the op's first result."""
        return self.outs[0].dims

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the op's first result."""
        return self.outs[0].dtype

    def refuse(self, reason: str, instead: str = "") -> UnsupportedError:
        """The error to raise for the op that is translated, with the user's line. instead: what to write."""
        advice = f"{instead}, or {LEAVE}" if instead else LEAVE
        name = f"the argument {self.node.target}" if self.line == "unknown" else str(self.node.target)
        return UnsupportedError([Unsupported(name, "", self.line, reason, advice)])

    def knows(self, size: Expr) -> bool:
        """Tells whether the symbols of a size have values by now."""
        return size.symbols() <= self.stated | self.bound

    def next_draw(self) -> tuple[ir.Value, int]:
        """The key and the number of the next op that draws random numbers."""
        if self.key is None or self.loops:
            raise self.refuse("random numbers inside of a loop have no translation", "draw them before the loop")
        self._draws += 1
        return self.key, self._draws

    # ---- types ------------------------------------------------------------------------------------------------------

    def element(self, dtype: torch.dtype) -> ir.Type:
        """The element type of a dtype. Raises UnsupportedError for one that has none."""
        if dtype not in NAMES:
            raise self.refuse(
                f"the dtype {dtype} has no lowering", _OTHERS.get(str(dtype).removeprefix("torch.")[:7], "")
            )
        return ir.Type.parse(NAMES[dtype])

    def dtype_of(self, value: ir.Value) -> torch.dtype:
        """The dtype of a value."""
        return _DTYPES[str(element_type_of(value))]

    # ---- building ---------------------------------------------------------------------------------------------------

    def op(
        self,
        name: str,
        operands: Sequence[ir.Value],
        dims: Sequence[Expr],
        element: ir.Type,
        **attributes: ir.Attribute,
    ) -> ir.Value:
        """An op of one result, by its name with or without the dialect's."""
        full = name if "." in name else f"stablehlo.{name}"
        result = tensor_type(dims, element)
        return ir.Operation.create(full, [result], list(operands), attributes).results[0]

    def pointwise(self, name: str, *operands: ir.Value) -> ir.Value:
        """An op on elements, of operands of one type, whose result is of that type too."""
        if name.startswith("chlo."):
            load_chlo(self.context)
        return self.op(name, operands, dims_of(operands[0]), element_type_of(operands[0]))

    def constant(self, number: Number, dtype: torch.dtype, dims: Sequence[Expr] = ()) -> ir.Value:
        """A number in every element of a tensor of some sizes. Integers wrap around."""
        element = self.element(dtype)
        type_ = ir.RankedTensorType.get([], element)
        value = _dense(type_, number)
        scalar = build.dense(value)
        return self.broadcast(scalar, dims, ())

    def size(self, size: Expr, dtype: torch.dtype = torch.int64) -> ir.Value:
        """A size as a tensor of rank 0."""
        if size.constant is not None:
            return self.constant(size.constant, dtype)
        attribute = build.shape_tensor((size,))
        return self.convert(self.reshape(attribute, ()), dtype)

    def number(self, number: Any, dtype: torch.dtype) -> ir.Value:
        """A number, a size or a tensor of one element, as a tensor of rank 0."""
        if isinstance(number, Expr):
            return self.size(number, dtype)
        if isinstance(number, ir.Value):
            return self.convert(self.reshape(number, ()), dtype)
        if isinstance(number, torch.SymFloat):
            try:
                return self.convert(real(self, number.node.expr), dtype)
            except NoSize as error:
                raise self.refuse(str(error)) from None
        if not isinstance(number, Number):
            raise self.refuse(f"the number {number} has no lowering")
        return self.constant(number, dtype)

    def convert(self, value: ir.Value, dtype: torch.dtype) -> ir.Value:
        """The elements in another dtype, as `Tensor.to` has them: of complex numbers as real ones the real part."""
        source = self.dtype_of(value)
        if source == dtype:
            return value
        if dtype == torch.bool:
            return self.compare("NE", value, self.constant(0, source, dims_of(value)))
        if source.is_complex and not dtype.is_complex:
            part = self.op("real", [value], dims_of(value), self.element(source.to_real()))
            return self.convert(part, dtype)
        if dtype in _OF_8_BITS:
            value = self.convert(value, torch.float32)
        if dtype == torch.float8_e4m3fn:  # which has no infinity: PyTorch takes the largest number for what is larger
            most = torch.finfo(dtype).max
            limits = [self.constant(limit, torch.float32, dims_of(value)) for limit in (-most, most)]
            value = self.op("clamp", [limits[0], value, limits[1]], dims_of(value), element_type_of(value))
        return self.op("convert", [value], dims_of(value), self.element(dtype))

    def broadcast(self, value: ir.Value, dims: Sequence[Expr], axes: Sequence[int]) -> ir.Value:
        """A value broadcast to `dims`, its own axes standing at `axes`."""
        if tuple(dims) == dims_of(value) and list(axes) == list(range(len(dims))):
            return value
        return build.broadcast(value, dims, list(axes))

    def stretch(self, value: ir.Value, dims: Sequence[Expr]) -> ir.Value:
        """A value broadcast to `dims` as PyTorch does, its axes being the last ones."""
        before = len(dims) - len(dims_of(value))
        return self.broadcast(value, dims, range(before, len(dims)))

    def operand(self, value: Any, dtype: torch.dtype, dims: Sequence[Expr] | None = None) -> ir.Value:
        """A tensor, number or size in a dtype, broadcast to `dims`, by default those of the op's result."""
        dims = self.dims if dims is None else dims
        tensor = self.convert(value, dtype) if isinstance(value, ir.Value) else self.number(value, dtype)
        return self.stretch(tensor, dims)

    def reshape(self, value: ir.Value, dims: Sequence[Expr]) -> ir.Value:
        """The same elements in row-major order with other sizes."""
        return build.view(value, tuple(dims))

    def transpose(self, value: ir.Value, permutation: Sequence[int]) -> ir.Value:
        """The axes in another order."""
        if list(permutation) == list(range(len(permutation))):
            return value
        return build.transpose(value, list(permutation))

    def compare(self, direction: str, left: ir.Value, right: ir.Value) -> ir.Value:
        """EQ, NE, LT, LE, GT or GE of two tensors of one type."""
        attribute = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
        element = ir.IntegerType.get_signless(1)
        return self.op("compare", [left, right], dims_of(left), element, comparison_direction=attribute)

    def select(self, condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
        """Elements of `yes` where the condition holds, else of `no`; all of one shape."""
        return self.op("select", [condition, yes, no], dims_of(yes), element_type_of(yes))

    def iota(self, dims: Sequence[Expr], axis: int, dtype: torch.dtype) -> ir.Value:
        """The index along an axis."""
        place: dict[str, ir.Attribute] = {"iota_dimension": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)}
        if all(d.constant is not None for d in dims):
            return self.op("iota", [], dims, self.element(dtype), **place)
        return self.op("dynamic_iota", [build.shape_tensor(dims)], dims, self.element(dtype), **place)

    def reduce(
        self, values: Sequence[ir.Value], starts: Sequence[ir.Value], axes: Sequence[int], name: str
    ) -> list[ir.Value]:
        """Values reduced along axes by an op on elements, from a neutral start each."""
        kept = [d for axis, d in enumerate(dims_of(values[0])) if axis not in axes]
        types = [tensor_type(kept, element_type_of(v)) for v in values]
        attributes: dict[str, ir.Attribute] = {"dimensions": ir.DenseI64ArrayAttr.get(sorted(axes))}
        op = ir.Operation.create("stablehlo.reduce", types, [*values, *starts], attributes, regions=1)
        self.body(op, [s.type for s in starts] * 2, lambda a, b: [self.pointwise(name, a, b)])
        return list(op.results)

    def body(self, op: ir.Operation, types: Sequence[ir.Type], build: Callable[..., Sequence[ir.Value]]) -> None:
        """Give an op a region of one block, whose arguments have `types`."""
        block = op.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
        with ir.InsertionPoint(block):
            ir.Operation.create("stablehlo.return", [], list(build(*block.arguments)))


_DTYPES = {name: dtype for dtype, name in NAMES.items()}


def _dense(type_: ir.RankedTensorType, number: Number) -> ir.DenseElementsAttr:
    """A number as a tensor of rank 0."""
    element = type_.element_type
    if not isinstance(element, ir.ComplexType):
        return ir.DenseElementsAttr.get_splat(type_, _attribute(element, number))
    kind = np.complex128 if isinstance(element.element_type, ir.F64Type) else np.complex64
    array: Any = np.array(number, kind)
    return ir.DenseElementsAttr.get(array, type=type_)


def _attribute(element: ir.Type, number: Any) -> ir.Attribute:
    if not isinstance(element, ir.IntegerType):
        return ir.FloatAttr.get(element, float(number))
    if element.width == 1:
        return ir.IntegerAttr.get(element, int(bool(number)))
    half = 1 << (element.width - 1)
    low = 0 if element.is_unsigned else -half
    return ir.IntegerAttr.get(element, (int(number) - low) % (2 * half) + low)


def pairs(numbers: Sequence[int]) -> ir.DenseElementsAttr:
    """Numbers, two to a row, as StableHLO has the padding of windows."""
    i64 = ir.IntegerType.get_signless(64)
    type_ = ir.RankedTensorType.get([len(numbers) // 2, 2], i64)
    return ir.DenseElementsAttr.get([ir.IntegerAttr.get(i64, n) for n in numbers], type_)


def numbers_of(sizes: Sequence[Expr]) -> ir.DenseI64ArrayAttr:
    """Sizes that are numbers, as StableHLO has them in attributes."""
    return ir.DenseI64ArrayAttr.get([e.constant for e in sizes if e.constant is not None])


def for_each(values: Sequence[int], rank: int) -> list[int]:
    """A number for each axis, of which one may stand for all."""
    return list(values) * rank if len(values) == 1 else list(values)


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    return axis % max(rank, 1)


def axes_of(axes: Any, rank: int) -> list[int]:
    """Axes counted from the front; None and [] stand for all."""
    if axes is None or (isinstance(axes, Sequence) and not axes):
        return list(range(rank))
    return sorted({axis_of(a, rank) for a in ([axes] if isinstance(axes, int) else axes)} if rank else ())


def working(dtype: torch.dtype) -> torch.dtype:
    """The dtype that PyTorch computes in for tensors of a dtype: single precision for halves."""
    return torch.float32 if dtype in HALVES else dtype
