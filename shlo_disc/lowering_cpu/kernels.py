# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stage `kernels` for CPUs: each fusion that is not a call of the runtime becomes a function of `@kernels`.

Kernels are built once per distinct body: a fusion whose symbols have other names, or whose sizes are other expressions
of which the same facts hold, uses the kernel that exists. Each call says in `disc.kernel` which one it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import cast

from shlo_disc.lowering import progress
from shlo_disc.lowering.elements import MathLibrary
from shlo_disc.lowering.kernel_module import KernelModule, copied
from shlo_disc.lowering.kernels import Kernel, KernelBuffers, KernelCache, has_rows, op_cost
from shlo_disc.lowering.loop_kernel import build_loop
from shlo_disc.lowering.rows import analyse_rows
from shlo_disc.lowering.scatter import results_from_zeros
from shlo_disc.lowering_cpu import vector_math
from shlo_disc.lowering_cpu.emitters.column_kernel import build_columns
from shlo_disc.lowering_cpu.emitters.concatenate_kernel import build_concatenation
from shlo_disc.lowering_cpu.emitters.convolution_kernel import build_convolution
from shlo_disc.lowering_cpu.emitters.epilogue_kernel import TILE_SIZES, build_epilogue
from shlo_disc.lowering_cpu.emitters.frame import LONG, CpuFrame
from shlo_disc.lowering_cpu.emitters.interruption import RUNTIME
from shlo_disc.lowering_cpu.emitters.nonzero_kernel import build_nonzero
from shlo_disc.lowering_cpu.emitters.panels import check_panels, columns_of_panels
from shlo_disc.lowering_cpu.emitters.recurrence_kernel import build_recurrence
from shlo_disc.lowering_cpu.emitters.row_kernel import BOUND, FIRST, build_rows
from shlo_disc.lowering_cpu.emitters.scan_kernel import build_scan
from shlo_disc.lowering_cpu.emitters.scatter_kernel import build_scatter
from shlo_disc.lowering_cpu.emitters.select_scatter_kernel import build_select_and_scatter
from shlo_disc.lowering_cpu.emitters.sort_kernel import build_sort
from shlo_disc.lowering_cpu.emitters.top_k_kernel import build_top_k
from shlo_disc.lowering_cpu.emitters.transpose_loop import build_transposing_loop
from shlo_disc.lowering_cpu.emitters.update_kernel import build_update
from shlo_disc.lowering_cpu.options import CpuOptions
from shlo_disc.lowering_cpu.vector_math.outlined import OutlinedFunctions
from shlo_disc.options import KernelSchedule
from shlo_disc.shape_dialect.dialect.buffers import ResultBuffer, buffers_of
from shlo_disc.shape_dialect.dialect.fusion import (
    Attention,
    AttentionGradient,
    Convolution,
    Dot,
    Gemm,
    Library,
    fusion_of,
    is_by_columns,
    kind_of,
    product_of,
)
from shlo_disc.shape_dialect.dialect.host import (
    KERNEL,
    TILE_REGISTERS,
    ChosenKernel,
    KernelUse,
    Panels,
    kernel_attribute,
)
from shlo_disc.shape_dialect.dialect.names import PANELS
from shlo_disc.shape_dialect.dialect.records import FunctionName
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import TABLE
from shlo_disc.shape_dialect.ops.code_size import total_code_size
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks, nested_blocks
from shlo_disc.shape_dialect.ops.segments import segment_of
from shlo_disc.shape_dialect.symbolic.expr import Expr, ExprLike
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.content import content_of
from shlo_disc.shape_dialect.utils.convolution import is_canonical
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block

Builder = Callable[[CpuFrame], tuple[Expr, ExprLike]]

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


_INDEPENDENT = 8
"""So many times its longest chain of operations, the work of a long loop overlaps within one vector."""


def _unroll_of(fusion: func.FuncOp, code_size: int, usual: int) -> int:
    """The registers worked on together in long rows."""
    if not _is_costly_loop(fusion):
        return usual
    return 1 if code_size >= LONG and _overlaps(fusion) else _COSTLY_UNROLL


