# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packages that an installation may lack."""

from __future__ import annotations

from importlib.util import find_spec


def is_installed(package: str) -> bool:
    """Tells whether a top-level package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except ValueError:  # something stands in for it in `sys.modules`
        return False


__all__ = ["is_installed"]
