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
from shlo_disc.lowering_cpu.host.blocks import attention_block, convolution_block, entry_name, gemm_block
from shlo_disc.runtime import abi
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
            "disc_host.library": self.library,
            "disc_host.copy": self.copy,
            "disc_host.clear": self.clear,
        }

    def launch(self, op: ir.Operation) -> None:
        """A kernel."""
        use: KernelUse = call_of(op)
        block = self.filled(lambda: kernel_arguments(use, range(len(op.operands)), Runtime()), op)
        self._launch(use.kernel, block, use.items, use.grain)

    def _launch(self, name: str, block: str, items: Expr, grain: Expr) -> None:
        if items.constant == 1:
            types = f": ({abi.KERNEL.llvm_parameters}) -> ()"
            operands = f"{block}, {self.constant(0)}, {self.constant(1)}"
            self.lines.append(f"  llvm.call @{entry_name(name)}({operands}) {types}")
            return
        operands = f"{self.symbol(entry_name(name))}, {block}, {self.size(items)}, {self.size(grain)}"
        self.runtime_call("launch", operands)

    def gemm(self, op: ir.Operation) -> None:
        """Matrix products."""
        self.runtime_call("dot", self.filled(lambda: gemm_block(call_of(op)), op))

    def convolution(self, op: ir.Operation) -> None:
        """A convolution."""
        self.runtime_call("convolution", self.filled(lambda: convolution_block(call_of(op)), op))

    def attention(self, op: ir.Operation) -> None:
        """An attention."""
        self.runtime_call("attention", self.filled(lambda: attention_block(call_of(op)), op))

    def library(self, op: ir.Operation) -> None:
        """A library function."""
        call: LibraryCall = call_of(op)
        block = self.filled(lambda: library_words(call), op)
        self.runtime_call("call", f"{self.constant(self.library_index(call))}, {block}")

    def copy(self, op: ir.Operation) -> None:
        """Bytes from one buffer to another."""
        self._blocks(COPY, [Buffer(1), call_of(op).bytes, Buffer(0)], op)

    def clear(self, op: ir.Operation) -> None:
        """Zeros."""
        self._blocks(CLEAR, [Buffer(0), call_of(op).bytes], op)

    def _blocks(self, name: str, entries: Sequence[Entry], op: ir.Operation) -> None:
        call: Bytes = call_of(op)
        self._launch(name, self.filled(lambda: entries, op), ceildiv(call.bytes, BLOCK_BYTES), Expr.const(BLOCK_GRAIN))

    def begin_trip(self, number: int) -> None:
        """Tell the runtime of one trip in so many, if it wants to know."""
        function, types = self.runtime_function("trip"), abi.RUNTIME_FUNCTIONS["trip"].llvm_parameters
        if "%trips" not in self.words_of:
            self.words_of["%trips"] = 1
            self.once.append(f"  llvm.store {self.constant(0)}, %trips : i64, !llvm.ptr")
        asks = self._once("asks", f'llvm.icmp "ne" {function}, {self.null()} : !llvm.ptr')
        count = self.emit(f"llvm.add {self.emit('llvm.load %trips : !llvm.ptr -> i64')}, {self.constant(1)} : i64")
        self.lines.append(f"  llvm.store {count}, %trips : i64, !llvm.ptr")
        rest = self.emit(f"llvm.and {count}, {self.constant(TRIPS_UNSEEN)} : i64")
        is_seen = self.emit(f'llvm.icmp "eq" {rest}, {self.constant(0)} : i64')
        is_told = self.emit(f"llvm.and {asks}, {is_seen} : i1")
        self.lines += [
            f"  llvm.cond_br {is_told}, ^ask{number}, ^trip{number}",
            f"^ask{number}:",
            f"  llvm.call {function}(%rt) : !llvm.ptr, ({types}) -> ()",
            f"  llvm.br ^trip{number}",
            f"^trip{number}:",
        ]

    def read(self, address: str, width: int) -> str:
        """The integer at an address."""
        return self.emit(f"llvm.load {address} : !llvm.ptr -> i{width}")
