# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The remains of a compile that failed inside: the program, how it was compiled, and one command to see it again."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shlex
import stat
import tempfile
import time
import traceback
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shlo_disc.importer.programs import TextProgram
from shlo_disc.options import Options, Schedule, flags_of

if TYPE_CHECKING:
    from shlo_disc.driver.compilation import Compilation

KEPT = 32
"""Directories of one user's that stay, the newest ones."""

_PREFIX = "shlo_disc-failure-"
_REMOVED = "-removed"
_NAME = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}({_REMOVED})?")
_COMMAND = "command.txt"
_FILE = re.compile(r"(program\.mlir(bc)?|after-[a-z]+\.mlir|schedule\.json|report\.json|command\.txt)")
_ABANDONED = 3600.0
"""Seconds after which nobody writes to a directory any more."""

_PACKAGES = ("shlo_disc", "jax", "jaxlib", "torch-mlir", "llvmlite", "numpy")
_SCHEDULE = "schedule.json"


def write_reproducer(
    read: Any, options: Options, target: str, error: BaseException, compilation: Compilation | None = None
) -> Path:
    """Write the program that `shlo_disc.importer.program` has read into a new directory, and return that.

    `program.*` is the program, `report.json` has the error, its traceback, the stages and their passes, the options and
    the versions of what took part, and `command.txt` the command that compiles it again. compilation: how far the
    compile went; `after-STAGE.mlir` is what the last stage before the one that failed has left, and `opt` goes on from.
    """
    from shlo_disc.driver.pass_pipelines import PIPELINES

    directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
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
    (directory / _COMMAND).write_text(command + "\n")  # the last one: such a directory is complete
    remove_old_reproducers(directory.parent)
    return directory


def remove_old_reproducers(parent: Path, kept: int = KEPT) -> None:
    """Remove directories that this user's failed compiles have left in `parent`, but for the newest `kept`.

    What has anything else in it, is a link, is another user's or is being written is left alone. Other processes may
    remove the same ones.
    """
    found = _reproducers_in(parent)
    left = [name for _, name in found if name.endswith(_REMOVED)]
    whole = [name for _, name in sorted(found, reverse=True) if not name.endswith(_REMOVED)]
    for name in left + whole[kept:]:
        with contextlib.suppress(OSError):
            _remove(parent / name)


def _reproducers_in(parent: Path) -> list[tuple[int, str]]:
    """The time of the last write to each reproducer, in nanoseconds, and its name."""
    try:
        statuses = {name: _status_of(parent / name) for name in os.listdir(parent) if _NAME.fullmatch(name)}
    except OSError:
        return []
    return [(status.st_mtime_ns, name) for name, status in statuses.items() if status is not None and _is_ours(status)]


def _status_of(path: Path) -> os.stat_result | None:
    """None where another process has removed it."""
    try:
        return path.lstat()
    except OSError:
        return None


def _is_ours(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _remove(directory: Path) -> None:
    """Remove a reproducer, all of it or nothing, by its own descriptor: its name may have become another's.

    It is renamed first, so that no other process takes it for a new one once files of it are gone.
    """
    own = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(own)
        with os.scandir(own) as entries:
            is_file = {entry.name: not entry.is_dir(follow_symlinks=False) for entry in entries}
        is_complete = _COMMAND in is_file or time.time() - status.st_mtime > _ABANDONED
        has_others = not all(is_file.values()) or not all(map(_FILE.fullmatch, is_file))
        if not _is_ours(status) or not is_complete or has_others:
            return
        if not directory.name.endswith(_REMOVED):
            directory = directory.rename(f"{directory}{_REMOVED}")
        for name in is_file:
            os.unlink(name, dir_fd=own)
    finally:
        os.close(own)
    directory.rmdir()


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
    """Tells whether the command line takes a program's file for another: one of ours, of tokens, of several devices."""
    return isinstance(read, TextProgram) and (read.is_own or read.has_tokens or read.participants != 1)


def _command(program: Path, options: Options, target: str) -> str:
    words = ["python", "-m", "shlo_disc", "opt", str(program), "--stage", "codegen", "--target", target, "--strict"]
    words += flags_of(options)
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
