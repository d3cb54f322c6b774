# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose arguments or results lie in orders other than row-major.

JAX says how an array of `@main` lies in `mhlo.layout_mode`: "default", which is row-major, "auto", or the axes from the
fastest to the slowest, "{0,1}". An array that lies in another order is a row-major array with its axes in that order.
So `@main` takes and returns such arrays, with transposes before and behind, which fusion takes like any other.
`disc.layout` says which axis each of them was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from shlo_disc.errors import ProgramError, Unsupported, UnsupportedError
from shlo_disc.shape_dialect.dialect.names import LAYOUT

from .partition.resharding import bindings, create, element_of, shape_of

STATED = "mhlo.layout_mode"
_AXES = re.compile(r"\{((?:\d+(?:,\d+)*)?)(?::E\(\d+\))?\}")  # E: the bits that JAX thinks a small integer takes
_TRANSPARENT = ("sdy.sharding_constraint", "stablehlo.optimization_barrier")

Order = tuple[int, ...]  # the axes of an array from the slowest to the fastest


def decide(module: Any) -> None:
    """Replace what JAX says of layouts by `disc.layout`, where that is not row-major; "auto" is decided.

    Raises ProgramError for what is no layout of the array, and UnsupportedError for tiles.
    """
    main = _main(module)
    block = main.regions[0].blocks[0]
    arguments, results = list(block.arguments), list(_terminator(block).operands)
    lying = {}
    for argument, mode in zip(arguments, _modes(main, "arg_attrs", len(arguments)), strict=True):
        lying[argument] = _row_major(argument) if mode == "auto" else _order(mode, argument)
    modes = _modes(main, "res_attrs", len(results))
    orders = [_natural(v, lying) if m == "auto" else _order(m, v) for v, m in zip(results, modes, strict=True)]
    _state(main, "arg_attrs", list(lying.values()))
    _state(main, "res_attrs", orders)


def apply(module: Any) -> None:
    """Give `@main` arguments and results with their axes in the order that `decide` has stated."""
    ir = bindings()
    main = _main(module)
    block = main.regions[0].blocks[0]
    terminator = _terminator(block)
    with ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
        for i, order in _stated(main, "arg_attrs"):
            argument = block.arguments[i]
            kind = argument.type
            argument.set_type(_permuted(argument, order))
            back = {"permutation": [order.index(axis) for axis in range(len(order))]}
            given = create("transpose", [argument], kind, back)
            argument.replace_all_uses_except(given, given.owner.operation)
    with ir.Location.unknown(), ir.InsertionPoint(terminator):
        for i, order in _stated(main, "res_attrs"):
            value = terminator.operands[i]
            terminator.operands[i] = create("transpose", [value], _permuted(value, order), {"permutation": list(order)})
    kinds = [[value.type for value in values] for values in (block.arguments, terminator.operands)]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))


def _natural(value: Any, lying: dict[Any, Order]) -> Order:
    """The order in which a result is there without a copy, as far as transposes lead back to an argument."""
    if value in lying:
        return lying[value]
    op = value.owner.operation
    if op.name == "stablehlo.transpose":
        permutation = list(bindings().DenseI64ArrayAttr(op.attributes["permutation"]))
        return tuple(permutation.index(axis) for axis in _natural(op.operands[0], lying))
    if op.name in _TRANSPARENT:
        return _natural(op.operands[0], lying)
    if op.name == "stablehlo.custom_call" and _text(op.attributes["call_target_name"]) == "LayoutConstraint":
        (fastest_first,) = bindings().ArrayAttr(op.attributes["result_layouts"])
        return tuple(reversed([int(axis) for axis in bindings().DenseIntElementsAttr(fastest_first)]))
    return _row_major(value)


def _order(mode: str, value: Any) -> Order:
    """The axis order that a layout mode other than "auto" gives an array."""
    if mode == "default":
        return _row_major(value)
    if ":T" in mode:
        raise UnsupportedError([Unsupported("func.func", "", "@main", f"the tiled layout {mode} is not supported")])
    found = _AXES.fullmatch(mode)
    axes = tuple(int(axis) for axis in reversed(found[1].split(","))) if found and found[1] else ()
    if not found or tuple(sorted(axes)) != _row_major(value):
        raise ProgramError(f"{mode!r} is no layout of an array of type {value.type}")
    return axes


def _row_major(value: Any) -> Order:
    return tuple(range(len(shape_of(value)))) if isinstance(value.type, bindings().RankedTensorType) else ()


def _permuted(value: Any, order: Order) -> Any:
    shape = shape_of(value)
    return bindings().RankedTensorType.get([shape[axis] for axis in order], element_of(value))


def _modes(main: Any, key: str, count: int) -> list[str]:
    if key not in main.attributes:
        return ["default"] * count
    entries = [bindings().DictAttr(entry) for entry in bindings().ArrayAttr(main.attributes[key])]
    return [_text(entry[STATED]) if STATED in entry else "default" for entry in entries]


def _state(main: Any, key: str, orders: Sequence[Order]) -> None:
    ir = bindings()
    if key not in main.attributes:
        return
    entries = []
    for entry, order in zip(ir.ArrayAttr(main.attributes[key]), orders, strict=True):
        named = {a.name: a.attr for a in ir.DictAttr(entry) if a.name != STATED}
        if list(order) != sorted(order):
            wide = ir.IntegerType.get_signless(64)
            named[LAYOUT] = ir.ArrayAttr.get([ir.IntegerAttr.get(wide, axis) for axis in order])
        entries.append(ir.DictAttr.get(named))
    main.attributes[key] = ir.ArrayAttr.get(entries)


def _stated(main: Any, key: str) -> list[tuple[int, Order]]:
    """The arrays that do not lie in row-major order, by their positions."""
    ir = bindings()
    if key not in main.attributes:
        return []
    entries = [ir.DictAttr(entry) for entry in ir.ArrayAttr(main.attributes[key])]
    return [
        (i, tuple(ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(entry[LAYOUT])))
        for i, entry in enumerate(entries)
        if LAYOUT in entry
    ]


def _main(module: Any) -> Any:
    for op in module.body.operations:
        if op.operation.name == "func.func" and _text(op.attributes["sym_name"]) == "main":
            return op
    raise ProgramError("a program with layouts or shardings has a function @main")


def _terminator(block: Any) -> Any:
    return block.operations[len(block.operations) - 1]


def _text(attribute: Any) -> str:
    return str(bindings().StringAttr(attribute).value)


__all__ = ["LAYOUT", "STATED", "apply", "decide"]
