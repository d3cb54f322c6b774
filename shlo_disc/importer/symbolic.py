# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The option `symbolic`: a program of static sizes becomes one whose argument sizes above 1 are chosen by the caller.

Every size above 1 of every value is one unknown. Ops say which unknowns are the same (`size_relations.py`), which are
computed from others and which their attributes fix; a size that is fixed fixes all that are the same. What is left
becomes `?`, and ops that state a size which is no longer one turn into their dynamic forms. The static program is the
one instance at the sizes it was written for, so a call with those gives the same results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shlo_disc.errors import OptionError
from shlo_disc.shape_dialect.dialect.types import DYNAMIC
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import TABLE
from shlo_disc.shape_dialect.ops.size_relations import Size

from .stated_sizes import ProgramSizes, form_of, stated_sizes
from .unknowns import Unknowns


def make_symbolic(function: ir.OpView) -> None:
    """Rewrite the entry function in place. Raises OptionError when a size is dynamic already."""
    block = function.regions[0].blocks[0]
    if any(not ir.RankedTensorType(v.type).has_static_shape for v in _tensors(block)):
        raise OptionError("the option symbolic needs a program of static sizes")
    operations = list(_operations(block))
    stated = [(position, stated_sizes(op)) for position, op in operations]
    unknowns = _solve(block, operations, stated)
    dynamic = {v: _dynamic_axes(v, unknowns) for v in _tensors(block)}
    sizes = ProgramSizes(unknowns, {size: factors for _, found in stated for size, factors in found.items() if factors})
    for value, axes in dynamic.items():
        _set_dynamic(value, axes)
    forms = [
        (position, op, form) for position, op in operations if (form := form_of(op)) and dynamic.get(op.results[0])
    ]
    for position, op, form in forms:
        sizes.replace(op, position, form)
    for _, op, _ in reversed(forms):
        if not list(op.results[0].uses):
            op.operation.erase()
    terminator = block.operations[len(block.operations) - 1]
    kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in terminator.operands])
    function.attributes["function_type"] = ir.TypeAttr.get(kind)


def _solve(
    block: ir.Block, operations: Sequence[tuple[int, ir.OpView]], stated: Sequence[tuple[int, dict[Size, list[Size]]]]
) -> Unknowns:
    unknowns = Unknowns(block)
    for _, op in operations:
        name = op.operation.name
        relate = TABLE[name].relate if name in TABLE else None
        if relate is not None:
            relate(unknowns, op)
        elif name not in ("func.return", "stablehlo.return"):
            for value in [*op.operands, *op.results]:
                unknowns.fix(value)
    unknowns.propagate()
    unknowns.fix_unavailable(
        (position, size) for position, found in stated for size, factors in found.items() if not factors
    )
    return unknowns


def _operations(block: ir.Block) -> Iterator[tuple[int, ir.OpView]]:
    """Every op, those in regions included, with the position in the block of the op that it is in."""
    for position, outer in enumerate(block.operations):
        yield position, outer
        for region in outer.regions:
            for inner in region.blocks:
                yield from ((position, op) for _, op in _operations(inner))


def _tensors(block: ir.Block) -> Iterator[ir.Value]:
    values: list[ir.Value] = [*block.arguments]
    for op in block.operations:
        values += op.results
        for region in op.regions:
            for inner in region.blocks:
                yield from _tensors(inner)
    yield from (v for v in values if isinstance(v.type, ir.RankedTensorType))


def _axes(value: ir.Value) -> Sequence[int]:
    """The axes whose sizes are unknowns."""
    tensor = value.type
    return [i for i, size in enumerate(tensor.shape) if size > 1] if isinstance(tensor, ir.RankedTensorType) else []


def _dynamic_axes(value: ir.Value, unknowns: Unknowns) -> list[int]:
    return [axis for axis in _axes(value) if not unknowns.is_fixed(Size(value, axis))]


def _set_dynamic(value: ir.Value, axes: Sequence[int]) -> None:
    if axes:
        tensor = ir.RankedTensorType(value.type)
        shape = [DYNAMIC if axis in axes else size for axis, size in enumerate(tensor.shape)]
        value.set_type(ir.RankedTensorType.get(shape, tensor.element_type))


__all__ = ["make_symbolic"]
