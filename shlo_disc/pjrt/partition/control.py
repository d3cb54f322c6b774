# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that hold or call other programs, and annotations of shardings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .custom import TARGET, partition_custom
from .meshes import unsupported
from .resharding import Placed, bindings, create, shape_of, uniform_scalar, zero_of
from .sharding import Axes, MeshAxis, Sharding
from .sums import lay

if TYPE_CHECKING:
    from .partitioner import Partitioner


def _call(p: Partitioner, op: Any) -> list[Placed]:
    callee = bindings().FlatSymbolRefAttr(op.attributes["callee"]).value
    return p.walk_function(callee, [p.placed(v) for v in op.operands])


def _composite(p: Partitioner, op: Any) -> list[Placed]:
    """A composite is what its decomposition is."""
    name = bindings().FlatSymbolRefAttr(op.attributes["decomposition"]).value
    return p.walk_function(name, [p.placed(v) for v in op.operands])


def _named_computation(p: Partitioner, op: Any) -> list[Placed]:
    block = op.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        p.place(argument, p.placed(operand))
    return p.walk(block)


# ---- annotations ----------------------------------------------------------------------------------------------------


def _constraint(p: Partitioner, op: Any) -> list[Placed]:
    placed, shape, stated = p.placed(op.operands[0]), shape_of(op.operands[0]), op.attributes["sharding"]
    target = p.meshes.open_sharding(stated, placed.sharding, shape).fitted(shape)
    return [lay(p, placed, target, p.meshes.unreduced_axes(stated))]


def _same(p: Partitioner, op: Any) -> list[Placed]:
    return [p.placed(v) for v in op.operands]


def _nothing(_: Partitioner, op: Any) -> list[Placed]:
    return []


def _manual(p: Partitioner, op: Any) -> list[Placed]:
    """Partition a computation whose program per device is stated: the body sees the parts along the manual axes."""
    manual = p.meshes.manual_axes(op)
    block = op.regions[0].blocks[0]
    inward, outward = (p.meshes.each(op.attributes[name]) for name in ("in_shardings", "out_shardings"))
    for argument, operand, stated in zip(block.arguments, op.operands, inward, strict=True):
        placed = p.placed(operand)
        sharding = p.meshes.open_sharding(stated, placed.sharding, shape_of(operand), manual)
        value, _, sums = lay(p, placed, sharding, p.meshes.unreduced_axes(stated))
        p.place(argument, Placed(value, sharding.without(manual), _others(sums, manual)))
    with p.inside_manual():
        results = p.walk(block)
    found = []
    for placed, stated, result in zip(results, outward, op.results, strict=True):
        sharding = p.meshes.open_sharding(stated, placed.sharding, shape_of(result))
        sums = p.meshes.unreduced_axes(stated)
        value = lay(p, placed, sharding.without(manual), _others(sums, manual)).value
        found.append(Placed(value, sharding, sums))
    return found


def _others(axes: Axes, manual: frozenset[MeshAxis]) -> Axes:
    return tuple(axis for axis in axes if axis not in manual)


def _custom_call(p: Partitioner, op: Any) -> list[Placed] | None:
    """HLO's annotations are custom calls; None for other ones."""
    target = bindings().StringAttr(op.attributes["call_target_name"]).value
    if target == TARGET:
        return partition_custom(p, op)
    if target == "LayoutConstraint":
        return _same(p, op)
    if target == "Sharding":
        if p.is_manual(op):
            return _same(p, op)
        sharding = p.stated(op).fitted(shape_of(op.operands[0]))
        return [Placed(p.sharded(op.operands[0], sharding), sharding)]
    if target == "SPMDFullToShardShape":
        placed = p.placed(op.operands[0])
        if placed.value.type != op.results[0].type:
            raise unsupported(op.operation.name, "a manual computation over some axes of the mesh", instead=_SHARDY)
        return [Placed(placed.value, Sharding.replicated(len(shape_of(placed.value))))]
    if target == "SPMDShardToFullShape":
        return [Placed(p.whole(op.operands[0]), p.stated(op))]
    has_effect = "has_side_effect" in op.attributes and bindings().BoolAttr(op.attributes["has_side_effect"]).value
    return _on_first(p, op) if has_effect and p.is_automatic else None


