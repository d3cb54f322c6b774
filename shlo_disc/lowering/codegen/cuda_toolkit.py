# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The locations of NVIDIA's toolkit: Python packages first, then CUDA_HOME or CUDA_PATH, then the PATH."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from shlo_disc.errors import DiscError

_LIBDEVICE = Path("nvvm", "libdevice", "libdevice.10.bc")


def find_libdevice() -> Path:
    """NVIDIA's library of device functions, as LLVM bitcode.

    Raises `DiscError` naming the package to install when there is none.
    """
    found = _libdevice_by_pathfinder() or _first(root / _LIBDEVICE for root in _roots())
    if found is None:
        raise DiscError("libdevice.10.bc is not found: `pip install nvidia-nvvm`, or set CUDA_HOME to a CUDA toolkit")
    return found


def find_ptxas() -> Path:
    """NVIDIA's PTX assembler. Raises `DiscError` naming the package to install when there is none."""
    found = _first(root / "bin" / "ptxas" for root in _roots())
    if found is None:
        raise DiscError("ptxas is not found: `pip install nvidia-cuda-nvcc`, or set CUDA_HOME to a CUDA toolkit")
    return found


def _libdevice_by_pathfinder() -> Path | None:
    try:
        from cuda.pathfinder import find_bitcode_lib
    except ImportError:
        return None
    try:
        found = find_bitcode_lib("device")
    except Exception:
        # Its errors have no common base; whatever they say, the search goes on elsewhere.
        return None
    return Path(found) if found and Path(found).is_file() else None


def _roots() -> Iterator[Path]:
    """Directories that may be a CUDA toolkit, the most specific first."""
    for packages in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        yield from sorted(Path(packages, "nvidia").glob("*"), reverse=True)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    for program in ("nvcc", "ptxas"):
        found = shutil.which(program)
        if found:
            for place in (Path(found).resolve(), Path(found)):
                yield place.parent.parent
                # A launcher beside a toolkit named by the usual link.
                yield place.parent.parent / "cuda"


def _first(candidates: Iterator[Path]) -> Path | None:
    return next((path for path in candidates if path.is_file()), None)
