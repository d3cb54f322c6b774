# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `lower` stage for CPUs: fusions become kernels, calls become launches of a host program.

Kernels are built once per distinct body: a fusion whose symbols have other names, or whose sizes are other expressions
of which the same facts hold, uses the kernel that exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.elements import MathLibrary
from shlo_disc.lowering.kernels import Kernel, KernelCache, OutputBuffers, has_rows, op_cost
from shlo_disc.lowering.launches import Guard, Launched
from shlo_disc.lowering.rows import analyse_rows
from shlo_disc.lowering_cpu import vector_math
from shlo_disc.lowering_cpu.attention import attention_words, causal_words
from shlo_disc.lowering_cpu.block_kernels import CLEAR, COPY, clear_text, copy_text
from shlo_disc.lowering_cpu.column_kernel import build_columns, has_columns
from shlo_disc.lowering_cpu.concatenate_kernel import build_concatenation
from shlo_disc.lowering_cpu.constants import dense_bytes
from shlo_disc.lowering_cpu.convolution_kernel import build_convolution
from shlo_disc.lowering_cpu.dot import DotLowering
from shlo_disc.lowering_cpu.entry import write_entry
from shlo_disc.lowering_cpu.epilogue_kernel import build_epilogue
from shlo_disc.lowering_cpu.gemm_kernel import SIGNATURE, Tile, micro_kernels
from shlo_disc.lowering_cpu.host import Segment, write_run
from shlo_disc.lowering_cpu.host_plan import Check, write_plan
from shlo_disc.lowering_cpu.kernel import CpuOptions, Frame
from shlo_disc.lowering_cpu.library import LibraryCalls
from shlo_disc.lowering_cpu.loop_kernel import build_loop
from shlo_disc.lowering_cpu.nonzero_kernel import build_nonzero
from shlo_disc.lowering_cpu.packs import Packs
from shlo_disc.lowering_cpu.recurrence_kernel import build_recurrence
from shlo_disc.lowering_cpu.row_kernel import BOUND, build_rows
from shlo_disc.lowering_cpu.scan_kernel import build_scan
from shlo_disc.lowering_cpu.scatter_kernel import build_scatter, starts_from_zeros
from shlo_disc.lowering_cpu.segments import LoweredSegment, lowered_segments, read_sizes
from shlo_disc.lowering_cpu.select_scatter_kernel import build_select_and_scatter
from shlo_disc.lowering_cpu.sort_kernel import build_sort
from shlo_disc.lowering_cpu.steps import (
    AttentionCall,
    Branch,
    Clear,
    ConvolutionCall,
    Copy,
    DotCall,
    Launch,
    Loop,
    Place,
    Step,
    count_steps,
)
from shlo_disc.lowering_cpu.top_k_kernel import build_top_k
from shlo_disc.lowering_cpu.update_kernel import build_update
from shlo_disc.lowering_cpu.vector_math.outlined import OutlinedFunctions
from shlo_disc.lowering_cpu.winograd_kernel import DECLARATIONS, transforms
from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.dialect.buffers import ResultBuffer, buffers_of
from shlo_disc.shape_dialect.dialect.fusion import (
    Attention,
    Convolution,
    Dot,
    Gemm,
    fusion_of,
    kind_of,
    updates_of,
)
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.symbolic.expr import Expr, ExprLike
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.utils.convolution import is_canonical
from shlo_disc.shape_dialect.utils.op_sets import CONTROL
from shlo_disc.shape_dialect.utils.regions import all_blocks, entry_block, nested_blocks, terminator_of
from shlo_disc.transforms.code_size import total_code_size
from shlo_disc.transforms.convolutions import is_product
from shlo_disc.transforms.segments import segment_of
from shlo_disc.transforms.views import root

Builder = Callable[[Frame], tuple[Expr, ExprLike]]

