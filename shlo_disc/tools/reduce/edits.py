# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edits that leave out or simplify parts of a program: each finds its places in a program, and changes some of them.

An edit works on a copy. What nothing reads any more goes with it. Whether the program is still one, MLIR's verifier
says; whether it still fails, the search asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.regions import is_constant, terminator_of

from .rewriting import (
    ERASED,
    body_of,
    functions,
    has_effect,
    is_used,
    main_of,
    ops_in,
    replace_terminator,
    splat,
    tidy,
    update_signature,
)


class Edit(NamedTuple):
    """places: what it could change, in the program's order. change: do so, at some of these places of the same module.

    A place may not be there any more when those before it have been changed.
    """

    name: str
    places: Callable[[ir.Operation], Sequence[Any]]
    change: Callable[[ir.Operation, Sequence[Any]], None]

    def apply(self, module: ir.Operation, chosen: Collection[int]) -> None:
        """Change the places of these numbers, and tidy up."""
        places = self.places(module)
        with module.context, ir.Location.unknown():
            self.change(module, [places[i] for i in sorted(chosen) if i < len(places)])
            tidy(module)


# ---- results and arguments of the program --------------------------------------------------------------------------


def _results(module: ir.Operation) -> Sequence[int]:
    count = len(terminator_of(body_of(main_of(module))).operands)
    return range(count) if count > 1 else ()


def _drop_results(module: ir.Operation, chosen: Sequence[int]) -> None:
    function = main_of(module)
    values = list(terminator_of(body_of(function)).operands)
    kept = [i for i in range(len(values)) if i not in chosen] or [chosen[0]]
    replace_terminator(body_of(function), [values[i] for i in kept])
    update_signature(function, results=kept)


def _ways_up(module: ir.Operation) -> list[tuple[int, ir.Value]]:
    """The program's results, each with the operands of the op that it comes from."""
    found: list[tuple[int, ir.Value]] = []
    for i, value in enumerate(terminator_of(body_of(main_of(module))).operands):
        if not isinstance(value.owner, ir.Block):
            found += [(i, operand) for operand in value.owner.operands]
    return found


def _return_operands(module: ir.Operation, chosen: Sequence[tuple[int, ir.Value]]) -> None:
    """Return the values that ops work on instead of the ops' results."""
    function = main_of(module)
    values = list(terminator_of(body_of(function)).operands)
    for i, operand in chosen:
        values[i] = operand
    replace_terminator(body_of(function), values)
    update_signature(function)


def _unused_arguments(module: ir.Operation) -> Sequence[int]:
    return [i for i, a in enumerate(body_of(main_of(module)).arguments) if not is_used(a)]


def _drop_arguments(module: ir.Operation, chosen: Sequence[int]) -> None:
    function = main_of(module)
    block = body_of(function)
    kept = [i for i in range(len(block.arguments)) if i not in chosen]
    for i in reversed(chosen):
        block.erase_argument(i)
    update_signature(function, arguments=kept)


def _other_functions(module: ir.Operation) -> list[ir.Operation]:
    main = main_of(module)
    return [function for function in functions(module) if function != main]


def _drop_functions(module: ir.Operation, chosen: Sequence[ir.Operation]) -> None:
    """Those that are still called leave no program behind."""
    for function in chosen:
        function.erase()


_OWN = ("sym_name", "sym_visibility", "function_type")


def _attributes(module: ir.Operation) -> list[tuple[ir.Operation, str]]:
    """The attributes on the module and its functions."""
    return [(op, a) for op in (module, *functions(module)) for a in sorted(op.attributes) if a not in _OWN]


def _drop_attributes(module: ir.Operation, chosen: Sequence[tuple[ir.Operation, str]]) -> None:
    for op, name in chosen:
        del op.attributes[name]


# ---- ops -----------------------------------------------------------------------------------------------------------


def _live_ops(module: ir.Operation) -> list[ir.Operation]:
    return [op for op in ops_in(module) if not is_constant(op) and any(map(is_used, op.results))]


def _bypass(module: ir.Operation, chosen: Sequence[ir.Operation]) -> None:
    _read_others(chosen, lambda op: list(op.operands))


def _bypass_to_last(module: ir.Operation, chosen: Sequence[ir.Operation]) -> None:
    _read_others(chosen, lambda op: list(op.operands)[::-1])


def _read_others(chosen: Sequence[ir.Operation], operands: Callable[[ir.Operation], list[ir.Value]]) -> None:
    """Whoever reads an op reads another value of the same type instead: an operand, or what is there already."""
    left_out = {result for op in chosen for result in op.results}
    for op in chosen:
        there = [*operands(op), *_earlier(op, left_out)]
        for result in op.results:
            found = next((v for v in there if v.type == result.type), None)
            if found is not None:
                result.replace_all_uses_with(found)


def _earlier(op: ir.Operation, left_out: set[ir.Value]) -> list[ir.Value]:
    """The values of the op's block that are there before it, arguments first, and then the nearest."""
    block = op.block
    before: list[ir.Value] = []
    for other in block.operations:
        if other.operation == op:
            break
        before[:0] = [r for r in other.results if r not in left_out]
    return [*block.arguments, *before]


def _outer_ops(module: ir.Operation) -> list[ir.Operation]:
    block = body_of(main_of(module))
    return [op for op in _live_ops(module) if op.block == block]


def _make_arguments(module: ir.Operation, chosen: Sequence[ir.Operation]) -> None:
    """The results of an op come from the caller."""
    function = main_of(module)
    block = body_of(function)
    for op in chosen:
        for result in op.results:
            if is_used(result) and isinstance(result.type, ir.RankedTensorType):
                result.replace_all_uses_with(block.add_argument(result.type, op.location))
    update_signature(function)


