# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is left of a compile that failed inside: the program, how it was compiled, and one command to see it again."""

from __future__ import annotations

import json
import shlex
import tempfile
import traceback
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from shlo_disc.options import Options

_PACKAGES = ("shlo_disc", "jax", "jaxlib", "torch-mlir", "llvmlite", "numpy")
_FLAGS = {"opt_level": "--opt-level", "max_fusions": "--max-fusions"}
_SWITCHES = {
    "symbolic": (True, "--symbolic"),
    "reuse": (False, "--no-reuse"),
    "deterministic": (True, "--deterministic"),
}


def write_reproducer(read: Any, options: Options, target: str, error: BaseException) -> Path:
    """Write the program that `shlo_disc.import.program` has read into a new directory, and return that.

    `program.*` is the program, `report.json` has the error, its traceback, the options and the versions of what took
    part, and `command.txt` the command that compiles it again.
    """
    directory = Path(tempfile.mkdtemp(prefix="shlo_disc-failure-"))
    program = _write_program(read, directory)
    command = _command(program, options, target)
    report = {
        "error": f"{type(error).__name__}: {error}",
        "traceback": traceback.format_exception(error),
        "options": {f.name: str(getattr(options, f.name)) for f in fields(options)},
        "target": target,
        "versions": {name: _version(name) for name in _PACKAGES},
        "command": command,
    }
    (directory / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    (directory / "command.txt").write_text(command + "\n")
    return directory


def _write_program(read: Any, directory: Path) -> Path:
    """The program as a file that the command line takes: what was given, or the module that JAX exported."""
    exported = getattr(read, "exported", None)
    if exported is not None:
        path = directory / "program.mlir"
        path.write_text(exported.mlir_module())
        return path
    path = directory / ("program.mlir" if isinstance(read.data, str) else "program.mlirbc")
    path.write_bytes(read.data.encode() if isinstance(read.data, str) else read.data)
    return path


def _command(program: Path, options: Options, target: str) -> str:
    words = ["python", "-m", "shlo_disc", "opt", str(program), "--stage", "codegen", "--target", target, "--strict"]
    for name, flag in _FLAGS.items():
        value = getattr(options, name)
        if value is not None:
            words += [flag, str(value)]
    for name, (chosen, flag) in _SWITCHES.items():
        if getattr(options, name) is chosen:
            words.append(flag)
    if options.hints:
        words += ["--hints", ",".join(f"{name}={value}" for name, value in options.hints.items())]
    return shlex.join(words)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