OWN_KERNELS: dict[str, Builder] = {
    "concatenate": build_concatenation,
    "convolution": build_convolution,
    "epilogue": build_epilogue,
    "nonzero": build_nonzero,
    "recurrence": build_recurrence,
    "scan": build_scan,
    "scatter": build_scatter,
    "select_and_scatter": build_select_and_scatter,
    "sort": build_sort,
    "top_k": build_top_k,
    "update": build_update,
}
"""Builders of the kinds of fusion that have a kernel of their own."""


_COSTLY_UNROLL = 4
"""Registers of a loop that computes more than it moves, so that its long chains of operations overlap."""

_COSTLY = 12
"""Its cost for an element, from which on a loop is such."""


def _is_costly_loop(fusion: func.FuncOp) -> bool:
    return kind_of(fusion) == "loop" and sum(op_cost(op) for op in fusion.entry_block.operations) >= _COSTLY


def _code_size_of(fusion: func.FuncOp) -> int:
    """Instructions for one vector of all walks over a row."""
    walks = analyse_rows(fusion).last + 1 if has_rows(fusion) else 1
    return walks * total_code_size(fusion.entry_block.operations)


def _bytes_of(value: ir.Value) -> Expr:
    return product(dims_of(value)) * bytes_of(element_type_of(value))


def _builder_of(fusion: func.FuncOp) -> Builder:
    if kind_of(fusion) == "reduce" and has_columns(fusion):
        return build_columns
    if kind_of(fusion) == "convolution" and not is_canonical(next(iter(fusion.entry_block.operations))):
        return build_loop
    return OWN_KERNELS.get(kind_of(fusion), build_rows if has_rows(fusion) else build_loop)


@dataclass
class LoweredProgram:
    """A module with the kernels and the host program, and what the artifact's header needs to know."""

    module: ir.Module
    segments: list[LoweredSegment]
    constants: list[bytes]
    launches: list[Launched] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    uses_blas: bool = False
    packs: dict[str, Any] = field(default_factory=dict)