def _overlaps(fusion: func.FuncOp) -> bool:
    """Tells whether most operations of a body depend on few others: more vectors together would only not fit the
    registers. Calls of functions do not overlap."""
    ends: dict[ir.Value, int] = {}
    total = 0
    for op in fusion.entry_block.operations:
        definition = TABLE.get(op.operation.name)
        if definition is not None and definition.is_function:
            return False
        cost = op_cost(op)
        total += cost
        end = cost + max((ends.get(value, 0) for value in op.operands), default=0)
        ends.update((result, end) for result in op.results)
    return total >= _INDEPENDENT * max(ends.values(), default=1)


def _code_size_of(fusion: func.FuncOp) -> int:
    """Instructions for one vector of all walks over a row."""
    walks = analyse_rows(fusion).last + 1 if has_rows(fusion) else 1
    return walks * total_code_size(fusion.entry_block.operations)


def _builder_of(fusion: func.FuncOp) -> Builder:
    if is_by_columns(fusion):
        return build_columns
    if kind_of(fusion) == "convolution" and not is_canonical(next(iter(fusion.entry_block.operations))):
        return build_loop
    return OWN_KERNELS.get(kind_of(fusion), build_rows if has_rows(fusion) else _build_loop)


def _build_loop(frame: CpuFrame) -> tuple[Expr, ExprLike]:
    return build_transposing_loop(frame) or build_loop(frame)


def build_kernels(planned: ir.Module, facts: Facts, options: CpuOptions) -> ir.Module:
    """A copy of a planned module, with its kernels."""
    with ir.Location.unknown():
        module = copied(planned)
        stage = _Kernels(module, facts, options)
        ops = list(entry_block(module).operations)
        progress.expect(sum(_is_call(op) for block in all_blocks(entry_block(module)) for op in block.operations))
        for segment in range(1 + max(map(segment_of, ops))):
            stage.choose(op for op in ops if segment_of(op) == segment)
    return module


def _is_call(op: ir.OpView) -> bool:
    return op.operation.name == "func.call"


