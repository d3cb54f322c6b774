# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory with the code of the compiler's libraries, which is released after a compile.

LLVM and MLIR leave some 100 MB of their machine code in the memory of a process that may never compile again. These
pages are those of files, which nobody writes: Linux reads them again, from its cache of the files, when they are used.
That takes some 15 ms of the next compile, so it is worth it after `SECONDS` of compiling, at once or by and by.
"""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path

SECONDS = 0.25
"""The seconds of compiling after which the code is released: twenty times what that costs."""

LIBRARIES = ("libllvmlite", "libTorchMLIR")
"""The beginnings of the names of the files."""

_MADV_DONTNEED = 4
_LOCK = threading.Lock()


class _Compiles:
    """The seconds of compiling since code was released."""

    seconds = 0.0


def note_compile(seconds: float) -> None:
    """Count a compile that took `seconds`, and release the code if it was enough. Safe while others compile."""
    with _LOCK:
        _Compiles.seconds += seconds
        if _Compiles.seconds < SECONDS:
            return
        _Compiles.seconds = 0.0
    release_code()


def release_code() -> None:
    """Let Linux take the pages of code. Where it cannot be asked, they stay."""
    library = ctypes.CDLL(None)
    for begin, end in code_ranges():
        library.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MADV_DONTNEED)


def code_ranges(maps: Path = Path("/proc/self/maps")) -> list[tuple[int, int]]:
    """The addresses of the libraries' code, as mapped: from their files, to be read and run, but not written.

    Nothing else is in such a range, as in one that was written before it became read-only: relocations of addresses.
    """
    try:
        lines = maps.read_text().splitlines()
    except OSError:
        return []
    ranges = []
    for fields in (line.split(maxsplit=5) for line in lines):
        if len(fields) == 6 and fields[1] == "r-xp" and Path(fields[5]).name.startswith(LIBRARIES):
            begin, end = fields[0].split("-")
            ranges.append((int(begin, 16), int(end, 16)))
    return ranges


__all__ = ["code_ranges", "release_code", "note_compile"]