def _make_constants(module: ir.Operation, chosen: Sequence[ir.Operation]) -> None:
    """The results of an op are ones."""
    for op in chosen:
        for result in op.results:
            value = splat(result.type)
            if value is not None and is_used(result):
                result.replace_all_uses_with(_constant(value, op))


def _constant(value: ir.Attribute, before: ir.Operation) -> ir.Value:
    made = ir.Operation.create(
        "stablehlo.constant", [value.type], attributes={"value": value}, ip=ir.InsertionPoint(before)
    )
    return made.results[0]


def _effects(module: ir.Operation) -> list[ir.Operation]:
    return [op for op in ops_in(module) if has_effect(op) and not any(map(is_used, op.results))]


def _erase(module: ir.Operation, chosen: Sequence[ir.Operation]) -> None:
    for op in chosen:
        op.attributes[ERASED] = ir.UnitAttr.get()


# ---- constants -----------------------------------------------------------------------------------------------------


def _long_constants(module: ir.Operation) -> list[ir.Operation]:
    constants = [op for op in ops_in(module) if is_constant(op)]
    return [op for op in constants if not ir.DenseElementsAttr(op.attributes["value"]).is_splat]


def _make_splats(module: ir.Operation, chosen: Sequence[ir.Operation]) -> None:
    """A constant has its first integer everywhere, or ones."""
    for op in chosen:
        value = op.attributes["value"]
        first = value[0] if isinstance(value, ir.DenseIntElementsAttr) and len(value) else 1
        simple = splat(op.results[0].type, first)
        if simple is not None:
            op.attributes["value"] = simple


# ---- loops and branches --------------------------------------------------------------------------------------------

_BODIES = {"stablehlo.while": (1,), "stablehlo.if": (0, 1)}


def _regions(module: ir.Operation) -> list[tuple[ir.Operation, int]]:
    """Branches, one for each, and the bodies of loops."""
    found: list[tuple[ir.Operation, int]] = []
    for op in ops_in(module):
        bodies = range(len(op.regions)) if op.name == "stablehlo.case" else _BODIES.get(op.name, ())
        found += [(op, number) for number in bodies]
    return found


def _open(module: ir.Operation, chosen: Sequence[tuple[ir.Operation, int]]) -> None:
    """Run a region once, in place of the loop or branch."""
    opened: list[ir.Operation] = []
    for op, number in chosen:
        if op in opened:
            continue
        opened.append(op)
        block = op.regions[number].blocks[0]
        for argument, value in zip(block.arguments, op.operands, strict=False):
            argument.replace_all_uses_with(value)
        for inner in list(block.operations)[:-1]:
            inner.operation.move_before(op)
        for result, value in zip(op.results, list(terminator_of(block).operands), strict=True):
            result.replace_all_uses_with(value)
        op.attributes[ERASED] = ir.UnitAttr.get()


def _carried(module: ir.Operation) -> list[tuple[ir.Operation, int]]:
    loops = [op for op in ops_in(module) if op.name == "stablehlo.while"]
    return [(op, i) for op in loops for i in range(len(op.results)) if len(op.results) > 1]


def _drop_carried(module: ir.Operation, chosen: Sequence[tuple[ir.Operation, int]]) -> None:
    """A loop reads what a value was before it, and does not change it."""
    loops = list(dict.fromkeys(op for op, _ in chosen))
    for op in reversed(loops):  # those inside of others first
        dropped = [i for other, i in chosen if other == op]
        kept = [i for i in range(len(op.results)) if i not in dropped]
        if kept:
            _rebuild_loop(op, dropped, kept)


def _rebuild_loop(op: ir.Operation, dropped: Sequence[int], kept: Sequence[int]) -> None:
    operands, blocks = list(op.operands), [region.blocks[0] for region in op.regions]
    for i in dropped:
        op.results[i].replace_all_uses_with(operands[i])
        for block in blocks:
            block.arguments[i].replace_all_uses_with(operands[i])
    stepped = list(terminator_of(blocks[1]).operands)
    replace_terminator(blocks[1], [stepped[i] for i in kept])
    for block in blocks:
        for i in sorted(dropped, reverse=True):
            block.erase_argument(i)
    new = ir.Operation.create(
        op.name,
        [op.results[i].type for i in kept],
        operands=[operands[i] for i in kept],
        regions=len(blocks),
        ip=ir.InsertionPoint(op),
        loc=op.location,
    )
    for region, block in zip(new.regions, blocks, strict=True):
        block.append_to(region)
    for i, result in zip(kept, new.results, strict=True):
        op.results[i].replace_all_uses_with(result)
    op.erase()


EDITS = (
    Edit("results", _results, _drop_results),
    Edit("functions", _other_functions, _drop_functions),
    Edit("results by operands", _ways_up, _return_operands),
    Edit("ops by first operands", _live_ops, _bypass),
    Edit("ops by last operands", _live_ops, _bypass_to_last),
    Edit("ops by arguments", _outer_ops, _make_arguments),
    Edit("effects", _effects, _erase),
    Edit("regions", _regions, _open),
    Edit("carried values", _carried, _drop_carried),
    Edit("ops by constants", _live_ops, _make_constants),
    Edit("constants", _long_constants, _make_splats),
    Edit("arguments", _unused_arguments, _drop_arguments),
    Edit("attributes", _attributes, _drop_attributes),
)
"""In the order in which they are tried: those that leave out most come first."""

__all__ = ["EDITS", "Edit"]
