# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusions that differ in numbers alone, such as the steps of an unrolled loop, share a kernel.

Kernels are built once for each structure (`lowering/kernels.py`), and the numbers in a body are part of it. Here those
in which such fusions differ become operands: constants of the program, of one element each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import is_fusion, kind_of
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, is_constant
from shlo_disc.shape_dialect.utils.structure import Numbering, SizeNames, Structure
from shlo_disc.transforms.decisions import Decisions, Pattern

_MOST_NUMBERS = 16
"""Numbers that a fusion is passed, at most: each is an address in every call."""

_KINDS = frozenset(("loop", "reduce", "row_reduce"))
_READERS = frozenset(f"stablehlo.{name}" for name in ("add", "compare", "maximum", "minimum", "multiply", "subtract"))
"""Ops whose code is the same whatever the number is. A division by a power of two, say, becomes a product."""

Constant = Callable[[ir.Attribute], ir.Value]


@dataclass
class _Fusion:
    """A fusion, the constants of its body that may become operands, and its calls: by the program, and by fusions."""

    function: func.FuncOp
    constants: Sequence[ir.Operation]
    calls: list[func.CallOp] = field(default_factory=list)
    inner_calls: list[func.CallOp] = field(default_factory=list)

    @cached_property
    def numbers(self) -> tuple[ir.Attribute, ...]:
        return tuple(constant.attributes["value"] for constant in self.constants)


SHARED_KERNEL: Pattern[list[_Fusion]] = Pattern("shared-kernel", "fusions that differ in numbers alone share a kernel")


@SHARED_KERNEL.requires("there are so many that compiling each takes longer than passing the numbers")
def _are_many(alike: list[_Fusion]) -> bool:
    return len({fusion.numbers for fusion in alike}) >= policy().shared_kernels


@SHARED_KERNEL.requires("they differ in few numbers")
def _differ_in_few_numbers(alike: list[_Fusion]) -> bool:
    return len(_places(alike)) <= _MOST_NUMBERS


@SHARED_KERNEL.requires("each is called by the program, and not by another fusion")
def _are_called_by_the_program(alike: list[_Fusion]) -> bool:
    return all(fusion.calls and not fusion.inner_calls for fusion in alike)


def _places(alike: Sequence[_Fusion]) -> list[int]:
    """The numbers in which some fusions differ."""
    return [place for place, found in enumerate(zip(*(f.numbers for f in alike), strict=True)) if len(set(found)) > 1]


def share_kernels(module: ir.Module, decisions: Decisions) -> None:
    """Pass numbers to the fusions of a fused module that are alike but for them, in place."""
    least = policy().shared_kernels
    functions = [op for op in module.body.operations if isinstance(op, func.FuncOp) and is_fusion(op)]
    fusions = {op.name.value: _Fusion(op, found) for op in functions if least and (found := _constants(op))}
    if len(fusions) < max(least, 1):
        return
    block = entry_block(module)
    for call in _calls_in(block):
        if called := fusions.get(callee_of(call)):
            called.calls.append(call)
    for call in (call for function in functions for call in _calls_in(function.entry_block)):
        if called := fusions.get(callee_of(call)):
            called.inner_calls.append(call)
    groups: dict[Hashable, list[_Fusion]] = {}
    for fusion in fusions.values():
        names = SizeNames()
        key = Structure(fusion.function, names, _WithoutNumbers(fusion.constants, names)).key
        groups.setdefault(key, []).append(fusion)
    constant = _constants_of_the_program(block)
    for alike in groups.values():
        several = SHARED_KERNEL.match(_several, alike)
        if several is not None and decisions.take(SHARED_KERNEL.name, several[0].calls[0]):
            places = _places(several)
            for each in several:
                _pass(each, places, constant)


def _calls_in(block: ir.Block) -> Iterator[func.CallOp]:
    return (op for inner in all_blocks(block) for op in inner.operations if isinstance(op, func.CallOp))


def _several(alike: list[_Fusion]) -> list[_Fusion] | None:
    return alike if len(alike) > 1 else None


class _WithoutNumbers(Numbering):
    """Describes ops but for the numbers that constants are."""

    def __init__(self, constants: Iterable[ir.Operation], names: SizeNames):
        super().__init__(names=names)
        self._constants = set(constants)

    def op(self, op: ir.Operation) -> Hashable:
        """The key of an op, by its type alone where it is a constant."""
        return ("number", self.define(op.results[0])) if op in self._constants else super().op(op)


def _constants(function: func.FuncOp) -> list[ir.Operation]:
    """The constants of a fusion that may become operands."""
    if kind_of(function) not in _KINDS:
        return []
    ops = [op.operation for op in function.entry_block.operations]
    return [op for op in ops if is_constant(op) and _is_number(op)]


def _is_number(constant: ir.Operation) -> bool:
    """Tells whether a constant is one float, and read only by ops of the body whose code does not depend on it."""
    (value,) = constant.results
    if dims_of(value) or not isinstance(element_type_of(value), ir.FloatType):
        return False
    return _is_only_computed_with(value, constant.block)


def _is_only_computed_with(value: ir.Value, block: ir.Block) -> bool:
    """Tells whether only `_READERS` of a block read a value, as it is or spread out, and none in their regions."""
    readers = [use.owner.operation for use in value.uses]
    return all(
        op.block == block
        and (_is_only_computed_with(op.results[0], block) if op.name in BROADCASTS else op.name in _READERS)
        for op in readers
    )


def _constants_of_the_program(block: ir.Block) -> Constant:
    """Makes each number once, at the beginning of the program."""
    made: dict[ir.Attribute, ir.Value] = {}

    def constant(number: ir.Attribute) -> ir.Value:
        if number not in made:
            with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
                attributes = {"value": number}
                op = ir.Operation.create("stablehlo.constant", [ir.DenseElementsAttr(number).type], [], attributes)
                made[number] = op.results[0]
        return made[number]

    return constant


def _pass(fusion: _Fusion, places: Sequence[int], constant: Constant) -> None:
    """Make operands of the numbers at some places."""
    function, block = fusion.function, fusion.function.entry_block
    numbers = [fusion.numbers[place] for place in places]
    for place in places:
        old = fusion.constants[place]
        old.results[0].replace_all_uses_with(block.add_argument(old.results[0].type, old.location))
        old.erase()
    type_ = ir.FunctionType.get([argument.type for argument in block.arguments], function.type.results)
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    for call in fusion.calls:
        with ir.InsertionPoint(call), call.location:
            new = func.CallOp(function, [*call.operands, *map(constant, numbers)])
        for old, result in zip(call.results, new.results, strict=True):
            old.replace_all_uses_with(result)
        call.operation.erase()
