# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin's library, as frameworks other than JAX load it."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def library() -> str:
    """The path of the shared object that exports GetPjrtApi."""
    found = importlib.util.find_spec("shlo_disc.runtime._native")
    if found is None or found.origin is None:
        raise ImportError("the native runtime is not built")
    return found.origin


def run_python(*arguments: str, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter on `arguments` with the tests importable; returns when it has ended.

    timeout: seconds.
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=timeout, env=env)


def program_names(*files: str) -> list[str]:
    """The functions of files beside this one that are a `case` or a `check`, read without an import of JAX."""
    nodes = (node for name in files for node in ast.parse(Path(__file__).with_name(name).read_text()).body)
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef))
    return [f.name for f in functions if any(getattr(d, "id", "") in ("case", "check") for d in f.decorator_list)]


def program_rows(request: pytest.FixtureRequest) -> list[str]:
    """The programs whose rows in the file of a fixture this session runs, so that no others need run."""
    rows = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    return [row.params["name"] for row in rows if row is not None and "name" in row.params]


def outcomes_of(module: str, devices: int) -> Any:
    """A fixture: the outcomes of the programs of a module whose rows a session runs; see `program_outcomes`."""

    @pytest.fixture(scope="module", name="outcomes")
    def outcomes(request: pytest.FixtureRequest) -> dict[str, str]:
        return program_outcomes(module, devices, programs=program_rows(request))

    return outcomes


def program_outcomes(
    module: str, devices: int, platform: str = "shlo_disc", programs: Sequence[str] = ()
) -> dict[str, str]:
    """The outcome of each program of a module, run on so many devices of the plugin and of XLA's CPU.

    programs: those to run, or else all; the outcome of the others is "left out".
    """
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}"
    done = run_python("-m", module, *programs, JAX_PLATFORMS=f"{platform},cpu", XLA_FLAGS=flags)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found
