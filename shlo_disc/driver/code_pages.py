# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory with the code of large libraries, which is released when it has done its work for a compile.

JAX leaves some 90 MB of its machine code in the memory of a process that has traced and exported a program, LLVM and
MLIR leave some 100 MB more, and the process may never compile again. These pages are those of files, which nobody
writes: Linux reads them again, from its cache of the files, when they are used. So each library's are released when the
next step of a compile begins, which lowers the most that a process has in memory, and what it holds afterwards. Using
the code again costs some 10 ms a library, so this is done only where enough time has passed to be worth it. Libraries
that have just been loaded leave 40 MB each of code that ran once.
"""

from __future__ import annotations

import ctypes
import threading
import time
from pathlib import Path

COMPILERS = ("libllvmlite", "libTorchMLIR")
FRONT_ENDS = ("libjax_common", "libtorch_cpu", "libtorch_python")
"""The beginnings of the names of files: of the compiler's libraries, and of those that programs are read with."""

SECONDS = 0.25
"""The seconds of compiling after which the compiler's code is released, at once or by and by."""

INTERVAL = 5.0
"""The seconds between two releases of the front ends' code, which those that trace many programs use again soon."""

_MADV_DONTNEED = 4
_LOCK = threading.Lock()


class _Counts:
    """The seconds of compiling since the compiler's code was released, and when the front ends' code was."""

    compiling = 0.0
    front_ends_released = -INTERVAL


def note_loading() -> None:
    """Release the code of all libraries, for they have been loaded: their initialisers are not used again."""
    release_code(COMPILERS + FRONT_ENDS)


def note_reading() -> None:
    """Release the code of front ends, for a program has been read; not within `INTERVAL` of the last release.

    Safe while other threads use these libraries, as all functions here are.
    """
    with _LOCK:
        now = time.monotonic()
        if now - _Counts.front_ends_released < INTERVAL:
            return
        _Counts.front_ends_released = now
    release_code(FRONT_ENDS)


def note_passes(seconds: float) -> None:
    """Release the code of the compiler's libraries before LLVM's work, if the passes took `seconds` that are enough."""
    with _LOCK:
        is_worth_it = _Counts.compiling + seconds >= SECONDS
    if is_worth_it:
        release_code(COMPILERS)


def note_compile(seconds: float) -> None:
    """Count a compile that took `seconds`, and release the code of the compiler's libraries if it was enough."""
    with _LOCK:
        _Counts.compiling += seconds
        if _Counts.compiling < SECONDS:
            return
        _Counts.compiling = 0.0
    release_code(COMPILERS)


def release_code(libraries: tuple[str, ...]) -> None:
    """Let Linux take the pages of code of libraries with these names. Where it cannot be asked, they stay."""
    library = ctypes.CDLL(None)
    for begin, end in code_ranges(libraries):
        library.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MADV_DONTNEED)


def code_ranges(libraries: tuple[str, ...], maps: Path = Path("/proc/self/maps")) -> list[tuple[int, int]]:
    """The addresses of the libraries' code, as mapped: from their files, to be read and run, but not written.

    Nothing else is in such a range, as in one that was written before it became read-only: relocations of addresses.
    """
    try:
        lines = maps.read_text().splitlines()
    except OSError:
        return []
    ranges = []
    for fields in (line.split(maxsplit=5) for line in lines):
        if len(fields) == 6 and fields[1] == "r-xp" and Path(fields[5]).name.startswith(libraries):
            begin, end = fields[0].split("-")
            ranges.append((int(begin, 16), int(end, 16)))
    return ranges


__all__ = ["code_ranges", "release_code", "note_compile", "note_loading", "note_passes", "note_reading"]
