# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of a program for those who want to know: what each runs, and the choices left to run time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.host import (
    FUSION,
    GUARDS,
    AttentionCall,
    AttentionGradientCall,
    ConvolutionCall,
    DeviceProduct,
    Gemm,
    GemmProduct,
    Guard,
    KernelUse,
    call_of,
)
from shlo_disc.shape_dialect.dialect.records import codec_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation

COPY = "copy_bytes"
"""The kernel of a `disc_host.copy`: its words are the target, the number of bytes and the source."""

CLEAR = "clear_bytes"
"""The kernel of a `disc_host.clear`: its words are the target and the number of bytes."""

_GUARDS = codec_of(tuple[Guard, ...])


@dataclass(frozen=True)
class Launched:
    """A command: its name, the kind of its fusion and the fusion's name, which a copy lacks.

    functions: the kernels and micro-kernels of the program that it runs, none where a library or the runtime does it.
    tile: the one that is a micro-kernel.
    `bytes` are those that a copy reads and writes, or clearing writes. `is_direct`: the program calls the kernel by
    itself, without the runtime. `use`: the kernel of a launch, or that of a product on a device.
    """

    name: str
    kind: str
    fusion: str = ""
    guards: tuple[Guard, ...] = ()
    bytes: Expr | None = None
    is_direct: bool = False
    use: KernelUse | None = None
    functions: tuple[str, ...] = ()
    tile: str = ""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The functions that a schedule can name."""
        return tuple(name for name in self.functions if name != self.tile)


def launches_in(module: ir.Operation) -> list[Launched]:
    """The commands of a module of the stage `host`, in their order; those of a loop or branch stand there once."""
    functions = [op for op in module.regions[0].blocks[0].operations if op.operation.name == "func.func"]
    return [found for function in functions for found in _launches(function.operation)]


def _launches(op: ir.Operation) -> Iterator[Launched]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                command = _COMMANDS.get(inner.operation.name)
                if command is not None:
                    yield command(inner.operation)
                yield from _launches(inner.operation)


def _launch(op: ir.Operation) -> Launched:
    use: KernelUse = call_of(op)
    kind, guards = ir.StringAttr(op.attributes["kind"]).value, _guards(op)
    is_direct = use.items.constant == 1 and not use.threads
    if not is_direct and not use.threads:
        large = (Relation.gt(use.items, use.grain),)
        guards = (*guards, Guard("all threads", "one thread", large, of_size=True))
    return Launched(use.kernel, kind, _fusion(op), guards, is_direct=is_direct, use=use, functions=(use.kernel,))


def _gemm(op: ir.Operation) -> Launched:
    call: Gemm = call_of(op)
    functions = _functions(call.tile.name, call.products)
    return Launched("+".join(functions), "dot", _fusion(op), _guards(op), functions=functions, tile=call.tile.name)


def _product(op: ir.Operation) -> Launched:
    call: DeviceProduct = call_of(op)
    epilogue = () if call.epilogue is None else (call.epilogue.kernel.kernel,)
    functions = (call.kernel.kernel, *epilogue)
    return Launched(call.kernel.kernel, "dot", _fusion(op), _guards(op), use=call.kernel, functions=functions)


def _convolution(op: ir.Operation) -> Launched:
    call: ConvolutionCall = call_of(op)
    functions = _functions(call.tile.name, (call.gemm,))
    name, tile = "+".join(functions), call.tile.name
    return Launched(name, "convolution", _fusion(op), _guards(op), functions=functions, tile=tile)


def _functions(tile: str, products: tuple[GemmProduct, ...]) -> tuple[str, ...]:
    epilogues = [p.epilogue.use.kernel for p in products if p.epilogue is not None]
    return tuple(dict.fromkeys([tile, *epilogues]))


def _attention(op: ir.Operation) -> Launched:
    call: AttentionCall = call_of(op)
    name, tile = f"attention_{call.rows.kernel}", call.tile.name
    functions = (call.rows.kernel, tile)
    return Launched(name, "attention", _fusion(op), _guards(op), functions=functions, tile=tile)


def _attention_gradient(op: ir.Operation) -> Launched:
    call: AttentionGradientCall = call_of(op)
    name, tile = f"attention_gradient_{call.gradient_rows.kernel}", call.tile.name
    functions = (call.rows.kernel, call.gradient_rows.kernel, tile)
    return Launched(name, "attention_gradient", _fusion(op), _guards(op), functions=functions, tile=tile)


def _library(op: ir.Operation) -> Launched:
    return Launched(call_of(op).target, "library", _fusion(op))


def _copy(op: ir.Operation) -> Launched:
    return Launched(COPY, "copy", bytes=2 * call_of(op).bytes)


def _clear(op: ir.Operation) -> Launched:
    return Launched(CLEAR, "clear", bytes=call_of(op).bytes)


_COMMANDS = {
    "disc_host.launch": _launch,
    "disc_host.gemm": _gemm,
    "disc_host.product": _product,
    "disc_host.convolution": _convolution,
    "disc_host.attention": _attention,
    "disc_host.attention_gradient": _attention_gradient,
    "disc_host.library": _library,
    "disc_host.copy": _copy,
    "disc_host.clear": _clear,
}


def is_command(op: ir.Operation) -> bool:
    """Tells whether an op is one that the runtime counts and times."""
    return op.name in _COMMANDS


def _fusion(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes[FUSION]).value


def _guards(op: ir.Operation) -> tuple[Guard, ...]:
    guards: tuple[Guard, ...] = _GUARDS.read(op.attributes[GUARDS]) if GUARDS in op.attributes else ()
    return guards
