# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin's library, as frameworks other than JAX load it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def library() -> str:
    """The path of the shared object that exports GetPjrtApi."""
    found = importlib.util.find_spec("shlo_disc.runtime._native")
    if found is None or found.origin is None:
        raise ImportError("the native runtime is not built")
    return found.origin


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter on `arguments` with the tests importable; returns when it has ended."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300, env=env)
