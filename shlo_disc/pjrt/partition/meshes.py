# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardy's meshes and shardings, read from JAX's bindings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from shlo_disc.errors import Unsupported, UnsupportedError

from .sharding import Axes, MeshAxis, Sharding, are_apart, count, prime_axes


def _dialect() -> Any:
    from jaxlib.mlir.dialects import sdy

    return cast(Any, sdy)


@dataclass(frozen=True)
class Mesh:
    """The axes of a mesh, by name."""

    axes: dict[str, Axes]

    @classmethod
    def of(cls, attribute: Any) -> Mesh:
        """Read a `#sdy.mesh`."""
        sdy = _dialect()
        mesh = sdy.MeshAttr(attribute)
        ids = tuple(mesh.device_ids)
        order = () if ids == tuple(range(len(ids))) else ids
        axes: dict[str, Axes] = {}
        stride = 1
        for axis in reversed([sdy.MeshAxisAttr(a) for a in mesh.axes]):
            axes[axis.name] = prime_axes(stride, axis.size, order)
            stride *= axis.size
        return cls(axes)

    def part(self, reference: Any) -> Axes:
        """The axes that a reference to an axis, or to a part of one, names."""
        sdy = _dialect()
        ref = sdy.AxisRefAttr(reference)
        whole = self.axes[ref.name]
        if ref.sub_axis_info is None:
            return whole
        info = sdy.SubAxisInfoAttr(ref.sub_axis_info)
        size = count(whole)
        stride = whole[-1].stride * size // (info.pre_size * info.size) if whole else 1
        return prime_axes(stride, info.size, whole[-1].order if whole else ())


class Meshes:
    """The meshes of a module."""

    def __init__(self, module: Any):
        self._named = {
            _text(op.attributes["sym_name"]): Mesh.of(op.attributes["mesh"])
            for op in module.body.operations
            if op.operation.name == "sdy.mesh"
        }

    @property
    def are_stated(self) -> bool:
        """Tells whether the module has meshes: shardings are in Shardy's form."""
        return bool(self._named)

    def sharding(self, attribute: Any) -> Sharding:
        """Read a `#sdy.sharding`, but for its unreduced axes."""
        sdy = _dialect()
        sharding = sdy.TensorShardingAttr(attribute)
        mesh = self._mesh(sharding)
        dims = (sdy.DimensionShardingAttr(dim) for dim in sharding.dimension_shardings)
        return Sharding(tuple(tuple(axis for ref in dim.axes for axis in mesh.part(ref)) for dim in dims))

    def open_sharding(
        self, attribute: Any, given: Sharding, shape: Sequence[int], barred: Iterable[MeshAxis] = ()
    ) -> Sharding:
        """Read a `#sdy.sharding` whose open dimensions also keep the axes, other than `barred`, that `given` has."""
        dims = list(self.sharding(attribute).dims)
        sums = self.unreduced_axes(attribute)
        free = given.without(barred)
        for i, dim in enumerate(_dialect().TensorShardingAttr(attribute).dimension_shardings):
            if not _dialect().DimensionShardingAttr(dim).is_closed:
                more = tuple(axis for axis in free.dims[i] if axis not in dims[i])
                used = [*sums, *(axis for axes in dims for axis in axes)]
                is_even = shape[i] % count((*dims[i], *more)) == 0
                dims[i] += more if is_even and are_apart(more, used) else ()
        return Sharding(tuple(dims))

    def unreduced_axes(self, attribute: Any) -> Axes:
        """The axes along which a `#sdy.sharding` leaves the devices' arrays to be added.

        Raises UnsupportedError if it leaves something else than sums, as it can from JAX 0.12 on.
        """
        sharding = _dialect().TensorShardingAttr(attribute)
        refs = list(sharding.unreduced_axes)
        kind = getattr(getattr(sharding, "reduction_op", None), "name", "SUM")
        if refs and kind != "SUM":
            raise unsupported("sdy.sharding", f"an array that is unreduced by {kind.lower()}")
        return tuple(axis for ref in refs for axis in self._mesh(sharding).part(ref))

    def named_axes(self, attribute: Any) -> Axes | None:
        """The axes that a collective's groups are along; None when it lists its groups."""
        text = str(attribute)
        if not text.startswith("#stablehlo.replica_group_mesh_axes"):
            return None
        found = re.search(r"mesh = @\"?([\w.]+)\"?", text)
        if found is None or "sub_axis" in text:
            raise unsupported("stablehlo.replica_group_mesh_axes", f"the attribute {text}")
        mesh = self._named[found[1]]
        return tuple(axis for name in re.findall(r'axis_ref<name = "([^"]+)"', text) for axis in mesh.axes[name])

    def each(self, attribute: Any) -> list[Any]:
        """The shardings of a `#sdy.sharding_per_value`."""
        return list(_dialect().TensorShardingPerValueAttr(attribute).shardings)

    def manual_axes(self, op: Any) -> frozenset[MeshAxis]:
        """The axes that the body of a manual computation sees one device of."""
        sdy = _dialect()
        names = sdy.ManualAxesAttr(op.attributes["manual_axes"])
        found = [s for key in ("in_shardings", "out_shardings") for s in self.each(op.attributes[key])]
        if not found:
            return frozenset(axis for mesh in self._named.values() for axes in mesh.axes.values() for axis in axes)
        mesh = self._mesh(sdy.TensorShardingAttr(found[0]))
        return frozenset(axis for i in range(len(names)) for axis in mesh.axes[_plain(names[i])])

    def _mesh(self, sharding: Any) -> Mesh:
        reference = sharding.mesh_or_ref
        name = getattr(reference, "value", None)
        return self._named[name] if name is not None else Mesh.of(reference)


def _text(attribute: Any) -> str:
    from jaxlib.mlir import ir

    return str(cast(Any, ir).StringAttr(attribute).value)


def _plain(name: Any) -> str:
    return str(getattr(name, "value", name))


def unsupported(name: str, what: str, where: str = "@main", instead: str = "") -> UnsupportedError:
    """The error for something that is not supported on several devices."""
    return UnsupportedError([Unsupported(name, "", where, f"{what} is not supported on several devices", instead)])
