# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a program of `disc_host` to host functions in the LLVM dialect, and what the artifact's header says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shlo_disc.lowering.codegen import Routines
from shlo_disc.lowering.host.segments import function_name
from shlo_disc.lowering.host_llvm.buffers import BufferTable
from shlo_disc.lowering.host_llvm.builder import LlvmDialect
from shlo_disc.lowering.host_llvm.constants import dense_bytes
from shlo_disc.lowering.host_llvm.plan import Words, write_plan
from shlo_disc.lowering.host_llvm.run import RunWriter, Scope
from shlo_disc.shape_dialect.dialect.declarations import facts_of
from shlo_disc.shape_dialect.dialect.host import Check, Plan, call_of
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.mlir import ir


@dataclass
class LoweredSegment:
    """The data of one segment for the artifact's header: its plan slots, its checks and the values that are allocated.

    `results` are the leaves that it writes; `symbols` those that are read from data for its sake.
    """

    words: Words
    checks: Sequence[Check]
    results: Sequence[int]
    symbols: Sequence[str]


@dataclass
class LoweredProgram:
    """The modules of a program, and what the artifact's header and blocks of data are made of.

    modules: by the sections of the artifact that they become; the first is the one that people look at. header: what
    the header says of this target's commands. embedded: constants that the object has for the loader, by name.
    routines: what the object shares with those of other programs.
    """

    modules: Mapping[str, ir.Module]
    segments: list[LoweredSegment]
    constants: list[bytes]
    header: dict[str, Any]
    embedded: Mapping[str, bytes] = field(default_factory=dict)
    routines: Sequence[Routines] = ()

    @property
    def exported(self) -> set[str]:
        """The host functions that the runtime calls."""
        numbers = range(len(self.segments))
        return {function_name(stem, number) for stem in ("disc_plan", "disc_run") for number in numbers}


class HostProgram:
    """The program that a module of the stage `host` is, which stays as it is; a target has its commands."""

    def __init__(self, module: ir.Module, signature: Signature):
        self.signature = signature
        ops = [op.operation for op in module.body.operations]
        self.functions = [op for op in ops if op.name == "func.func"]
        self.plans: list[Plan] = [call_of(op) for op in ops if op.name == "disc_host.plan"]
        self.constants = [op for op in ops if op.name == "memref.global"]
        self.ops = [inner for function in self.functions for inner in _walk(function)]
        names = [ir.StringAttr(op.attributes["sym_name"]).value for op in self.constants]
        self.limits = facts_of(module).limits
        self.buffers = BufferTable(len(signature.arguments), len(signature.results), names, self.ops)
        self.dialect = LlvmDialect()
        self.target = ir.Module.create()

    # ---- what a target has of its own -------------------------------------------------------------------------------

    def writer(self, scope: Scope, words: Words, segment: int, command: int) -> RunWriter:
        """The writer of a segment's `disc_run`."""
        raise NotImplementedError

    def append_callees(self) -> None:
        """Append what the commands call to `target`."""

    def modules(self) -> Mapping[str, ir.Module]:
        """The program's modules, by section."""
        raise NotImplementedError

    def routines(self) -> Sequence[Routines]:
        """The routines that the commands call."""
        return ()

    def header(self) -> dict[str, Any]:
        """The entries of the artifact's header for the commands, once they are written."""
        raise NotImplementedError

    # ---- the host functions -----------------------------------------------------------------------------------------

    def lowered(self) -> LoweredProgram:
        """The program."""
        self.append_callees()
        segments = [self._segment(plan, number) for number, plan in enumerate(self.plans)]
        for op in self._functions(segments):
            self.target.body.append(op)
        constants = [dense_bytes(ir.DenseElementsAttr(op.attributes["initial_value"])) for op in self.constants]
        return LoweredProgram(self.modules(), segments, constants, self.header(), routines=self.routines())

    def _segment(self, plan: Plan, number: int) -> LoweredSegment:
        arguments = [spec.dims for spec in self.signature.arguments] if number == 0 else []
        shapes = [*arguments, *(self.signature.results[leaf].dims for leaf in plan.writes)]
        words = Words([plan.arena, *(d for dims in shapes for d in dims)])
        for check in plan.checks:
            for operand in check.operands:
                words.place(operand)
        return LoweredSegment(words, plan.checks, plan.writes, plan.reads)

    def _functions(self, segments: Sequence[LoweredSegment]) -> list[ir.Operation]:
        """The constants that the segments refer to, and for each segment its plan and its run."""
        known = [source.name for source in self.signature.symbols]
        every = [*known, *(name for segment in segments for name in segment.symbols)]
        scope = Scope(self.dialect, self.buffers, every, self.limits)
        images: list[ir.Operation] = []
        functions: list[ir.Operation] = []
        command = 0
        for number, (function, segment) in enumerate(zip(self.functions, segments, strict=True)):
            known += segment.symbols
            writer = self.writer(scope, segment.words, number, command)
            writer.write(op.operation for op in function.regions[0].blocks[0].operations)
            command = writer.command
            images += writer.globals()
            runs = writer.functions()
            functions += [write_plan(self.dialect, known, segment.checks, segment.words, number), *runs]
        return [*images, *functions]


def _walk(function: ir.Operation) -> Iterator[ir.Operation]:
    """All ops in a function, in their order."""
    for region in function.regions:
        for block in region.blocks:
            for op in block.operations:
                yield op.operation
                yield from _walk(op.operation)
