# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a program of `disc_host` to one module of kernels, micro-kernels and host functions in the LLVM dialect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shlo_disc.lowering.host.segments import function_name
from shlo_disc.lowering.kernel_module import kernel_module_of
from shlo_disc.lowering.launches import CLEAR, COPY
from shlo_disc.lowering_cpu.host.block_kernels import clear_text, copy_text
from shlo_disc.lowering_cpu.host.blocks import entry_name
from shlo_disc.lowering_cpu.host.buffers import BufferTable
from shlo_disc.lowering_cpu.host.constants import dense_bytes
from shlo_disc.lowering_cpu.host.entry import write_entry
from shlo_disc.lowering_cpu.host.library import LibraryTable
from shlo_disc.lowering_cpu.host.plan import Words, write_plan
from shlo_disc.lowering_cpu.host.run import RunWriter, Scope
from shlo_disc.lowering_cpu.micro_kernels.gemm_kernel import SIGNATURE, micro_kernels
from shlo_disc.lowering_cpu.micro_kernels.winograd_kernel import DECLARATIONS, transforms
from shlo_disc.mlir import func, ir
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.dialect.host import (
    DYNAMIC_DIMS,
    AttentionCall,
    Check,
    ConvolutionCall,
    Gemm,
    GemmTile,
    Plan,
    call_of,
)
from shlo_disc.shape_dialect.dialect.signature import Signature


@dataclass
class LoweredSegment:
    """What the artifact's header needs to know of one segment: its plan's words, its checks and who is allocated.

    `results` are the leaves that it writes; `symbols` those that are read from data for its sake.
    """

    words: Words
    checks: Sequence[Check]
    results: Sequence[int]
    symbols: Sequence[str]


@dataclass
class LoweredProgram:
    """A module of kernels and host functions, and what the artifact's header and blocks of data are made of."""

    module: ir.Module
    segments: list[LoweredSegment]
    constants: list[bytes]
    calls: list[dict[str, Any]] = field(default_factory=list)
    uses_blas: bool = False
    packs: dict[str, Any] = field(default_factory=dict)

    @property
    def exported(self) -> set[str]:
        """The functions that the runtime calls."""
        numbers = range(len(self.segments))
        return {function_name(stem, number) for stem in ("disc_plan", "disc_run") for number in numbers}


def lower_host(module: ir.Module, signature: Signature, vector_bits: int) -> LoweredProgram:
    """The program that a module of the stage `host` is, which stays as it is. `vector_bits`: of a register."""
    with ir.Location.unknown():
        return _Host(module, signature, vector_bits).lowered()


