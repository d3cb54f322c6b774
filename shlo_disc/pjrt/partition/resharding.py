# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From one sharding to another: devices gather what they need, and keep their part of what they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from .meshes import unsupported
from .sharding import Axes, MeshAxis, Sharding, common_prefix, count, groups

_CHANNEL = "#stablehlo.channel_handle<handle = 1, type = 1>"


def bindings() -> Any:
    """JAX's MLIR bindings."""
    from jaxlib.mlir import ir

    return cast(Any, ir)


class Placed(NamedTuple):
    """A device's part of an array, and how the array lies on the devices.

    sums: the axes along which the array is unreduced. Its elements are the sums of those of the devices that differ
    along them; `sharding` has none of them.
    """

    value: Any
    sharding: Sharding
    sums: Axes = ()


def element_of(value: Any) -> Any:
    """The element type."""
    return bindings().RankedTensorType(value.type).element_type


def shape_of(value: Any) -> list[int]:
    """The shape of a tensor."""
    return list(bindings().RankedTensorType(value.type).shape)


def create(name: str, operands: Sequence[Any], type_: Any, attributes: dict[str, Any] | None = None) -> Any:
    """The result of `stablehlo.<name>`; attributes are numbers, lists of numbers, or attributes."""
    ir = bindings()
    given = {key: _attribute(value) for key, value in (attributes or {}).items()}
    op = ir.Operation.create(f"stablehlo.{name}", results=[type_], operands=list(operands), attributes=given)
    return op.results[0]


def _attribute(value: Any) -> Any:
    ir = bindings()
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    return ir.DenseI64ArrayAttr.get(value) if isinstance(value, list) else value


def group_attributes(axes: Axes, devices: int) -> dict[str, Any]:
    """The attributes of a collective along `axes`."""
    ir = bindings()
    rows = groups(axes, devices)
    text = f"dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>"
    return {
        "replica_groups": ir.Attribute.parse(text),
        "channel_handle": ir.Attribute.parse(_CHANNEL),
        "use_global_device_ids": ir.UnitAttr.get(),
    }


