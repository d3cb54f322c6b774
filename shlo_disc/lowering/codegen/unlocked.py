# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two calls of LLVM that take long, without llvmlite's lock: modules of different contexts are compiled at a time.

llvmlite holds one lock of the process in each call. LLVM needs none between contexts (LLVM Programmer's Manual,
"Threads and LLVM"), and each module here is alone in its own. Where llvmlite does not show the function behind its
lock, the lock is held: slower, and as right.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import string_at
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi


def run_passes(passes: llvm.ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """Run passes on a module in place."""
    _behind_lock("LLVMPY_RunNewModulePassManager")(passes, module, builder)


def emit_object(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    """The object file of a module. Raises RuntimeError when LLVM cannot emit it."""
    with ffi.OutputString() as message:
        buffer = _behind_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, message)
        if not buffer:
            raise RuntimeError(str(message))
    try:
        return string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def _behind_lock(name: str) -> Callable[..., Any]:
    function = getattr(ffi.lib, name)
    found: Callable[..., Any] = getattr(function, "_cfn", function)
    return found


def at_a_time(tasks: Sequence[Callable[[], bytes]], sizes: Sequence[int]) -> list[bytes]:
    """The results of the tasks in their order, made by as many threads as there are processors for this process.

    sizes: about how long each task takes, in any unit. The longest begins first, so that none is left over at the end
    (Graham, 1969). Functions that run at the interpreter's exit get no threads, and do the tasks themselves.
    """
    threads = min(len(tasks), len(os.sched_getaffinity(0)))
    if threads <= 1:
        return [task() for task in tasks]
    order = sorted(range(len(tasks)), key=lambda number: -sizes[number])
    with ThreadPoolExecutor(threads, thread_name_prefix="codegen") as pool:
        try:
            results = {number: pool.submit(tasks[number]) for number in order}
        except RuntimeError:
            return [task() for task in tasks]
        return [results[number].result() for number in range(len(tasks))]
