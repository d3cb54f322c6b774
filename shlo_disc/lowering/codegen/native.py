# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR text -> native object code, by llvmlite."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from shlo_disc.errors import CompilerError
from shlo_disc.runtime.elf_symbols import undefined_symbols

from . import unlocked
from .cpu_target import CpuTarget
from .power_scaling import with_inline_ldexp
from .single_lane_stores import without_single_lane_stores

# What generated code may leave to its loader: LLVM makes calls to these out of copies and fills.
ALLOWED_EXTERNALS = frozenset(("memcpy", "memmove", "memset", "memcmp"))

_DEFINITION = re.compile(r"^(define [^\n]*?)( \{)$", re.MULTILINE)


def compile_to_object(
    ir_text: str,
    target: CpuTarget,
    opt_level: int = 3,
    exported: Collection[str] | None = None,
    embedded: Mapping[str, bytes] | None = None,
    external: Collection[str] = (),
    is_optnone: bool = False,
) -> bytes:
    """Compile LLVM IR text into an ELF relocatable object: position independent, small code model.

    With `exported`, every other definition becomes internal, so that it can be inlined or dropped. `embedded`:
    constants to export besides, by name. `external`: functions that it calls and that it will be joined with
    (`objects.py`). `is_optnone`: only select instructions. Raises `CompilerError` when the IR does not parse or
    verify, lacks a name of `exported`, or needs a symbol beyond `external`, memcpy, memmove, memset and memcmp.
    """
    constants = embedded or {}
    ir_text = "\n".join([ir_text, *map(_constant_text, constants, constants.values())])
    if exported is not None:
        exported = {*exported, *constants}
    with _optimised(ir_text, target, opt_level, exported, external, is_optnone) as (module, machine):
        data = unlocked.emit_object(machine, module)
    missing = undefined_symbols(data) - ALLOWED_EXTERNALS - frozenset(external)
    if missing:
        raise CompilerError(f"codegen: generated code would call {', '.join(sorted(missing))}")
    return data


def _constant_text(name: str, data: bytes) -> str:
    text = "".join(f"\\{byte:02x}" for byte in data)
    return f'@{name} = constant [{len(data)} x i8] c"{text}"\n'


def code_text(
    view: str,
    ir_text: str,
    target: CpuTarget,
    opt_level: int = 3,
    exported: Collection[str] | None = None,
    external: Collection[str] = (),
    is_optnone: bool = False,
) -> str:
    """The text of what `compile_to_object` makes: "optimized-llvm", of which it selects instructions, or "asm"."""
    with _optimised(ir_text, target, opt_level, exported, external, is_optnone) as (module, machine):
        return str(module if view == "optimized-llvm" else machine.emit_assembly(module))


@cache
def initialise() -> None:
    """Register LLVM's targets, once.

    A masked load of which all lanes are known to be on becomes an ordinary one whose size LLVM 22 does not know, and
    its pass against blocked store forwarding, which wins nothing here, takes what it finds for the size, or aborts.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("shlo_disc", "-x86-disable-avoid-SFB")


def _target_machine(target: CpuTarget, opt_level: int) -> llvm.TargetMachine:
    """The machine that selects instructions."""
    initialise()
    try:
        found = llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise CompilerError(f"codegen: no LLVM target for {target.triple}: {error}") from error
    return found.create_target_machine(
        cpu=target.cpu, features=target.feature_string, opt=opt_level, reloc="pic", codemodel="small"
    )


@contextmanager
def parsed_module(ir_text: str) -> Iterator[tuple[llvm.ModuleRef, llvm.ContextRef]]:
    """A verified module, and the LLVM context that it alone is in. Raises `CompilerError` when LLVM rejects the text.

    LLVM crashes when a context dies before its modules, and the garbage collector keeps no order: both are closed here.
    """
    initialise()
    context = llvm.create_context()
    try:
        module = llvm.parse_assembly(ir_text, context)
        try:
            module.verify()
            yield module, context
        finally:
            module.close()
    except RuntimeError as error:
        if isinstance(error, CompilerError):
            raise
        raise CompilerError(f"codegen: LLVM rejects the module: {error}") from error
    finally:
        context.close()


@contextmanager
def _optimised(
    ir_text: str,
    target: CpuTarget,
    opt_level: int,
    exported: Collection[str] | None,
    external: Collection[str],
    is_optnone: bool,
) -> Iterator[tuple[llvm.ModuleRef, llvm.TargetMachine]]:
    """The optimised module with the target's attributes on every definition, and the machine to emit it for."""
    machine = _target_machine(target, opt_level)
    text = with_target_attributes(with_inline_ldexp(ir_text, target), target)
    with parsed_module(text) as (module, _):
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        _check_declarations(module, external)
        if exported is not None:
            internalize(module, exported)
            _leave_host_programs(module)
        if is_optnone:
            yield module, machine
            return
        optimise(module, machine, opt_level)
        rewritten = without_single_lane_stores(module)
        if rewritten is None:
            yield module, machine
            return
    with parsed_module(rewritten) as (module, _):
        yield module, machine


