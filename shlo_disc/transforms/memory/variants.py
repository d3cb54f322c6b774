# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Variants of a program for a limit of memory: the same kernels, with less and less kept between them.

The first variant keeps all values. Each further one computes more of them again (`schedule.py`). They are the branches
of one `stablehlo.case`, each of which has an arena of its own, and a call takes the first one that fits its sizes. So
one compile serves sizes that fit as they are at full speed, and larger ones with less memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shlo_disc.errors import OptionError
from shlo_disc.shape_dialect.build import constant
from shlo_disc.shape_dialect.dialect.fusion import Library, Scatter, Update, fusion_of
from shlo_disc.shape_dialect.dialect.names import MEMORY_LIMIT, VARIANT
from shlo_disc.shape_dialect.dialect.ops import integer_attr
from shlo_disc.shape_dialect.dialect.types import bytes_of, dim_attr, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import RESHAPES
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks, nested_blocks
from shlo_disc.shape_dialect.ops.segments import RUNS
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, is_constant, terminator_of
from shlo_disc.transforms.flops import flops_of, repeated_ops
from shlo_disc.transforms.memory.schedule import Costs, Schedule, Step, Version

FRACTIONS = (0.75, 0.55, 0.4, 0.3, 0.22, 0.15)
"""The peaks of the further variants, of that of the first one."""

LEAST_GAIN = 0.95
"""The largest peak of a variant that is worth it, of that of the variant before."""

OPS_PER_SECOND = 40e9
BYTES_PER_SECOND = 8e9
SECONDS_PER_CALL = 3e-6
"""The speed of calls on a processor of two cores, roughly: only its proportions count."""

LARGEST = 1 << 20
"""The largest symbol at which variants are compared."""


def limit_memory(module: ir.Module, facts: Facts, limit: int) -> None:
    """Make a fused program one of variants, in place. Raises OptionError for sizes that are read from data."""
    block = entry_block(module)
    if any(op.operation.name == "disc.bind" for inner in all_blocks(block) for op in inner.operations):
        raise OptionError("memory_limit is for programs that read no sizes from data")
    module.operation.attributes[MEMORY_LIMIT] = integer_attr(limit)
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    schedules = _schedules(block, functions, _point(block, facts, limit))
    if len(schedules) > 1:
        _write(block, schedules)
        module.operation.attributes[VARIANT] = dim_attr(Expr.const(0))  # until the arenas are known


# ---- schedules -------------------------------------------------------------------------------------------------------


def _schedules(block: ir.Block, functions: Mapping[str, func.FuncOp], point: Mapping[str, int]) -> list[Schedule]:
    """The schedule that keeps all values, and those with lower and lower peaks."""
    found = [_kept(block, functions, point)]
    most = least = found[0].peak()[0]
    for fraction in FRACTIONS:
        schedule = found[-1].copy()
        schedule.shrink(int(fraction * most))
        if schedule.peak()[0] < LEAST_GAIN * least:
            least = schedule.peak()[0]
            found.append(schedule)
    return found


def _kept(block: ir.Block, functions: Mapping[str, func.FuncOp], point: Mapping[str, int]) -> Schedule:
    last = terminator_of(block).operation
    steps = [
        Step(op.operation, 0, list(dict.fromkeys(Version(root(value)) for value in _read_by(op))))
        for op in block.operations
        if op.operation.name in RUNS or op.operation == last
    ]
    made = [value for step in steps for value in step.op.results]
    seconds = {step.op: _seconds(step.op, functions, point) for step in steps if _may_run_again(step.op, functions)}
    bytes_ = {value: _evaluate(_bytes(value), point) for value in made}
    return Schedule(steps, Costs(bytes_, frozenset(map(root, last.operands)), seconds))


def _read_by(op: ir.OpView) -> list[ir.Value]:
    """The values that an op reads, inside of loops and branches too."""
    inner = [i for nested in nested_blocks(op) for b in all_blocks(nested) for i in b.operations]
    return [value for part in (op, *inner) for value in part.operands]


def _may_run_again(op: ir.Operation, functions: Mapping[str, func.FuncOp]) -> bool:
    """Tells whether a call computes the same once more, and changes nothing in place."""
    if op.name != "func.call":
        return False
    called = [functions[callee_of(op)]]
    called += [functions[callee_of(i)] for i in called[0].entry_block.operations if i.operation.name == "func.call"]
    return not any(isinstance(fusion_of(function), Library | Scatter | Update) for function in called)


