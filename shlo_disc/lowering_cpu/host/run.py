# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of a host program on CPUs: its kernels, and the products, library calls and the like of the runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.host_llvm.blocks import Buffer, Entry, Runtime, kernel_arguments
from shlo_disc.lowering.host_llvm.library import library_words
from shlo_disc.lowering.host_llvm.plan import Words
from shlo_disc.lowering.host_llvm.run import RunWriter, Scope
from shlo_disc.lowering.launches import CLEAR, COPY
from shlo_disc.lowering_cpu.host.block_kernels import BLOCK_BYTES, BLOCK_GRAIN
from shlo_disc.lowering_cpu.host.blocks import (
    attention_block,
    attention_gradient_block,
    convolution_block,
    entry_name,
    gemm_block,
)
from shlo_disc.shape_dialect.dialect.host import Bytes, KernelUse, LibraryCall, call_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv

TRIPS_UNSEEN = 63
"""So many trips of a loop follow one that the runtime is told of: one less than a power of two."""


class CpuRunWriter(RunWriter):
    """Writes `disc_run` of a segment. `library_index`: the number of a library call among the program's."""

    def __init__(
        self, scope: Scope, words: Words, segment: int, command: int, library_index: Callable[[LibraryCall], int]
    ):
        super().__init__(scope, words, segment, command)
        self.library_index = library_index

    def commands(self) -> dict[str, Callable[[ir.Operation], None]]:
        """All commands, each a call of a kernel or of the runtime."""
        return {
            "disc_host.launch": self.launch,
            "disc_host.gemm": self.gemm,
            "disc_host.convolution": self.convolution,
            "disc_host.attention": self.attention,
            "disc_host.attention_gradient": self.attention_gradient,
            "disc_host.library": self.library,
            "disc_host.copy": self.copy,
            "disc_host.clear": self.clear,
        }

    def launch(self, op: ir.Operation) -> None:
        """A kernel."""
        use: KernelUse = call_of(op)
        block = self.filled(lambda: kernel_arguments(use, range(len(op.operands)), Runtime()), op)
        self._launch(use.kernel, block, use.items, use.grain)

    def _launch(self, name: str, block: ir.Value, items: Expr, grain: Expr) -> None:
        if items.constant == 1:
            self.current.call(entry_name(name), block, self.constant(0), self.constant(1))
            return
        kernel = self.symbol(entry_name(name))
        self.runtime_call("launch", kernel, block, self.size(items), self.size(grain))

    def gemm(self, op: ir.Operation) -> None:
        """Matrix products."""
        self.runtime_call("dot", self.filled(lambda: gemm_block(call_of(op)), op))

    def convolution(self, op: ir.Operation) -> None:
        """A convolution."""
        self.runtime_call("convolution", self.filled(lambda: convolution_block(call_of(op)), op))

    def attention(self, op: ir.Operation) -> None:
        """An attention."""
        self.runtime_call("attention", self.filled(lambda: attention_block(call_of(op)), op))

    def attention_gradient(self, op: ir.Operation) -> None:
        """The gradients of an attention."""
        self.runtime_call("attention_gradient", self.filled(lambda: attention_gradient_block(call_of(op)), op))

    def library(self, op: ir.Operation) -> None:
        """A library function."""
        call: LibraryCall = call_of(op)
        block = self.filled(lambda: library_words(call), op)
        self.runtime_call("call", self.constant(self.library_index(call)), block)

    def copy(self, op: ir.Operation) -> None:
        """Bytes from one buffer to another."""
        self._blocks(COPY, [Buffer(1), call_of(op).bytes, Buffer(0)], op)

    def clear(self, op: ir.Operation) -> None:
        """Zeros."""
        self._blocks(CLEAR, [Buffer(0), call_of(op).bytes], op)

    def _blocks(self, name: str, entries: Sequence[Entry], op: ir.Operation) -> None:
        call: Bytes = call_of(op)
        self._launch(name, self.filled(lambda: entries, op), ceildiv(call.bytes, BLOCK_BYTES), Expr.const(BLOCK_GRAIN))

    def begin_trip(self) -> None:
        """Tell the runtime of one trip in so many, if it wants to know."""
        function, ops = self.runtime_function("trip"), self.current
        trips = self._once("trips", self._no_trips)
        asks = self._once("asks", lambda: self.once.compare("ne", function, self.null()))
        count = ops.arithmetic("add", ops.load(trips, self.dialect.i64), self.constant(1))
        ops.store(count, trips)
        rest = ops.arithmetic("and", count, self.constant(TRIPS_UNSEEN))
        is_seen = ops.compare("eq", rest, self.constant(0))
        ask, trip = ops.blocks(2)
        ops.cond_br(ops.arithmetic("and", asks, is_seen), ask, trip)
        ops.enter(ask)
        ops.call(function, self.runtime)
        ops.br(trip)
        ops.enter(trip)

    def _no_trips(self) -> ir.Value:
        """The address of the number of trips so far."""
        trips = self.function.slot(1)
        self.once.store(self.constant(0), trips)
        return trips

    def read(self, address: ir.Value, type_: ir.Type) -> ir.Value:
        """The integer at an address."""
        return self.current.load(address, type_)
