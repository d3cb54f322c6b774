# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling in a process of its own, for `Options(isolate=True)`.

A program goes there as data (`messages.py`), an artifact or an error comes back. What ends the process is an error.
"""

from __future__ import annotations

from .client import Apart, compile_apart

__all__ = ["Apart", "compile_apart"]