def _seconds(op: ir.Operation, functions: Mapping[str, func.FuncOp], point: Mapping[str, int]) -> float:
    body = functions[callee_of(op)].entry_block
    flops = sum(_evaluate(times * flops_of(i, functions), point) for i, times in repeated_ops(body, functions))
    moved = sum(_evaluate(_bytes(value), point) for value in (*op.operands, *op.results))
    return max(flops / OPS_PER_SECOND, moved / BYTES_PER_SECOND) + SECONDS_PER_CALL


def _bytes(value: ir.Value) -> Expr:
    return product(dims_of(value)) * bytes_of(element_type_of(value))


def _evaluate(size: Expr, point: Mapping[str, int]) -> int:
    return max(0, size.evaluate(point))


def _point(block: ir.Block, facts: Facts, limit: int) -> dict[str, int]:
    """The sizes at which variants are compared: likely ones, doubled until the values take more than the limit."""
    calls = (op for op in block.operations if op.operation.name == "func.call")
    total = sum((_bytes(value) for call in calls for value in call.results), Expr.const(0))
    symbols = facts.symbols
    point = {name: facts.estimate(Expr.symbol(name)) for name in symbols}
    while _evaluate(total, point) < 2 * limit:
        doubled = {name: min(2 * size, symbols[name].max or LARGEST, LARGEST) for name, size in point.items()}
        doubled = {name: max(size, point[name]) for name, size in doubled.items()}
        if doubled == point:
            break
        point = doubled
    return point


# ---- one branch for each ---------------------------------------------------------------------------------------------


def _write(block: ir.Block, schedules: Sequence[Schedule]) -> None:
    """Replace the ops of an entry block by a branch for each schedule; constants stay."""
    *ops, last = block.operations
    with ir.InsertionPoint(last), last.location:
        types = [value.type for value in last.operands]
        chosen = constant(0, ir.IntegerType.get_signless(32))
        choice = ir.Operation.create("stablehlo.case", types, [chosen], regions=len(schedules))
        for region, schedule in zip(choice.regions, schedules, strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                _Branch(block).write(schedule)
    for number, value in enumerate(choice.results):
        last.operands[number] = value
    for op in reversed(ops):
        if not is_constant(op):
            op.operation.erase()


class _Branch:
    """The steps of a schedule as ops at the insertion point."""

    def __init__(self, block: ir.Block) -> None:
        self.block = block
        self.values: dict[Version, ir.Value] = {}

    def write(self, schedule: Schedule) -> None:
        """All steps, the terminator of the program as that of a branch."""
        for step in schedule.steps:
            runs = {version.value: version.run for version in step.reads}
            if step is schedule.steps[-1]:
                operands = [self._value(value, runs) for value in step.op.operands]
                ir.Operation.create("stablehlo.return", operands=operands, loc=step.op.location)
                continue
            clone = step.op.clone()
            for block in [b for nested in nested_blocks(clone) for b in all_blocks(nested)]:
                for op in block.operations:
                    self._redirect(op.operation, runs, ir.InsertionPoint(clone))
            self._redirect(clone, runs, ir.InsertionPoint(clone))
            for version, result in zip(step.makes, clone.results, strict=True):
                self.values[version] = result

    def _redirect(self, op: ir.Operation, runs: Mapping[ir.Value, int], before: ir.InsertionPoint) -> None:
        for number, value in enumerate(op.operands):
            with before:
                new = self._value(value, runs)
            if new != value:
                op.operands[number] = new

    def _value(self, value: ir.Value, runs: Mapping[ir.Value, int]) -> ir.Value:
        """The value of the branch, or a view of one; what is no result of a step is the same in all branches."""
        if isinstance(value.owner, ir.Block) or is_constant(value.owner) or value.owner.operation.block != self.block:
            return value
        op, source = value.owner.operation, root(value)
        known = Version(value, runs.get(source, 0))
        if op.name not in RESHAPES and op.name != "disc.shape":
            return self.values[known]
        if known not in self.values:
            operands = [self._value(operand, runs) for operand in op.operands]
            clone = op.clone()
            for number, operand in enumerate(operands):
                clone.operands[number] = operand
            self.values[known] = clone.results[0]
        return self.values[known]


__all__ = ["limit_memory"]