class _Kernels:
    """Those of one module."""

    def __init__(self, module: ir.Module, facts: Facts, options: CpuOptions):
        self.source = module
        self.options = options
        self.target = KernelModule(module)
        self.calling = cast(MathLibrary, OutlinedFunctions(self.target, vector_math.FUNCTIONS))
        self.kernels = KernelCache(facts, self.build)
        self.schedules: dict[str, KernelSchedule] = {}
        """The schedule of each kernel that is built, by its name."""
        self.calls: func.FuncOp | None = None
        """The fusion whose kernels are chosen: what a kernel's content is found by."""
        self.chosen: dict[Hashable, ir.Attribute] = {}
        """Attributes that name kernels, by the fusion, its buffers and what else is chosen for a call."""

    @cached_property
    def functions(self) -> dict[str, func.FuncOp]:
        """The fusions by name."""
        return {op.name.value: op for op in self.source.body.operations if isinstance(op, func.FuncOp)}

    def build(self, fusion: func.FuncOp, facts: Facts, name: str, outputs: KernelBuffers) -> Kernel:
        """Emit the kernel of a fusion."""
        schedule = self.schedules[name] = self._schedule_of(name)
        code_size = _code_size_of(fusion)
        unroll = schedule.unroll or _unroll_of(fusion, code_size, self.options.unroll)
        options = replace(
            self.options,
            unroll=min(self.options.unroll, unroll),
            long_unroll=unroll,
            tile_registers=schedule.registers or TILE_REGISTERS,
            pieces=schedule.pieces,
        )
        frame = CpuFrame(fusion, facts, options, vector_math, code_size, outputs)
        if frame.is_long:
            frame.library = self.calling
        frame.open(self.target, name)
        with ir.InsertionPoint(frame.entry):
            total, cost = _builder_of(fusion)(frame)
        frame.close()
        check_panels(frame.panels)
        return Kernel(name, frame.function, frame.sizes, total, cost, frame.guards)

    def _schedule_of(self, name: str) -> KernelSchedule:
        """The schedule of a kernel: that of its name, or the one recorded for its content."""
        schedule, recorded = self.options.schedule, self.options.recorded
        if name in schedule.kernels or not recorded or self.calls is None:
            return schedule.of(name)
        return recorded.get(content_of(self.calls, self.functions), schedule.default)

    # ---- choices ----------------------------------------------------------------------------------------------------

    def choose(self, ops: Iterable[ir.OpView]) -> None:
        """Write the kernel on each call among ops, loops and branches."""
        for op in ops:
            if _is_call(op):
                self._choose(op)
                progress.advance()
            for block in nested_blocks(op):
                self.choose(block.operations)

    def _choose(self, call: ir.OpView) -> None:
        fusion = self.calls = self._callee(call)
        what = fusion_of(fusion)
        if isinstance(what, Attention):
            self._write(call, self.functions[what.rows], given=[FIRST, BOUND])
        elif isinstance(what, AttentionGradient):
            for inner in (op for op in fusion.entry_block.operations if _is_call(op)):
                if self._callee(inner).name.value in (what.rows, what.gradient_rows):
                    self._write(inner, self._callee(inner), given=[FIRST, BOUND])
        elif isinstance(what, Gemm):
            self._choose_epilogues(fusion)
        elif not isinstance(what, Library) and product_of(fusion) is None:
            clears = results_from_zeros(fusion)
            are_results = all(isinstance(buffer, ResultBuffer) for buffer in buffers_of(call))
            panels = tuple(ir.DenseI64ArrayAttr(call.attributes[PANELS])) if PANELS in call.attributes else ()
            buffers = KernelBuffers(are_results, bool(clears), panels)
            self._write(call, fusion, buffers, given=[RUNTIME], clears=clears)

    def _choose_epilogues(self, fusion: func.FuncOp) -> None:
        calls = [op for op in fusion.entry_block.operations if op.operation.name == "func.call"]
        for call in calls:
            callee = self._callee(call)
            if not isinstance(fusion_of(callee), Dot | Convolution):
                self._write(call, callee, given=TILE_SIZES)

    def _callee(self, call: ir.OpView) -> func.FuncOp:
        return self.functions[callee_of(call)]

    def _write(
        self,
        call: ir.OpView,
        fusion: func.FuncOp,
        outputs: KernelBuffers | None = None,
        given: Sequence[Expr] = (),
        clears: tuple[int, ...] = (),
    ) -> None:
        """Write on a call that it is the kernel of a fusion; the runtime tells it the sizes `given`."""
        buffers = outputs or KernelBuffers()
        key = fusion.name.value, buffers, tuple(given), clears
        if key not in self.chosen:
            self.chosen[key] = self._chosen_kernel(fusion, buffers, given, clears)
        call.attributes[KERNEL] = self.chosen[key]

    def _chosen_kernel(
        self, fusion: func.FuncOp, outputs: KernelBuffers, given: Sequence[Expr], clears: tuple[int, ...]
    ) -> ir.Attribute:
        kernel, meaning = self.kernels.kernel_for(fusion, outputs)

        def here(e: Expr) -> Expr:
            return e.substitute(meaning) if meaning else e

        columns = {columns_of_panels(number): number for number in outputs.panels}
        sizes = tuple(here(s) for s in kernel.sizes if s not in given and s not in columns)
        places = tuple(i for i, s in enumerate(kernel.sizes) if s in given)
        panels = tuple(Panels(columns[s], i) for i, s in enumerate(kernel.sizes) if s in columns)
        items, grain = here(kernel.total), self._grain(kernel, meaning)
        use = KernelUse(FunctionName(kernel.name), sizes, items, grain, places, panels=panels)
        guards = tuple(dict.fromkeys(guard.substitute(meaning) for guard in kernel.guards))
        registers = self.schedules[kernel.name].registers or TILE_REGISTERS
        return kernel_attribute(ChosenKernel(use, guards, clears, registers))

    def _grain(self, kernel: Kernel, meaning: Mapping[str, Expr]) -> Expr:
        """The fewest work items of a kernel that are worth handing to a thread."""
        work = self.schedules[kernel.name].serial_work
        grain = Expr.maximum(1, work // Expr.maximum(kernel.cost, 1))
        return grain.substitute(meaning) if meaning else grain