class Resharder:
    """Builds what takes arrays from one sharding to another, at the insertion point."""

    def __init__(self, devices: int):
        self.devices = devices

    def reshard(self, placed: Placed, target: Sharding) -> Any:
        """A device's part under the sharding `target`, whose axes are apart from those of sums, which stay."""
        value, source = placed.value, placed.sharding
        if source == target:
            return value
        kept = [common_prefix(a, b) for a, b in zip(source.dims, target.dims, strict=True)]
        for dim, axes in enumerate(source.dims):
            if len(axes) > len(kept[dim]):
                value = self._gather(value, dim, axes[len(kept[dim]) :])
        missing = [b[len(a) :] for a, b in zip(kept, target.dims, strict=True)]
        return self._slice(value, missing) if any(missing) else value

    def is_first(self, axes: Axes = ()) -> Any:
        """Tells whether the device is the first one of all, or of those that differ along `axes` only."""
        ir = bindings()
        number = self._start(self._position(axes[0].order), axes, 1) if axes else self._device()
        truth = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))
        equal = ir.Attribute.parse("#stablehlo<comparison_direction EQ>")
        return create("compare", [number, _number(0)], truth, {"comparison_direction": equal})

    def split(self, value: Any, axes: Axes) -> Any:
        """Summands of a value along `axes`: the value itself on the first device, zeros on the others."""
        return create("select", [self.is_first(axes), value, _zeros(value.type)], value.type)

    def pad_parts(self, value: Any, parts: Sequence[Axes]) -> Any:
        """Summands of an array whose dimensions `parts` divide: each device has zeros around its part."""
        sizes = shape_of(value)
        whole = [size * count(axes) for size, axes in zip(sizes, parts, strict=True)]
        type_ = bindings().RankedTensorType.get(whole, element_of(value))
        device = self._position(next(axis.order for axes in parts for axis in axes))
        starts = [self._start(device, axes, size) for axes, size in zip(parts, sizes, strict=True)]
        return create("dynamic_update_slice", [_zeros(type_), value, *starts], type_)

    def from_first(self, value: Any) -> Any:
        """The value of the first device."""
        ir = bindings()
        row = ",".join(map(str, range(self.devices)))
        attributes = {
            "replica_groups": ir.Attribute.parse(f"dense<[[{row}]]> : tensor<1x{self.devices}xi64>"),
            "channel_handle": ir.Attribute.parse(_CHANNEL),
        }
        return create("collective_broadcast", [value], value.type, attributes)

    def mirrored(self, value: Any, axes: Axes) -> Any:
        """The part of the device that is as far from the last one along `axes` as this one is from the first."""
        ir = bindings()
        pairs = [list(pair) for row in groups(axes, self.devices) for pair in zip(row, reversed(row), strict=True)]
        attributes = {
            "source_target_pairs": ir.Attribute.parse(f"dense<{pairs}> : tensor<{len(pairs)}x2xi64>"),
            "channel_handle": ir.Attribute.parse(_CHANNEL),
        }
        return create("collective_permute", [value], value.type, attributes)

    def _gather(self, value: Any, dim: int, axes: Axes) -> Any:
        shape = shape_of(value)
        shape[dim] *= count(axes)
        type_ = bindings().RankedTensorType.get(shape, element_of(value))
        attributes = {"all_gather_dim": dim, **group_attributes(axes, self.devices)}
        return create("all_gather", [value], type_, attributes)

    def _slice(self, value: Any, missing: Sequence[Axes]) -> Any:
        """The part that the device's digits along `missing` choose."""
        sizes = [size // count(axes) for size, axes in zip(shape_of(value), missing, strict=True)]
        type_ = bindings().RankedTensorType.get(sizes, element_of(value))
        if uniform := uniform_scalar(value):
            return create("broadcast_in_dim", [uniform], type_, {"broadcast_dimensions": []})
        device = self._position(next(axis.order for axes in missing for axis in axes))
        starts = [self._start(device, axes, size) for axes, size in zip(missing, sizes, strict=True)]
        return create("dynamic_slice", [value, *starts], type_, {"slice_sizes": sizes})

    def _device(self) -> Any:
        ir = bindings()
        scalar = ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32))
        number = create("partition_id", [], scalar)
        return create("convert", [number], ir.RankedTensorType.get([], ir.IntegerType.get_signless(32)))

    def _position(self, order: tuple[int, ...]) -> Any:
        """The position of the device in a mesh of this order."""
        if not order:
            return self._device()
        ir = bindings()
        kind, numbers = f"tensor<{self.devices}xi32>", [order.index(device) for device in range(self.devices)]
        table = ir.Attribute.parse(f"dense<{numbers}> : {kind}")
        positions = create("constant", [], ir.Type.parse(kind), {"value": table})
        one = ir.Type.parse("tensor<1xi32>")
        part = create("dynamic_slice", [positions, self._device()], one, {"slice_sizes": [1]})
        return create("reshape", [part], ir.Type.parse("tensor<i32>"))

    def _start(self, device: Any, axes: Axes, size: int) -> Any:
        """The first element of a part along a dimension that `axes` divide into parts of `size`."""
        start = _number(0)
        for position, axis in enumerate(axes):
            weight = size * count(axes[position + 1 :])
            start = _binary("add", start, _binary("multiply", _digit(device, axis), _number(weight)))
        return start


def zero_of(type_: Any) -> Any:
    """Zeros of a type of integers or floats; None for other types."""
    ir = bindings()
    element = getattr(type_, "element_type", None)
    if isinstance(element, ir.FloatType):
        return ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 0.0))
    if isinstance(element, ir.IntegerType):
        return ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(element, 0))
    return None


def _zeros(type_: Any) -> Any:
    ir = bindings()
    if isinstance(type_.element_type, ir.ComplexType):
        half = _zeros(ir.RankedTensorType.get(type_.shape, type_.element_type.element_type))
        return create("complex", [half, half], type_)
    zero = zero_of(type_)
    if zero is None:
        raise unsupported("sdy.sharding", f"an unreduced array of type {type_}")
    return create("constant", [], type_, {"value": zero})


def _number(value: int) -> Any:
    ir = bindings()
    i32 = ir.IntegerType.get_signless(32)
    scalar = ir.RankedTensorType.get([], i32)
    splat = ir.DenseElementsAttr.get_splat(scalar, ir.IntegerAttr.get(i32, value))
    return create("constant", [], scalar, {"value": splat})


def _binary(name: str, a: Any, b: Any) -> Any:
    return create(name, [a, b], a.type)


def _digit(device: Any, axis: MeshAxis) -> Any:
    return _binary("remainder", _binary("divide", device, _number(axis.stride)), _number(axis.size))


def uniform_scalar(value: Any) -> Any:
    """The scalar that is everywhere in an array that was broadcast from it; None for other arrays."""
    owner = value.owner
    if not hasattr(owner, "operands") or owner.name != "stablehlo.broadcast_in_dim":
        return None
    source = owner.operands[0]
    return source if not shape_of(source) else None