def with_target_attributes(ir_text: str, target: CpuTarget) -> str:
    """Put the target's features on every function definition of `ir_text`.

    Without `min-legal-vector-width` LLVM would split wide vectors in the name of clock frequency. Generated functions
    never unwind. Loops that happen to look like strlen must not become a call of it.
    """
    attributes = (
        f'nounwind "target-cpu"="{target.cpu}" "target-features"="{target.feature_string}" '
        f'"prefer-vector-width"="{target.vector_bits}" "min-legal-vector-width"="{target.vector_bits}" '
        '"no-builtin-strlen" "no-builtin-wcslen"'
    )
    return _DEFINITION.sub(rf"\1 {attributes}\2", ir_text)


def _check_declarations(module: llvm.ModuleRef, external: Collection[str]) -> None:
    """Declare what is `external` as near, so that calls need no table. Raises `CompilerError` for others."""
    for function in module.functions:
        name = function.name
        if not function.is_declaration or name in ALLOWED_EXTERNALS or name.startswith("llvm."):
            continue
        if name not in external:
            raise CompilerError(f"codegen: the module calls {name}, which it does not define")
        function.visibility = "hidden"


def internalize(module: llvm.ModuleRef, exported: Collection[str]) -> None:
    """Make every definition but those named in `exported` internal. Raises `CompilerError` when a name is absent."""
    definitions = {d.name: d for d in (*module.functions, *module.global_variables) if not d.is_declaration}
    absent = sorted(set(exported) - definitions.keys())
    if absent:
        raise CompilerError(f"codegen: the module does not define {', '.join(absent)}")
    for name, definition in definitions.items():
        if name not in exported and not name.startswith("llvm."):
            definition.linkage = "internal"


HOST_FUNCTIONS = ("disc_plan", "disc_run")
"""Prefixes of the names of host functions (`lowering/host_llvm`)."""

OPTIMISED_INSTRUCTIONS = 400
"""Limit for host functions with branches: loops of a few commands gain by inlining their kernels, long ones do not."""


def _leave_host_programs(module: llvm.ModuleRef) -> None:
    """Exempt host functions from optimisation that are without branches, or long.

    They are as fast as the loads and stores that they consist of. Optimising them takes LLVM longer than all kernels of
    a deep model, and wins a nanosecond a launch.
    """
    for function in module.functions:
        if function.is_declaration or not function.name.startswith(HOST_FUNCTIONS):
            continue
        if len(list(function.blocks)) == 1 or _is_long(function):
            function.add_function_attribute("noinline")
            function.add_function_attribute("optnone")


def _is_long(function: llvm.ValueRef) -> bool:
    """Tells whether a function has more than `OPTIMISED_INSTRUCTIONS`."""
    return sum(1 for block in function.blocks for _ in block.instructions) > OPTIMISED_INSTRUCTIONS


def optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, opt_level: int) -> None:
    """Run LLVM's default pipeline in place.

    Kernels come as explicit vector code without common subexpressions. LLVM's vectorisers would only add run-time
    checks and copies of the masked tails, so they stay off. What its levels above 1 add to that finds nothing to do: it
    makes no kernel faster, and takes a third of the time (decision 0049). Instructions are selected at `opt_level`.

    Kernels are put into their entry points first: LLVM's own inliner optimises both functions, the one that it inlines
    and the one that it is inlined in.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=min(opt_level, 1))
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    with llvm.create_pass_builder(machine, options) as builder:
        with _disposing(llvm.create_new_module_pass_manager()) as inlining:
            inlining.add_always_inliner_pass()
            unlocked.run_passes(inlining, module, builder)
        with _disposing(builder.getModulePassManager()) as passes:
            unlocked.run_passes(passes, module, builder)


@contextmanager
def _disposing(passes: llvm.ModulePassManager) -> Iterator[llvm.ModulePassManager]:
    """Gives the passes back to LLVM at the end: in llvmlite 0.50 `close` finds an empty `_dispose` before theirs."""
    try:
        yield passes
    finally:
        if type(passes)._dispose is llvm.ffi.ObjectRef._dispose:
            NewPassManager._dispose(passes)
            passes.detach()
        else:
            passes.close()
