# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A checked function becomes a program: its inputs are arguments, the values that it checks are results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shlo_disc.importer.parse import parse_program
from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.mlir import ir, passmanager
from shlo_disc.shape_dialect.ops import definition_of
from shlo_disc.shape_dialect.utils.regions import is_constant
from shlo_disc.tools.check.comparison import Comparison, comparison
from shlo_disc.tools.check.text import as_custom_calls

_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
_FUNCTION = re.compile(r'func\.func\s+(?:public\s+|private\s+)?@("[^"]*"|[\w.$-]+)')
_HAS_CHECK = re.compile(r"\bcheck\.(?:eq|expect_\w+)")
_PARTICIPANTS = "interpreter.run_parallel"
_PROBE = "check.expect_serialized_eq"


@dataclass(frozen=True)
class Case:
    """One checked function: the text of its module, its name there, and why it cannot be run here ("" if it can)."""

    file: str
    name: str
    text: str
    skipped: str = ""


def cases_of(file: str, text: str) -> Iterator[Case]:
    """The checked functions of a file; one that is skipped when it has none."""
    found = False
    for chunk in _SPLIT.split(text):
        starts = [(match[1].strip('"'), match.start()) for match in _FUNCTION.finditer(chunk)]
        ends = [*(start for _, start in starts[1:]), len(chunk)]
        for (name, start), end in zip(starts, ends, strict=False):
            if _HAS_CHECK.search(chunk, start, end):
                found = True
                yield Case(file, name, chunk, _reason_to_skip(chunk[start:end]))
    if not found:
        yield Case(file, "", "", "the file checks nothing")


def _reason_to_skip(body: str) -> str:
    if _PARTICIPANTS in body:
        return "needs other participants"
    return "reads files that the reference interpreter writes" if _PROBE in body else ""


# ---- programs ------------------------------------------------------------------------------------------------------


@dataclass
class Expectation:
    """A comparison between two values, each the number of a result, or an array that the module states."""

    name: str
    comparison: Comparison
    actual: int | np.ndarray
    expected: int | np.ndarray


@dataclass
class Program:
    """A checked function as a program, with the arguments to call it with and what to check of its results."""

    text: str
    arguments: list[np.ndarray] = field(default_factory=list)
    checks: list[Expectation] = field(default_factory=list)
    ops: tuple[str, ...] = ()


def program_of(case: Case, context: ir.Context) -> Program:
    """The program of a case. Raises ProgramError when its text cannot be read."""
    module = parse_program(as_custom_calls(case.text), context)
    with context, ir.Location.unknown():
        entry = _isolate(module, case.name)
        program = Program("")
        block = entry.regions[0].blocks[0]
        results = _take_checks(block, program)
        _hoist_inputs(block, program)
        _close(entry, results)
        passmanager.PassManager.parse("builtin.module(symbol-dce)").run(module.operation)
        program.ops = tuple(sorted(set(_op_names(block)) - {"stablehlo.constant", "stablehlo.return", "func.return"}))
        program.text = str(module)
    return program


def _isolate(module: ir.Module, name: str) -> ir.OpView:
    """The function as the only public one, with everything that it calls inlined and its inputs marked."""
    functions = {
        ir.StringAttr(op.attributes["sym_name"]).value: op
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    entry = functions[name]
    for op in _constants(functions.get("inputs", entry).regions[0].blocks[0]):
        op.attributes["check.input"] = ir.UnitAttr.get()
    for other, function in functions.items():
        if other != name:
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    if "sym_visibility" in entry.attributes:
        del entry.attributes["sym_visibility"]
    opened = "builtin.module(func.func(stablehlo-legalize-composite-to-call),inline{default-pipeline=})"
    passmanager.PassManager.parse(opened).run(module.operation)
    return entry


def _constants(block: ir.Block) -> list[ir.OpView]:
    return [op for op in block.operations if is_constant(op)]


def _take_checks(block: ir.Block, program: Program) -> list[ir.Value]:
    """Move the checks from the function to the program; the values that they look at."""
    results: list[ir.Value] = []

    def place(value: ir.Value) -> int | np.ndarray:
        owner = value.owner
        if not isinstance(owner, ir.Block) and is_constant(owner):
            return array_of(owner.opview)
        if value not in results:
            results.append(value)
        return results.index(value)

    terminator = block.operations[len(block.operations) - 1]
    checks = [op for op in block.operations if _check_name(op)]
    terminator.operation.erase()
    for op in checks:
        name = _check_name(op)
        integer = isinstance(ir.RankedTensorType(op.operands[0].type).element_type, ir.IntegerType)
        compared = comparison(name, _options(op), as_call="check.op" not in op.attributes, is_integer=integer)
        program.checks.append(Expectation(name, compared, place(op.operands[0]), place(op.operands[1])))
    for op in checks:
        op.operation.erase()
    return results


def _check_name(op: ir.OpView) -> str:
    """ "expect_eq" for a call of `@check.expect_eq`; empty for another op."""
    if op.operation.name != "stablehlo.custom_call":
        return ""
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    return target.removeprefix("check.") if target.startswith("check.") else ""


def _options(op: ir.OpView) -> dict[str, Any]:
    names = {"tolerance": "tolerance", "max_ulp_difference": "max_ulps", "min_ulp_difference": "min_ulps"}
    kinds = {"tolerance": ir.FloatAttr, "max_ulp_difference": ir.IntegerAttr, "min_ulp_difference": ir.IntegerAttr}
    return {names[key]: kind(op.attributes[key]).value for key, kind in kinds.items() if key in op.attributes}


def _is_size(use: ir.OpOperand) -> bool:
    """Tells whether an operand is a size: as an argument, it would make the sizes of results depend on data."""
    definition = definition_of(use.owner)
    return definition is not None and use.operand_number in definition.size_operands


def _hoist_inputs(block: ir.Block, program: Program) -> None:
    """Turn the inputs into arguments, and drop the constants that only checks used."""
    for op in _constants(block):
        marked = "check.input" in op.attributes
        if marked:
            del op.attributes["check.input"]
        uses = list(op.results[0].uses)
        is_size = any(_is_size(use) for use in uses)
        if marked and uses and not is_size:
            argument = block.add_argument(op.results[0].type, op.location)
            program.arguments.append(array_of(op))
            op.results[0].replace_all_uses_with(argument)
            uses = []
        if not uses:
            op.operation.erase()


def _close(entry: ir.OpView, results: list[ir.Value]) -> None:
    block = entry.regions[0].blocks[0]
    ir.Operation.create("func.return", operands=results, ip=ir.InsertionPoint(block))
    kind = ir.FunctionType.get([a.type for a in block.arguments], [r.type for r in results])
    entry.attributes["function_type"] = ir.TypeAttr.get(kind)
    entry.attributes["sym_name"] = ir.StringAttr.get("main")
    for name in ("arg_attrs", "res_attrs"):
        if name in entry.attributes:
            del entry.attributes[name]


def _op_names(block: ir.Block) -> Iterator[str]:
    for op in block.operations:
        yield op.operation.name
        for region in op.regions:
            for inner in region.blocks:
                yield from _op_names(inner)


__all__ = ["Case", "Expectation", "Program", "cases_of", "program_of"]
