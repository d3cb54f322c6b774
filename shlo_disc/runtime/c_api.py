# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the C API is: its header, and its library, which needs neither Python nor MLIR."""

from __future__ import annotations

from pathlib import Path

from . import _native


def get_include() -> str:
    """The folder of `shlo_disc.h`, for a C compiler's -I."""
    return str(Path(__file__).parents[1] / "include")


def get_library() -> str:
    """The path of `libshlo_disc_runtime.so`, for a linker. Raises FileNotFoundError where it was not built."""
    path = Path(_native.__file__).parents[1] / "lib" / "libshlo_disc_runtime.so"
    if not path.exists():
        raise FileNotFoundError(f"the library of the C API is not at {path}: install the package again")
    return str(path)
