# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packages that an installation may lack."""

from __future__ import annotations

from importlib.util import find_spec

DEPENDENCIES = "jax torch-mlir llvmlite flatbuffers"
"""Packages that programs are compiled with, by their names in package indexes; JAX depends on NumPy and SciPy."""


def is_installed(package: str) -> bool:
    """Tells whether a top-level package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except ValueError:  # something stands in for it in `sys.modules`
        return False


__all__ = ["DEPENDENCIES", "is_installed"]
