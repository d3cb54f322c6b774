# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The location of the C API: its header, and its libraries, which need neither Python nor MLIR."""

from __future__ import annotations

from pathlib import Path

from . import _native


def get_include() -> str:
    """The folder of `shlo_disc.h`, for a C compiler's -I."""
    return str(Path(__file__).parent / "include")


def get_cmake_dir() -> str:
    """The folder of the CMake package, whose target is `shlo_disc::runtime`, for -Dshlo_disc_DIR."""
    return str(Path(__file__).parent / "cmake")


def get_library() -> str:
    """The path of `libshlo_disc_runtime.so`, for a linker. Raises FileNotFoundError where it was not built."""
    return _built("libshlo_disc_runtime.so")


def get_archive() -> str:
    """The same as an archive, which becomes part of another library. Raises FileNotFoundError as well."""
    return _built("libshlo_disc_runtime.a")


def get_pjrt_plugin() -> str:
    """The path of `libshlo_disc_pjrt.so`, a PJRT plugin without a compiler, which loads serialized executables.

    Raises FileNotFoundError where it was not built.
    """
    return _built("libshlo_disc_pjrt.so")


def get_triton_backends() -> str:
    """The folder of the backend for Triton Inference Server, for its `--backend-directory`.

    Raises FileNotFoundError where the backend was not built.
    """
    return str(Path(_built("triton/shlo_disc/libtriton_shlo_disc.so")).parents[1])


def _built(name: str) -> str:
    path = Path(_native.__file__).parents[1] / "lib" / name
    if not path.exists():
        raise FileNotFoundError(f"the library is not at {path}: install the package again")
    return str(path)
