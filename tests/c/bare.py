# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An environment with NumPy and this package, and nothing else: no JAX, MLIR, LLVM or SciPy."""

from __future__ import annotations

import shutil
import sys
import venv
from pathlib import Path

import numpy as np

import shlo_disc
from shlo_disc.runtime import _native


def make(folder: Path, native: Path | None = None) -> Path:
    """The environment's Python. `native`: another build of the native module."""
    venv.create(folder, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    numpy = Path(np.__file__).parent
    for name in ("numpy", "numpy.libs"):
        if (numpy.parent / name).exists():
            (packages / name).symlink_to(numpy.parent / name)
    ours, native = packages / "shlo_disc", native or Path(_native.__file__)
    shutil.copytree(Path(shlo_disc.__file__).parent, ours, ignore=shutil.ignore_patterns("native", "__pycache__"))
    shutil.copy(native, ours / "runtime" / native.name)
    shutil.copytree(Path(shlo_disc.get_library()).parent, ours / "lib", dirs_exist_ok=True)
    return folder / "bin" / "python"