class Lowering:
    """Lowers one planned module."""

    def __init__(self, module: ir.Module, facts: Facts, options: CpuOptions, packs: Packs):
        self.source = module
        self.facts = facts
        self.options = options
        self.target = ir.Module.create()
        self.calling = cast(MathLibrary, OutlinedFunctions(self.target, vector_math.FUNCTIONS))
        self.kernels = KernelCache(facts, self.build_kernel)
        self.entries: dict[Kernel, str] = {}
        self.launches: list[Launched] = []
        self.dots = DotLowering(options, self.functions, self.kernels, packs, self._grain)
        self.symbols: list[str] = []
        self.calls = LibraryCalls()

    @cached_property
    def functions(self) -> dict[str, func.FuncOp]:
        """The fusions by name."""
        return {op.name.value: op for op in self.source.body.operations if isinstance(op, func.FuncOp)}

    def build_kernel(self, fusion: func.FuncOp, facts: Facts, name: str, outputs: OutputBuffers) -> Kernel:
        """Emit the kernel of a fusion and the text of its entry point."""
        schedule = self.options.schedule.of(name)
        unroll = schedule.unroll or (_COSTLY_UNROLL if _is_costly_loop(fusion) else self.options.unroll)
        options = replace(self.options, unroll=min(self.options.unroll, unroll), long_unroll=unroll)
        frame = Frame(fusion, facts, options, vector_math, _code_size_of(fusion), outputs)
        if frame.is_long:
            frame.library = self.calling
        frame.open(self.target, name)
        with ir.InsertionPoint(frame.entry):
            total, cost = _builder_of(fusion)(frame)
        frame.close()
        kernel = Kernel(name, frame.function, frame.sizes, total, cost, frame.guards)
        self.entries[kernel] = write_entry(frame, name)
        return kernel

    # ---- the host program -------------------------------------------------------------------------------------------

    def steps(self, ops: Iterable[ir.OpView], places: dict[ir.Value, Place]) -> tuple[Step, ...]:
        """The steps of calls, loops and branches, and of reading sizes."""
        steps: list[Step] = []
        for op in ops:
            if op.operation.name == "disc.bind":
                steps.append(read_sizes(op, places, self.symbols))
            elif op.operation.name == "func.call":
                steps += self._call(op, places)
            elif op.operation.name == "stablehlo.while":
                steps += self._loop(op, places)
            elif op.operation.name in CONTROL:
                steps.append(self._branch(op, places))
        return tuple(steps)

    def _call(self, call: ir.OpView, places: dict[ir.Value, Place]) -> list[Step]:
        callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        fusion = self.functions[callee]
        inputs = [places[root(v)] for v in call.operands]
        outputs = [places[r] for r in call.results]
        if kind_of(fusion) == "library":
            step, target = self.calls.step(fusion, inputs, outputs)
            self.launches.append(Launched(target, "library", callee))
            return [step]
        first = len(self.kernels.asked)
        if kind_of(fusion) == "attention":
            attention = self._attention(fusion, inputs, outputs)
            self.launches.append(Launched(f"attention_{attention.rows}", "attention", callee, self._guards(first)))
            return [attention]
        called = self._dot(fusion, inputs, outputs)
        if called is not None:
            kind = "dot" if isinstance(called, DotCall) else "convolution"
            self.launches.append(Launched(called.name, kind, callee, self._guards(first)))
            return [called]
        updated = updates_of(fusion)
        starts = self._copies(
            [call.operands[i] for i in updated if i >= 0],
            [r for r, i in zip(call.results, updated, strict=False) if i >= 0],
            places,
        )
        are_zero = kind_of(fusion) == "scatter" and starts_from_zeros(fusion)
        if are_zero:
            starts += tuple(self._clear(r, places) for r, i in zip(call.results, updated, strict=False) if i < 0)
        are_results = all(output.space == "buffer" for output in outputs)
        launch = self._launch(fusion, [*inputs, *outputs], OutputBuffers(are_results, are_zero))
        threads = Guard("all threads", "one thread", (Relation.gt(launch.total, launch.grain),), False)
        guards = self._guards(first)
        is_direct = launch.total.constant == 1
        if not is_direct:
            guards = (*guards, threads)
        self.launches.append(Launched(launch.kernel, kind_of(fusion), callee, guards, is_direct=is_direct))
        return [*starts, launch]

    def _guards(self, first: int) -> tuple[Guard, ...]:
        """What the kernels chosen since choose at run time."""
        found = (guard.substitute(meaning) for kernel, meaning in self.kernels.asked[first:] for guard in kernel.guards)
        return tuple(dict.fromkeys(found))

    def _loop(self, loop: ir.OpView, places: dict[ir.Value, Place]) -> list[Step]:
        condition, body = nested_blocks(loop)
        start = self._copies(loop.operands, loop.results, places)
        before = self.steps(condition.operations, places)
        goes_on = places[root(terminator_of(condition).operands[0])]
        steps = self.steps(body.operations, places)
        steps += self._copies(terminator_of(body).operands, loop.results, places)
        return [*start, Loop(before, goes_on, steps)]

    def _branch(self, op: ir.OpView, places: dict[ir.Value, Place]) -> Branch:
        index = places[root(op.operands[0])]
        branches = [
            self.steps(block.operations, places) + self._copies(terminator_of(block).operands, op.results, places)
            for block in nested_blocks(op)
        ]
        if op.operation.name == "stablehlo.if":
            return Branch(index, 8, tuple(reversed(branches)))
        return Branch(index, 32, tuple(branches))

    def _copies(
        self, sources: Iterable[ir.Value], targets: Iterable[ir.Value], places: dict[ir.Value, Place]
    ) -> tuple[Step, ...]:
        """What is not yet where it has to be."""
        steps: list[Step] = []
        for source, target in zip(sources, targets, strict=True):
            here, there = places[root(source)], places[target]
            if here != there:
                size = self.facts.simplify(_bytes_of(target))
                steps.append(Copy(here, there, size))
                self.launches.append(Launched(COPY, "copy", bytes=2 * size))
        return tuple(steps)

    def _clear(self, target: ir.Value, places: dict[ir.Value, Place]) -> Clear:
        size = self.facts.simplify(_bytes_of(target))
        self.launches.append(Launched(CLEAR, "clear", bytes=size))
        return Clear(places[target], size)

    def _dot(self, fusion: func.FuncOp, inputs: list[Place], outputs: list[Place]) -> DotCall | ConvolutionCall | None:
        """The call of the runtime that a fusion is, or None where it is a kernel."""
        what = fusion_of(fusion)
        if isinstance(what, Gemm):
            return self.dots.several(fusion, inputs, outputs)
        if isinstance(what, Dot):
            return None if what.product is None else self.dots.single(what.product, inputs, outputs[0])
        if not isinstance(what, Convolution) or what.product is None:
            return None
        op = next(iter(fusion.entry_block.operations))
        product = what.product.product
        if is_canonical(op) and not is_product(op, self.dots.packs.is_packable(product, inputs[product.rhs])):
            return None  # the direct kernel is the better one
        return self.dots.convolution(what.product, self.dots.single(product, inputs, outputs[0]))

    def _attention(self, fusion: func.FuncOp, inputs: Sequence[Place], outputs: Sequence[Place]) -> AttentionCall:
        what = fusion_of(fusion)
        if not isinstance(what, Attention) or what.problem is None:
            raise CompilerError(f"lower: @{fusion.name.value} does not say what its attention is")
        problem = what.problem
        kernel, meaning = self.kernels.kernel_for(self.functions[what.rows])
        sizes = (None if s == BOUND else s.substitute(meaning) for s in kernel.sizes)
        buffers = (*(inputs[o.number] for o in (problem.query, problem.key, problem.value)), *outputs)
        of_rows = (*(None if i < 0 else inputs[i] for i in what.row_operands), None)
        tile = self.dots.tile(problem.element)
        words = attention_words(problem, tile)
        causal = causal_words(problem)
        return AttentionCall(words, buffers, tile, kernel.name, of_rows, tuple(sizes), causal)

    def append_micro_kernels(self, tile: Tile) -> str:
        """Add the functions that compute tiles of products; returns the declaration of the one to call."""
        declarations: list[str] = []
        for name, text in micro_kernels(tile):
            append_text(self.target, text, declarations)
            declarations.append(f"llvm.func @{name}({SIGNATURE})")
        return f"llvm.func @{tile.name}(i64, {SIGNATURE})"

    def append_transforms(self) -> Sequence[str]:
        """Add the functions of Winograd's algorithm, if a convolution may use it; returns their declarations."""
        if not self.dots.transforms:
            return []
        for _, text in transforms(self.options.vector_bits // 32):
            append_text(self.target, text, [])
        return DECLARATIONS

    def _launch(self, fusion: func.FuncOp, buffers: list[Place], outputs: OutputBuffers) -> Launch:
        kernel, meaning = self.kernels.kernel_for(fusion, outputs)

        def here(e: Expr) -> Expr:
            return e.substitute(meaning) if meaning else e

        sizes = tuple(here(s) for s in kernel.sizes)
        return Launch(kernel.name, tuple(buffers), sizes, here(kernel.total), self._grain(kernel, meaning))

    def _grain(self, kernel: Kernel, meaning: Mapping[str, Expr]) -> Expr:
        """The fewest work items of a kernel that are worth handing to a thread."""
        work = self.options.schedule.of(kernel.name).serial_work
        grain = Expr.maximum(1, work // Expr.maximum(kernel.cost, 1))
        return grain.substitute(meaning) if meaning else grain


def lower(
    module: ir.Module,
    facts: Facts,
    *,
    arguments: Sequence[Dims],
    results: Sequence[Dims],
    kept: Sequence[int],
    symbols: Sequence[str],
    checks: Sequence[Check],
    options: CpuOptions,
) -> LoweredProgram:
    """Lower a planned module. `arguments` and `results` are the symbolic shapes of all leaves of the signature."""
    with ir.Location.unknown():
        constants: list[bytes] = []
        places = _places(module, kept, len(arguments), len(results), constants)
        first_result, first_constant = len(arguments), len(arguments) + len(results)
        packs = Packs(first_constant + len(constants), range(first_result, first_constant))
        lowering = Lowering(module, facts, options, packs)
        segments = lowered_segments(module, places, arguments, results, symbols, checks)
        lowering.symbols = [*symbols, *(name for segment in segments for name in segment.symbols)]
        known = list(symbols)
        host: list[str] = []
        constant_images: list[str] = []
        own = [[op for op in entry_block(module).operations if segment_of(op) == n] for n in range(len(segments))]
        steps = [lowering.steps(ops, places) for ops in own]
        table = packs.first + len(packs.rows)
        for number, segment in enumerate(segments):
            known += segment.symbols
            done = sum(map(count_steps, steps[:number]))
            *images, run = write_run(steps[number], segment.words, Segment(number, table, done))
            host += [write_plan(known, segment.checks, segment.words, number), run]
            constant_images += images
        for kernel, entry in lowering.entries.items():
            types = ", ".join(map(str, kernel.function.type.inputs))
            append_text(lowering.target, entry, [f"func.func private @{kernel.name}({types})"])
        names = [k.name for k in lowering.entries]
        launched = {launch.name for launch in lowering.launches}
        for name, write in ((COPY, copy_text), (CLEAR, clear_text)):
            if name in launched:
                append_text(lowering.target, write(), [])
                names.append(name)
        entries = [f"llvm.func @{name}_entry(!llvm.ptr, i64, i64)" for name in names]
        tiles = {tile.name: tile for tile in lowering.dots.tiles.values()}
        entries += [lowering.append_micro_kernels(tile) for tile in tiles.values()]
        entries += lowering.append_transforms()
        for text in constant_images:
            append_text(lowering.target, text, [])
        for text in host:
            append_text(lowering.target, text, [*entries, *constant_images])
    if not lowering.target.operation.verify():
        raise CompilerError("lower: the lowered module does not verify")
    return LoweredProgram(
        lowering.target,
        segments,
        constants,
        lowering.launches,
        lowering.calls.header,
        bool(lowering.dots.tiles),
        packs.header([step for own in steps for step in own]),
    )


def append_text(module: ir.Module, text: str, declarations: Sequence[str]) -> None:
    """Parse one function, or constant, that refers to others of `module`, declared for the parser, and append it."""
    holder = ir.Module.parse("\n".join([*declarations, text]))
    function = list(holder.body.operations)[-1].operation
    function.detach_from_parent()
    module.body.append(function)


def _places(
    module: ir.Module, kept: Sequence[int], arguments: int, results: int, constants: list[bytes]
) -> dict[ir.Value, Place]:
    """Where every buffer of the entry function is: arguments, results and constants in `buffers`, the rest in arena."""
    block = entry_block(module)
    places: dict[ir.Value, Place] = {
        value: Place("buffer", leaf) for value, leaf in zip(block.arguments, kept, strict=True)
    }
    for op in (op for inner in all_blocks(block) for op in inner.operations):
        if op.operation.name == "stablehlo.constant":
            places[op.results[0]] = Place("buffer", arguments + results + len(constants))
            constants.append(dense_bytes(op))
        elif op.operation.name in CONTROL | {"func.call"}:
            for result, buffer in zip(op.results, buffers_of(op), strict=True):
                if isinstance(buffer, ResultBuffer):
                    places[result] = Place("buffer", arguments + buffer.index)
                else:
                    places[result] = Place("arena", buffer.segment, buffer.offset)
            for nested in nested_blocks(op):
                places.update({a: places[r] for a, r in zip(nested.arguments, op.results, strict=False)})
    return places
