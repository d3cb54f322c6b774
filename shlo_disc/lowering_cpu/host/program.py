# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a program of `disc_host` to one module of kernels and host functions in the LLVM dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shlo_disc.lowering.codegen import Routines
from shlo_disc.lowering.host_llvm.library import LibraryTable
from shlo_disc.lowering.host_llvm.plan import Words
from shlo_disc.lowering.host_llvm.program import HostProgram, LoweredProgram
from shlo_disc.lowering.host_llvm.run import RunWriter, Scope
from shlo_disc.lowering.kernel_module import kernel_module_of
from shlo_disc.lowering_cpu.host.block_kernels import build_clear, build_copy
from shlo_disc.lowering_cpu.host.entry import build_entry
from shlo_disc.lowering_cpu.host.run import CpuRunWriter
from shlo_disc.lowering_cpu.micro_kernels.gemm_format import FORMATS
from shlo_disc.lowering_cpu.micro_kernels.gemm_kernel import tile_routines
from shlo_disc.lowering_cpu.micro_kernels.winograd_kernel import SIGNATURES, transform_routines
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.dialect.host import (
    DYNAMIC_DIMS,
    RUNTIME_SIZE,
    AttentionCall,
    AttentionGradientCall,
    ConvolutionCall,
    Gemm,
    GemmTile,
    KernelUse,
    Packed,
    call_of,
)
from shlo_disc.shape_dialect.dialect.signature import Signature
from shlo_disc.shape_dialect.dtypes import BY_MLIR
from shlo_disc.shape_dialect.mlir import ir


def lower_host(module: ir.Module, signature: Signature, vector_bits: int) -> LoweredProgram:
    """The program that a module of the stage `host` is, which stays as it is. `vector_bits`: of a register."""
    with ir.Location.unknown():
        return _CpuProgram(module, signature, vector_bits).lowered()


class _CpuProgram(HostProgram):
    """The host program of one module."""

    def __init__(self, module: ir.Module, signature: Signature, vector_bits: int):
        super().__init__(module, signature)
        self.vector_bits = vector_bits
        self.library = LibraryTable()
        self.kernels = kernel_module_of(module)

    def writer(self, scope: Scope, words: Words, segment: int, command: int) -> RunWriter:
        """One that calls kernels and the runtime."""
        return CpuRunWriter(scope, words, segment, command, self.library.index)

    def append_callees(self) -> None:
        """Kernels; micro-kernels and the functions of Winograd's algorithm are declared."""
        declared = dict.fromkeys(self._tiles(), abi.TILE) | (SIGNATURES if self._may_transform() else {})
        for name, function in declared.items():
            self.target.body.append(self.dialect.declaration(name, self.dialect.parameters(function)))
        self._append_kernels()

    def modules(self) -> Mapping[str, ir.Module]:
        """One object."""
        return {"object": self.target}

    def routines(self) -> Sequence[Routines]:
        """Micro-kernels of products, and the functions of Winograd's algorithm."""
        transforms = [transform_routines(self.vector_bits // 32)] if self._may_transform() else []
        return [*map(tile_routines, self._tiles().values()), *transforms]

    def header(self) -> dict[str, Any]:
        """Library calls, and packed forms of right-hand sides."""
        calls = self.library.header
        return {
            "calls": calls,
            "blas": bool(calls) or bool(self._tiles()),
            "packs": [_pack_row(*pack) for pack in self.buffers.packs],
            "packed_only": self._packed_only(),
        }

    def _packed_only(self) -> list[int]:
        """The buffers that nothing reads where their packed form is used."""
        read = {place.index for place in map(self.buffers.place, _read(self.ops)) if not place.is_arena}
        return sorted({buffer for buffer, _ in self.buffers.packs} - read)

    # ---- kernels ----------------------------------------------------------------------------------------------------

    def _append_kernels(self) -> None:
        """The kernels and their entry points."""
        kernels = [op.operation.clone() for op in self.kernels.regions[0].blocks[0].operations]
        for kernel in kernels:
            self.target.body.append(kernel)
        for kernel in (op.opview for op in kernels if DYNAMIC_DIMS in op.attributes):
            self.target.body.append(build_entry(self.dialect, kernel))
            kernel.attributes["llvm.always_inline"] = ir.UnitAttr.get()
            del kernel.attributes[DYNAMIC_DIMS]
            if RUNTIME_SIZE in kernel.attributes:
                del kernel.attributes[RUNTIME_SIZE]
        used = {op.name for op in self.ops}
        for op, build in (("disc_host.copy", build_copy), ("disc_host.clear", build_clear)):
            if op in used:
                self.target.body.append(build(self.dialect))

    def _tiles(self) -> dict[str, GemmTile]:
        calls: list[Gemm | ConvolutionCall | AttentionCall | AttentionGradientCall]
        calls = [call_of(op) for op in self.ops if op.name in _TILED]
        return {call.tile.name: call.tile for call in calls}

    def _may_transform(self) -> bool:
        """Tells whether a convolution may use Winograd's algorithm."""
        calls: list[ConvolutionCall] = [call_of(op) for op in self.ops if op.name == "disc_host.convolution"]
        return any(call.problem.may_transform for call in calls)


_TILED = frozenset(f"disc_host.{name}" for name in ("gemm", "convolution", "attention", "attention_gradient"))


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
        elif op.name == "disc_host.launch":
            use: KernelUse = call_of(op)
            packed = list(op.operands)[len(op.operands) - len(use.panels) :]
            held = [p.operand for p, form in zip(use.panels, packed, strict=True) if _is_packed(form)]
            yield from (
                value for number, value in enumerate(op.operands) if number not in held and not _is_packed(value)
            )
        elif op.name.startswith("disc_host.") and op.name != "disc_host.packed":
            yield from op.operands


def _is_packed(value: ir.Value) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.name == "disc_host.packed"


def _pack_row(buffer: int, form: Packed) -> dict[str, Any]:
    return {
        "buffer": buffer,
        "dtype": BY_MLIR[form.element].name,
        "format": FORMATS.index(form.tile.format),
        "k": form.k,
        "n": form.n,
        "k_stride": form.k_stride,
        "n_stride": form.n_stride,
        "columns": form.tile.columns,
    }
