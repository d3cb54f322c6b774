# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR text -> PTX, by llvmlite's NVPTX target with NVIDIA's libdevice linked in; PTX -> cubin, by ptxas."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from pathlib import Path

import llvmlite.binding as llvm

from shlo_disc.errors import CompilerError, DiscError

from .cuda_toolkit import find_libdevice, find_ptxas
from .native import initialise, internalize, optimise, parsed_module

TRIPLE = "nvptx64-nvidia-cuda"

_ARCH = re.compile(r"sm_(\d{2,3})a?")
_KERNEL = re.compile(r"^define\b[^\n@]*\bptx_kernel\b[^\n@]*@(\"[^\"]+\"|[-\w$.]+)\(", re.MULTILINE)
# NVPTX ends the process when it meets one of these: it has no instruction and no library for them.
_UNSELECTABLE = re.compile(
    r"llvm\.(exp|exp2|exp10|log|log2|log10|sin|cos|tan|sincos|asin|acos|atan|atan2|sinh|cosh|tanh|pow|powi|ldexp|frexp)\."
)
_ASSEMBLY_SECONDS = 600


def compile_to_ptx(ir_text: str, arch: str = "sm_80", opt_level: int = 3, flush_subnormals: bool = False) -> str:
    """Compile LLVM IR text whose kernels have the `ptx_kernel` calling convention into PTX for `arch` (`sm_80`, ...).

    Calls of `__nv_*` functions are resolved from libdevice and inlined; `flush_subnormals` selects its variants that
    flush. Everything but the kernels becomes internal. Raises `CompilerError` when the IR is rejected, has no kernel or
    calls what is not there, and `DiscError` when libdevice is needed and not installed.
    """
    kernels = [name.strip('"') for name in _KERNEL.findall(ir_text)]
    if not kernels:
        raise CompilerError("codegen: the module has no function of calling convention ptx_kernel")
    machine = _target_machine(arch, opt_level)
    with parsed_module(_with_reflect_flag(ir_text, flush_subnormals)) as (module, context):
        module.triple = TRIPLE
        module.data_layout = str(machine.target_data)
        _check_intrinsics(module)
        if any(f.is_declaration and f.name.startswith("__nv_") for f in module.functions):
            _link_libdevice(module, machine, context)
        _check_calls(module)
        internalize(module, kernels)
        optimise(module, machine, opt_level)
        return str(machine.emit_assembly(module))


@functools.cache
def data_layout() -> str:
    """LLVM's description of how data lie in the memory of GPUs, the same for all architectures."""
    return str(_target_machine("sm_80", 0).target_data)


def _target_machine(arch: str, opt_level: int) -> llvm.TargetMachine:
    match = _ARCH.fullmatch(arch)
    if not match or int(match[1]) < 70:
        raise CompilerError(f"codegen: {arch} is not an NVIDIA architecture from sm_70 on")
    initialise()
    # The oldest PTX version with the instructions: 8.0 needs a driver of CUDA 12.0, 8.7 one of CUDA 12.8.
    version = "+ptx80" if int(match[1]) <= 90 else "+ptx87"
    target = llvm.Target.from_triple(TRIPLE)
    return target.create_target_machine(cpu=arch, features=version, opt=opt_level, reloc="default", codemodel="default")


def _link_libdevice(module: llvm.ModuleRef, machine: llvm.TargetMachine, context: llvm.ContextRef) -> None:
    library = llvm.parse_bitcode(find_libdevice().read_bytes(), context)
    library.triple = TRIPLE
    library.data_layout = str(machine.target_data)
    module.link_in(library)


def _check_intrinsics(module: llvm.ModuleRef) -> None:
    """To be called before libdevice is linked: what that uses on its own account it uses where it can be selected."""
    for function in module.functions:
        if _UNSELECTABLE.match(function.name):
            raise CompilerError(f"codegen: {function.name} has no NVPTX code; expand it, or call libdevice")


def _check_calls(module: llvm.ModuleRef) -> None:
    for function in module.functions:
        if function.is_declaration and not function.name.startswith("llvm.") and function.name != "__nvvm_reflect":
            raise CompilerError(f"codegen: the module calls {function.name}, which neither it nor libdevice defines")


def _with_reflect_flag(ir_text: str, flush: bool) -> str:
    """Add the flag from which LLVM's nvvm-reflect pass answers libdevice's question about subnormals."""
    numbers = [int(n) for n in re.findall(r"^!(\d+) = ", ir_text, re.MULTILINE)]
    name = f"!{max(numbers, default=-1) + 1}"
    flag = f'{name} = !{{i32 4, !"nvvm-reflect-ftz", i32 {int(flush)}}}\n'
    listed = re.search(r"^!llvm\.module\.flags = !\{", ir_text, re.MULTILINE)
    if listed is None:
        return f"{ir_text}\n!llvm.module.flags = !{{{name}}}\n{flag}"
    separator = "" if ir_text[listed.end()] == "}" else ", "
    return f"{ir_text[: listed.end()]}{name}{separator}{ir_text[listed.end() :]}\n{flag}"


def assemble(ptx: str, arch: str = "sm_80") -> bytes:
    """Assemble PTX into a cubin with ptxas, run directly and not through a shell.

    Raises `CompilerError` with the assembler's messages when it refuses, `DiscError` when it is not installed.
    """
    if not _ARCH.fullmatch(arch):
        raise CompilerError(f"codegen: {arch} is not an NVIDIA architecture")
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        command = [str(find_ptxas()), f"-arch={arch}", str(source), "-o", str(result)]
        try:
            done = subprocess.run(  # noqa: S603  (a fixed program, no shell, a checked architecture)
                command, capture_output=True, text=True, timeout=_ASSEMBLY_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DiscError(f"ptxas did not run: {error}") from error
        if done.returncode != 0:
            raise CompilerError(f"codegen: ptxas refuses the code for {arch}: {done.stderr.strip()}")
        return result.read_bytes()