def _on_first(p: Partitioner, op: Any) -> list[Placed] | None:
    """A call with side effects happens once: the first device makes it, and the others get its results."""
    ir = bindings()
    operands = [p.whole(v) for v in op.operands]
    zeros = [zero_of(r.type) for r in op.results]
    if any(zero is None for zero in zeros):
        return None
    types = [r.type for r in op.results]
    made = ir.Operation.create("stablehlo.if", types, [p.resharder.is_first()], regions=2)
    with ir.InsertionPoint(ir.Block.create_at_start(made.regions[0], [])):
        called = p.clone(op, operands, [Sharding.replicated(len(shape_of(r))) for r in op.results])
        ir.Operation.create("stablehlo.return", operands=[placed.value for placed in called])
    with ir.InsertionPoint(ir.Block.create_at_start(made.regions[1], [])):
        constants = [create("constant", [], t, {"value": zero}) for t, zero in zip(types, zeros, strict=True)]
        ir.Operation.create("stablehlo.return", operands=constants)
    shared = [p.resharder.from_first(r) for r in made.results]
    return [Placed(value, Sharding.replicated(len(shape_of(value)))) for value in shared]


_SHARDY = "set jax_use_shardy_partitioner, which is JAX's default"

# ---- loops and branches ---------------------------------------------------------------------------------------------


def _while(p: Partitioner, op: Any) -> list[Placed]:
    """Carried values stay as they enter, unreduced or not; uniform ones take the sharding with which they come back."""
    ir = bindings()
    entering = [p.placed(v) for v in op.operands]
    shardings = _carried(p, op, entering)
    values = [p.resharder.reshard(placed, s) for placed, s in zip(entering, shardings, strict=True)]
    carried = [placed._replace(sharding=s) for placed, s in zip(entering, shardings, strict=True)]
    loop = ir.Operation.create("stablehlo.while", [v.type for v in values], values, regions=2)
    condition, body = (region.blocks[0] for region in op.regions)
    _fill(p, loop.regions[0], condition, carried, [Placed(None, Sharding.replicated(0))])
    _fill(p, loop.regions[1], body, carried, carried)
    return [placed._replace(value=r) for r, placed in zip(loop.results, carried, strict=True)]


def _carried(p: Partitioner, op: Any, entering: list[Placed]) -> list[Sharding]:
    shardings = [placed.sharding for placed in entering]
    free = [
        i for i, (v, x) in enumerate(zip(op.operands, entering, strict=True))
        if uniform_scalar(x.value) and shape_of(v) and not x.sums
    ]  # fmt: skip
    if not free:
        return shardings
    block = op.regions[1].blocks[0]
    coming = p.trial(block, entering)
    sizes = [shape_of(v) for v in op.operands]
    return [coming[i].fitted(sizes[i]) if i in free else s for i, s in enumerate(shardings)]


def _fill(p: Partitioner, region: Any, old: Any, arguments: Sequence[Placed], results: Sequence[Placed]) -> None:
    """Build a block whose arguments and results lie as these do, whatever their values."""
    ir = bindings()
    types = [p.local_type(a, x.sharding) for a, x in zip(old.arguments, arguments, strict=True)]
    block = ir.Block.create_at_start(region, types)
    with ir.InsertionPoint(block):
        for argument, new, placed in zip(old.arguments, block.arguments, arguments, strict=True):
            p.place(argument, placed._replace(value=new))
        returned = [lay(p, v, x.sharding, x.sums).value for v, x in zip(p.walk(old), results, strict=True)]
        ir.Operation.create("stablehlo.return", operands=returned)


def _branches(p: Partitioner, op: Any) -> list[Placed]:
    """All branches return what the first one does."""
    ir = bindings()
    first = op.regions[0].blocks[0]
    shardings = p.trial(first, [])
    lying = [Placed(None, s) for s in shardings]
    results = [p.local_type(r, s) for r, s in zip(op.results, shardings, strict=True)]
    index = p.whole(op.operands[0])
    made = ir.Operation.create(op.operation.name, results, [index], regions=len(op.regions))
    for region, old in zip(made.regions, op.regions, strict=True):
        _fill(p, region, old.blocks[0], [], lying)
    return [Placed(r, s) for r, s in zip(made.results, shardings, strict=True)]


CONTROL_RULES: dict[str, Callable[[Partitioner, Any], list[Placed] | None]] = {
    "func.call": _call,
    "sdy.manual_computation": _manual,
    "sdy.mesh": _nothing,
    "sdy.named_computation": _named_computation,
    "sdy.propagation_barrier": _same,
    "sdy.reshard": _constraint,
    "sdy.sharding_constraint": _constraint,
    "sdy.sharding_group": _nothing,
    "stablehlo.case": _branches,
    "stablehlo.composite": _composite,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.if": _branches,
    "stablehlo.optimization_barrier": _same,
    "stablehlo.while": _while,
}