class _Host:
    """That of one module."""

    def __init__(self, module: ir.Module, signature: Signature, vector_bits: int):
        self.signature = signature
        self.vector_bits = vector_bits
        ops = [op.operation for op in module.body.operations]
        self.functions = [op for op in ops if op.name == "func.func"]
        self.plans: list[Plan] = [call_of(op) for op in ops if op.name == "disc_host.plan"]
        self.constants = [op for op in ops if op.name == "memref.global"]
        self.ops = [inner for function in self.functions for inner in _walk(function)]
        names = [ir.StringAttr(op.attributes["sym_name"]).value for op in self.constants]
        self.buffers = BufferTable(len(signature.arguments), len(signature.results), names, self.ops)
        self.library = LibraryTable()
        self.kernels = kernel_module_of(module)
        self.target = ir.Module.create()

    def lowered(self) -> LoweredProgram:
        """The program."""
        segments = [self._segment(plan, number) for number, plan in enumerate(self.plans)]
        functions = self._functions(segments)
        entries = [*self._append_kernels(), *self._append_tiles(), *self._append_transforms()]
        images = [text for texts in functions for text in texts[:-2]]
        for text in images:
            append_text(self.target, text, [])
        for text in (text for texts in functions for text in texts[-2:]):
            append_text(self.target, text, [*entries, *images])
        return LoweredProgram(
            self.target,
            segments,
            [dense_bytes(ir.DenseElementsAttr(op.attributes["initial_value"])) for op in self.constants],
            self.library.header,
            bool(self._tiles()),
            {"packs": self.buffers.packs, "packed_only": self._packed_only()},
        )

    # ---- the host functions -----------------------------------------------------------------------------------------

    def _segment(self, plan: Plan, number: int) -> LoweredSegment:
        arguments = [spec.dims for spec in self.signature.arguments] if number == 0 else []
        shapes = [*arguments, *(self.signature.results[leaf].dims for leaf in plan.writes)]
        words = Words([plan.arena, *(d for dims in shapes for d in dims)])
        for check in plan.checks:
            for operand in check.operands:
                words.place(operand)
        return LoweredSegment(words, plan.checks, plan.writes, plan.reads)

    def _functions(self, segments: Sequence[LoweredSegment]) -> list[list[str]]:
        """For each segment the constants that it refers to, its plan and its run."""
        known = [source.name for source in self.signature.symbols]
        every = [*known, *(name for segment in segments for name in segment.symbols)]
        scope = Scope(self.buffers, every, self.library.index)
        texts = []
        command = 0
        for number, (function, segment) in enumerate(zip(self.functions, segments, strict=True)):
            known += segment.symbols
            writer = RunWriter(scope, segment.words, number, command)
            writer.write(op.operation for op in function.regions[0].blocks[0].operations)
            command = writer.command
            run = writer.text()
            texts.append([*writer.globals(), write_plan(known, segment.checks, segment.words, number), run])
        return texts

    def _packed_only(self) -> list[int]:
        """The buffers that nothing reads where their packed form is used."""
        read = {place.index for place in map(self.buffers.place, _read(self.ops)) if not place.is_arena}
        return sorted({row["buffer"] for row in self.buffers.packs} - read)

    # ---- kernels ----------------------------------------------------------------------------------------------------

    def _append_kernels(self) -> list[str]:
        """The kernels and their entry points; returns the declarations of these."""
        kernels = [op.operation.clone() for op in self.kernels.regions[0].blocks[0].operations]
        names = []
        for kernel in kernels:
            self.target.body.append(kernel)
        for kernel in (op.opview for op in kernels if DYNAMIC_DIMS in op.attributes):
            append_text(self.target, write_entry(kernel), [_declaration(kernel)])
            names.append(kernel.name.value)
            del kernel.attributes[DYNAMIC_DIMS]
        used = {op.name for op in self.ops}
        for op, name, text in (("disc_host.copy", COPY, copy_text), ("disc_host.clear", CLEAR, clear_text)):
            if op in used:
                append_text(self.target, text(), [])
                names.append(name)
        return [f"llvm.func @{entry_name(name)}({abi.KERNEL.llvm_parameters})" for name in names]

    def _tiles(self) -> dict[str, GemmTile]:
        calls: list[Gemm | ConvolutionCall | AttentionCall] = [call_of(op) for op in self.ops if op.name in _TILED]
        return {call.tile.name: call.tile for call in calls}

    def _append_tiles(self) -> Iterator[str]:
        """The micro-kernels of products; returns the declarations of those that are called."""
        for tile in self._tiles().values():
            declarations: list[str] = []
            for name, text in micro_kernels(tile):
                append_text(self.target, text, declarations)
                declarations.append(f"llvm.func @{name}({SIGNATURE})")
            yield f"llvm.func @{tile.name}({abi.TILE.llvm_parameters})"

    def _append_transforms(self) -> Sequence[str]:
        """The functions of Winograd's algorithm, if a convolution may use it; returns their declarations."""
        calls: list[ConvolutionCall] = [call_of(op) for op in self.ops if op.name == "disc_host.convolution"]
        if not any(call.problem.may_transform for call in calls):
            return []
        for _, text in transforms(self.vector_bits // 32):
            append_text(self.target, text, [])
        return DECLARATIONS


_TILED = frozenset(("disc_host.gemm", "disc_host.convolution", "disc_host.attention"))


def _walk(function: ir.Operation) -> Iterator[ir.Operation]:
    """All ops in a function, in their order."""
    for region in function.regions:
        for block in region.blocks:
            for op in block.operations:
                yield op.operation
                yield from _walk(op.operation)


def _read(ops: Sequence[ir.Operation]) -> Iterator[ir.Value]:
    """The buffers that ops touch, right-hand sides that have a packed form aside."""
    for op in ops:
        if op.name == "memref.load":
            yield op.operands[0].owner.operands[0]
        elif op.name in ("disc_host.gemm", "disc_host.convolution"):
            call: Gemm | ConvolutionCall = call_of(op)
            for product in call.products if isinstance(call, Gemm) else (call.gemm,):
                problem, epilogue = product.problem, product.epilogue
                numbers = [problem.lhs, product.result, problem.rhs if product.packed < 0 else -1]
                numbers += [] if epilogue is None else epilogue.operands
                yield from (op.operands[number] for number in numbers if number >= 0)
        elif op.name.startswith("disc_host.") and op.name != "disc_host.packed":
            yield from op.operands


def _declaration(kernel: func.FuncOp) -> str:
    return f"func.func private @{kernel.name.value}({', '.join(map(str, kernel.type.inputs))})"


def append_text(module: ir.Module, text: str, declarations: Sequence[str]) -> None:
    """Parse one function, or constant, that refers to others of `module`, declared for the parser, and append it."""
    holder = ir.Module.parse("\n".join([*declarations, text]))
    function = list(holder.body.operations)[-1].operation
    function.detach_from_parent()
    module.body.append(function)
