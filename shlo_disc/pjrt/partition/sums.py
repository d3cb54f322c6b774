# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unreduced arrays: each device has a summand. JAX's types say which arrays are, and the program states it.

They are added where the program states that they are reduced, or where an op uses them that is not linear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .reductions import combine
from .resharding import Placed, bindings, element_of
from .sharding import Axes, Sharding, are_apart

if TYPE_CHECKING:
    from .partitioner import Partitioner

TAKING = frozenset(("sdy.sharding_constraint", "sdy.manual_computation", "func.call", "stablehlo.while"))
"""Ops whose own rules take unreduced operands."""
_LINEAR = frozenset(f"stablehlo.{name}" for name in ("add", "broadcast_in_dim", "concatenate", "reshape", "transpose"))


def lay(p: Partitioner, placed: Placed, sharding: Sharding, sums: Axes = ()) -> Placed:
    """An array under a sharding, unreduced along `sums`, which are apart from the sharding's axes."""
    ready = tuple(axis for axis in placed.sums if axis not in sums)
    if ready:
        placed = combine(p, placed, ready, "stablehlo.add")
    missing = tuple(axis for axis in sums if axis not in placed.sums)
    parts = _divided_by(missing, placed.sharding, sharding)
    if parts:
        value = p.resharder.pad_parts(placed.value, parts)
        missing = tuple(axis for axis in missing if not any(axis in axes for axes in parts))
    else:
        value = p.resharder.reshard(placed, sharding)
    return Placed(p.resharder.split(value, missing) if missing else value, sharding, sums)


def _divided_by(missing: Axes, source: Sharding, target: Sharding) -> list[Axes]:
    """The axes that divide each dimension further in `source` than in `target`; none unless all are `missing`."""
    pairs = list(zip(source.dims, target.dims, strict=True))
    further = [a[len(b) :] for a, b in pairs]
    axes = [axis for part in further for axis in part]
    is_prefix = all(a[: len(b)] == b for a, b in pairs)
    return further if axes and is_prefix and all(axis in missing for axis in axes) else []


def add_parts(p: Partitioner, placed: Placed, axes: Axes, result: Any) -> Placed:
    """Summands of devices along `axes`, added but for the axes along which every use of the result leaves them."""
    left = _left(p, result)
    whole = placed._replace(sums=axes)
    return lay(p, whole, placed.sharding, tuple(axis for axis in axes if axis in left))


def _left(p: Partitioner, value: Any) -> Axes:
    """The axes along which all uses of a value state that it is unreduced."""
    users = [use.owner.operation for use in value.uses]
    if not users or any(user.name != "sdy.sharding_constraint" for user in users):
        return ()
    first, *others = (p.meshes.unreduced_axes(user.attributes["sharding"]) for user in users)
    return tuple(axis for axis in first if all(axis in other for other in others))


def kept(p: Partitioner, op: Any) -> Axes:
    """The axes along which an op of unreduced operands may leave its result unreduced, as it is linear in them."""
    name, operands = op.operation.name, [p.placed(v) for v in op.operands]
    found = {placed.sums for placed in operands}
    if name in _LINEAR or (name == "stablehlo.convert" and _is_of_floats(op)):
        return found.pop() if len(found) == 1 else ()
    if name == "stablehlo.multiply" and len(found) == 2 and () in found:
        (sums,) = found - {()}
        factors = (placed.sharding for placed in operands if not placed.sums)
        return sums if all(are_apart(factor.axes, sums) for factor in factors) else ()
    return ()


def _is_of_floats(op: Any) -> bool:
    return all(isinstance(element_of(v), bindings().FloatType) for v in (*op.operands, *op.results))


def is_used_inside(value: Any) -> bool:
    """Tells whether ops in the regions of other ops use a value."""
    owner = value.owner
    block = owner if isinstance(owner, bindings().Block) else owner.operation.block
    return any(use.owner.operation.block != block for use in value.uses)
