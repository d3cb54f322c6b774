# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is left of a compile that failed inside: the program, how it was compiled, and one command to see it again."""

from __future__ import annotations

import json
import platform
import shlex
import tempfile
import traceback
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shlo_disc.options import Options
from shlo_disc.programs import TextProgram
from shlo_disc.schedule import Schedule

if TYPE_CHECKING:
    from shlo_disc.compilation import Compilation

_PACKAGES = ("shlo_disc", "jax", "jaxlib", "torch-mlir", "llvmlite", "numpy")
_SCHEDULE = "schedule.json"
_FLAGS = {"opt_level": "--opt-level", "max_fusions": "--max-fusions"}
_SWITCHES = {
    "symbolic": (True, "--symbolic"),
    "reuse": (False, "--no-reuse"),
    "deterministic": (True, "--deterministic"),
}


def write_reproducer(
    read: Any, options: Options, target: str, error: BaseException, compilation: Compilation | None = None
) -> Path:
    """Write the program that `shlo_disc.import.program` has read into a new directory, and return that.

    `program.*` is the program, `report.json` has the error, its traceback, the stages and their passes, the options and
    the versions of what took part, and `command.txt` the command that compiles it again. compilation: how far the
    compile went; `after-STAGE.mlir` is what the last stage before the one that failed has left, and `opt` goes on from.
    """
    from shlo_disc.passes import PIPELINES

    directory = Path(tempfile.mkdtemp(prefix="shlo_disc-failure-"))
    program = _write_program(read, directory)
    snapshots = {} if compilation is None else compilation.snapshots
    for stage in dict.fromkeys((*list(snapshots)[:1], *list(snapshots)[-1:])):
        (directory / f"after-{stage}.mlir").write_text(f"{snapshots[stage]}\n")
    if _is_read_otherwise(read) and snapshots:
        program = directory / f"after-{next(iter(snapshots))}.mlir"
    if options.schedule != Schedule():
        options.schedule.save(directory / _SCHEDULE)
    command = _command(program, options, target)
    report = {
        "error": f"{type(error).__name__}: {error}",
        "traceback": traceback.format_exception(error),
        "stage": None if compilation is None else compilation.stage,
        "pipeline": PIPELINES,
        "options": {f.name: str(getattr(options, f.name)) for f in fields(options)},
        "target": target,
        "versions": {name: _version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "machine": platform.machine(),
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
    path.write_bytes(read.data.encode(errors="surrogatepass") if isinstance(read.data, str) else read.data)
    return path


def _is_read_otherwise(read: Any) -> bool:
    """Whether the command line takes a program's file for another: one of ours, of tokens, of several devices."""
    return isinstance(read, TextProgram) and (read.is_own or read.has_tokens or read.participants != 1)


def _command(program: Path, options: Options, target: str) -> str:
    words = ["python", "-m", "shlo_disc", "opt", str(program), "--stage", "codegen", "--target", target, "--strict"]
    for name, flag in _FLAGS.items():
        value = getattr(options, name)
        if value is not None:
            words += [flag, str(value)]
    for name, (chosen, flag) in _SWITCHES.items():
        if getattr(options, name) is chosen:
            words.append(flag)
    if options.cpu != "host":
        words += ["--cpu", ",".join(options.cpus)]
    if options.hints:
        words += ["--hints", ",".join(f"{name}={value}" for name, value in options.hints.items())]
    if options.schedule != Schedule():
        words += ["--schedule", str(program.parent / _SCHEDULE)]
    return shlex.join(words)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
