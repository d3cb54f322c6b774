# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries of C whose functions are Python's, for mocks of NVIDIA's."""

from __future__ import annotations

import atexit
import ctypes
import functools
import inspect
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

_ARGUMENTS = 24
"""Words that each function takes, which are more than any has; those that a caller does not give may be anything.

Six are in registers, and the others on the stack, as a structure of 128 bytes that is passed by value is.
"""

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * _ARGUMENTS)

_LOADED: list[object] = []
"""Objects that have to live as long as the libraries."""


class Refused(Exception):
    """A function of a library that gives an error."""

    def __init__(self, status: int):
        super().__init__(status)
        self.status = status


class MockFunctions:
    """Functions of a library, as methods that take words and raise `Refused`, or return a status if not None.

    fails: what the next call of a function is to give. mistakes: of the caller. calls: the functions called so far.
    """

    SUCCESS: ClassVar[int] = 0
    INVALID: ClassVar[int]
    """The status for what no caller may give."""
    INTERNAL: ClassVar[int]
    """The status where the mock itself fails."""

    def __init__(self) -> None:
        self.fails: dict[str, int] = {}
        self.mistakes: list[str] = []
        self.calls: list[str] = []

    def call(self, name: str, arguments: Sequence[int]) -> int:
        """Calls the library's function `name`, and returns its status."""
        self.calls.append(name)
        if name in self.fails:
            return self.fails.pop(name)
        try:
            function = getattr(self, name)
            return function(*arguments[: _taken(function, len(arguments))]) or self.SUCCESS
        except Refused as error:
            return error.status
        except Exception as error:
            self.mistakes.append(f"{name}: {error!r}")
            return self.INTERNAL

    def require(self, is_right: bool, what: str) -> None:
        """Keep a mistake of the caller's."""
        if not is_right:
            self.mistakes.append(what)
            raise Refused(self.INVALID)


def _taken(function: Any, most: int) -> int:
    """The number of words that a method takes, some of which may have been given already."""
    method, given = (function.func, len(function.args)) if isinstance(function, functools.partial) else (function, 0)
    code = method.__code__
    return most if code.co_flags & inspect.CO_VARARGS else code.co_argcount - 1 - given


def make_library(name: str, functions: Sequence[str], call: Callable[..., int], *, closed: int) -> Path:
    """Build and load a library, whose functions are `call(function, *words)`; it can be opened by its name, too.

    name: of the file, such as "libcuda.so.1". closed: what all return once Python ends, as of a library that is shut
    down: nobody gets into an interpreter that is no more.
    """
    library = build_library(name, functions, closed=closed)
    loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    targets = [_CALLBACK(functools.partial(call, function)) for function in functions]
    for function, target in zip(functions, targets, strict=True):
        ctypes.c_void_p.in_dll(loaded, f"{function}_target").value = ctypes.cast(target, ctypes.c_void_p).value
    _LOADED.extend([loaded, *targets])
    atexit.register(_close, loaded)
    return library


def build_library(name: str, functions: Sequence[str], *, closed: int) -> Path:
    """A library of some functions, which must not be called."""
    folder = Path(tempfile.mkdtemp(prefix=f"shlo_disc-{name.partition('.')[0]}-"))
    source, library = folder / "source.c", folder / name
    source.write_text(_source(functions, closed))
    command = ["cc", "-shared", "-fPIC", "-O1", f"-Wl,-soname,{name}", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library


def _source(functions: Sequence[str], closed: int) -> str:
    registers = ", ".join(f"long a{i}" for i in range(_ARGUMENTS))
    given = ", ".join(f"a{i}" for i in range(_ARGUMENTS))
    lines = [f"typedef long (*function)({', '.join(['long'] * _ARGUMENTS)});", "static int is_closed, inside;"]
    lines += ["void close_library(void) { __atomic_store_n(&is_closed, 1, __ATOMIC_SEQ_CST); }"]
    lines += ["int calls_inside(void) { return __atomic_load_n(&inside, __ATOMIC_SEQ_CST); }"]
    for name in functions:
        lines += [
            f"function {name}_target;",
            f"long {name}({registers}) {{",
            "  __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);",
            f"  long code = __atomic_load_n(&is_closed, __ATOMIC_SEQ_CST) ? {closed} : {name}_target({given});",
            "  __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);",
            "  return code;",
            "}",
        ]
    return "\n".join(lines)


def _close(library: ctypes.CDLL) -> None:
    library.close_library()
    while library.calls_inside():
        time.sleep(1e-3)
