# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The host program on GPUs: the processor plans sizes and gives the work, the GPU does it later.

Buffers are the GPU's, so the host functions never follow an address of theirs: what a loop, a branch or a size needs to
know of data is asked of the runtime, which waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shlo_disc.lowering.host_llvm.blocks import kernel_arguments
from shlo_disc.lowering.host_llvm.library import LibraryTable, library_words
from shlo_disc.lowering.host_llvm.plan import Words
from shlo_disc.lowering.host_llvm.program import HostProgram, LoweredProgram
from shlo_disc.lowering.host_llvm.run import RunWriter, Scope
from shlo_disc.lowering_gpu.hopper_launch import BY_MAPS, header_of, name_by_maps
from shlo_disc.lowering_gpu.nvvm import device_module
from shlo_disc.lowering_gpu.product_block import product_block
from shlo_disc.shape_dialect.dialect.host import FUSION, DeviceProduct, KernelUse, LibraryCall, call_of
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.locations import source_line


def lower_host(module: ir.Module, signature: Signature) -> LoweredProgram:
    """The program that a module of the stage `host` is, which stays as it is."""
    with ir.Location.unknown():
        return _GpuProgram(module, signature).lowered()


Key = tuple[str, str]
"""A command's entry in the table of kernels: the kernel and, for a product, its fusion, which errors name."""


def _uses(op: ir.Operation) -> dict[Key, KernelUse]:
    """The kernels of a command: that of a launch, or that of a product and the one of its epilogue."""
    if op.name == "disc_host.launch":
        use: KernelUse = call_of(op)
        return {(use.kernel, ""): use}
    product: DeviceProduct = call_of(op)
    found: dict[Key, KernelUse] = {(product.kernel.kernel, ir.StringAttr(op.attributes[FUSION]).value): product.kernel}
    if product.epilogue is not None:
        found[product.epilogue.kernel.kernel, ""] = product.epilogue.kernel
    return found


def _row(key: Key, use: KernelUse, op: ir.Operation, by_maps: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The artifact header's row for a kernel of a command. `by_maps`: of those that a command may have besides, by
    name; where maps are made from words, another entry, which runtimes of before leave alone."""
    name, fusion = key
    row = {"name": name, "threads": use.threads, "where": source_line(op.location)}
    found = by_maps.get(name_by_maps(name))
    if found is not None:
        row["by_maps_of_words" if "operands" in found else "by_maps"] = found
    return {**row, "fusion": fusion} if fusion else row


def _rows_by_maps(device: ir.Module) -> dict[str, dict[str, Any]]:
    """The header's rows for the kernels that take tensor maps, by name."""
    functions = [op for holder in device.body.operations for op in holder.regions[0].blocks[0].operations]
    found = {}
    for function in (f for f in functions if BY_MAPS in f.attributes):
        name = ir.StringAttr(function.attributes["sym_name"]).value
        told = ir.DictAttr(function.attributes[BY_MAPS])
        found[name] = {"name": name, **{told[i].name: header_of(told[i].attr) for i in range(len(told))}}
    return found


class _GpuProgram(HostProgram):
    """The host program of one module."""

    def __init__(self, module: ir.Module, signature: Signature):
        super().__init__(module, signature)
        self.device = device_module(module)
        self.kernels: dict[Key, dict[str, Any]] = {}
        self.library = LibraryTable()
        by_maps = _rows_by_maps(self.device)
        for op in self.ops:
            if op.name in ("disc_host.launch", "disc_host.product"):
                for key, use in _uses(op).items():
                    self.kernels.setdefault(key, _row(key, use, op, by_maps))

    def writer(self, scope: Scope, words: Words, segment: int, command: int) -> RunWriter:
        """One that gives work to the runtime."""
        numbers = {key: number for number, key in enumerate(self.kernels)}
        return GpuRunWriter(scope, words, segment, command, numbers, self.library)

    def modules(self) -> Mapping[str, ir.Module]:
        """The GPU's code, and the processor's."""
        return {"ptx": self.device, "object": self.target}

    def header(self) -> dict[str, Any]:
        """The kernels, in the order of their numbers."""
        return {
            "kernels": list(self.kernels.values()),
            "calls": self.library.header,
            "blas": False,
            "packs": [],
            "packed_only": [],
        }


class GpuRunWriter(RunWriter):
    """Writes `disc_run` of a segment. `kernels`: the number of each. `library`: the library calls of the program."""

    def __init__(
        self,
        scope: Scope,
        words: Words,
        segment: int,
        command: int,
        kernels: Mapping[Key, int],
        library: LibraryTable,
    ):
        super().__init__(scope, words, segment, command)
        self.library_table = library
        self.kernels = kernels

    def commands(self) -> dict[str, Callable[[ir.Operation], None]]:
        """All commands, each a call of the runtime."""
        return {
            "disc_host.launch": self.launch,
            "disc_host.product": self.product,
            "disc_host.library": self.library,
            "disc_host.copy": self.copy,
            "disc_host.clear": self.clear,
        }

    def launch(self, op: ir.Operation) -> None:
        """A kernel."""
        use: KernelUse = call_of(op)
        arguments = kernel_arguments(use, range(len(op.operands)))
        number, block = self.constant(self._numbers(op)[0]), self.filled(lambda: arguments, op)
        self.runtime_call("enqueue", number, block, self.constant(len(arguments)), self.size(use.items))

    def product(self, op: ir.Operation) -> None:
        """A matrix product."""
        numbers = self._numbers(op)
        self.runtime_call("product", self.filled(lambda: product_block(call_of(op), *numbers), op, *numbers))

    def _numbers(self, op: ir.Operation) -> list[int]:
        """Those of the kernels of a command."""
        return [self.kernels[key] for key in _uses(op)]

    def library(self, op: ir.Operation) -> None:
        """A collective."""
        call: LibraryCall = call_of(op)
        number = self.library_table.index(call, source_line(op.location))
        self.runtime_call("call", self.constant(number), self.filled(lambda: library_words(call), op))

    def copy(self, op: ir.Operation) -> None:
        """Bytes from one buffer to another."""
        source, target = map(self.pointer, op.operands)
        self.runtime_call("copy", target, source, self.size(call_of(op).bytes))

    def clear(self, op: ir.Operation) -> None:
        """Zeros."""
        self.runtime_call("clear", self.pointer(op.operands[0]), self.size(call_of(op).bytes))

    def read(self, address: ir.Value, type_: ir.Type) -> ir.Value:
        """The integer at an address of the GPU's, once the work that was given before is done."""
        slot = self._once("read", lambda: self.function.slot(1))
        self.runtime_call("read", address, self.constant(ir.IntegerType(type_).width // 8), slot)
        return self.current.load(slot, type_)
