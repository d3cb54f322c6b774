# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts that commands share: FILE, the options of a compile, and results as text or as one JSON document."""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from shlo_disc.errors import ArtifactError, DiscError, OptionError, ProgramError, reading
from shlo_disc.lowering.progress import Watch, is_terminal
from shlo_disc.options import CPU, CPUS, TARGETS, Options, Schedule, flagged, stated_cpu
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.artifact import MAGIC
from shlo_disc.runtime.words_of_torch import names_of_torch

if TYPE_CHECKING:
    from shlo_disc.driver.executable import Executable

STDIN = "-"

Command = Callable[[argparse.Namespace], int | None]
"""Runs a command; None is the exit status 0."""


# ---- the command line ---------------------------------------------------------------------------------------------


def add_command(commands: Any, name: str, run: Command, help: str, description: str | None = None) -> Any:
    """A command's parser. `description`: what its own help says above the options, as it stands."""
    command = commands.add_parser(
        name,
        help=help,
        description=(description or help).replace("%", "%%"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(command=run)
    return command


def add_file(command: argparse.ArgumentParser, *, artifacts: bool = False) -> None:
    """FILE: a program, or an artifact, too."""
    also = ", or what `compile` wrote" if artifacts else ""
    command.add_argument("file", metavar="FILE", help=f"a program (- for standard input){also}")


def add_program_or_artifact(command: argparse.ArgumentParser) -> None:
    """FILE, --json and the options of compiles, for commands that print facts of either."""
    add_file(command, artifacts=True)
    add_json(command)
    add_compile_options(command)


def add_json(command: argparse.ArgumentParser) -> None:
    """--json, for commands that print with `show`."""
    command.add_argument("--json", action="store_true", help="print one JSON document, also for an error")


def add_dims(command: argparse.ArgumentParser, help: str, *, often: bool = False, required: bool = False) -> None:
    """--dims, which gives a dict, or where it may be given often a list of them."""
    often_too = f"{help}; may be given often" if often else help
    kind: dict[str, Any] = {"action": "append", "required": required} if often else {}
    default: Any = [] if often else {}
    command.add_argument("--dims", type=pairs, default=default, metavar="b=2,s=16", help=often_too, **kind)


def add_compile_options(command: argparse.ArgumentParser) -> None:
    """Add the options that all commands take that compile; `options_of` reads them."""
    command.add_argument("--target", default=CPU, help=f"the target: {', '.join(TARGETS)} (default: {CPU})")
    for name, (flag, default) in flagged().items():
        if flag.metavar:
            command.add_argument(
                flag.name, dest=name, type=flag.type, default=default, metavar=flag.metavar, help=flag.help
            )
        else:
            chosen = not default
            command.add_argument(
                flag.name, dest=name, action="store_const", const=chosen, default=default, help=flag.help
            )
    command.add_argument("--schedule", metavar="FILE", help="the forms of the kernels, from `shlo_disc tune`")
    command.add_argument(
        "--cpu",
        type=levels,
        metavar="LEVEL",
        help=f"{', '.join(CPUS)}, or several for one file with code for each; of an artifact: the level to use",
    )
    command.add_argument("--hints", type=pairs, default={}, metavar="s=128", help="likely sizes of symbols")


def add_isolate(command: argparse.ArgumentParser) -> None:
    """--isolate and its limit, which `options_of` reads: for compiles in a process of their own."""
    command.add_argument("--isolate", action="store_true", help="compile in a separate process, which may crash")
    command.add_argument("--compile-seconds", type=float, metavar="S", help="with --isolate: time limit")


def pairs(text: str) -> dict[str, int]:
    """`b=2,s=16` as a dict."""
    parts = [part.partition("=") for part in text.split(",")]
    try:
        return {name.strip(): int(value) for name, _, value in parts}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form b=2,s=16") from None


def levels(text: str) -> str | tuple[str, ...]:
    """One level of processors, or several with commas between them; `Options` checks their names."""
    names = tuple(text.split(","))
    return names if len(names) > 1 else text


def options_of(arguments: argparse.Namespace) -> Options:
    """The options that `add_compile_options` has added. Raises OptionError."""
    return Options(
        hints=arguments.hints,
        cpu=stated_cpu() if arguments.cpu is None else arguments.cpu,
        isolate=getattr(arguments, "isolate", False),
        compile_seconds=getattr(arguments, "compile_seconds", None),
        schedule=Schedule.load(arguments.schedule) if arguments.schedule else Schedule(),
        **{name: getattr(arguments, name) for name in flagged()},
    )


# ---- files --------------------------------------------------------------------------------------------------------


def program_of(file: str) -> Path | bytes:
    """A FILE that is a program, as `shlo_disc.compile` takes it."""
    return sys.stdin.buffer.read() if file == STDIN else Path(file)


def source_of(file: str, command: str) -> Path | bytes:
    """A FILE for a command that needs the program itself. Raises ProgramError, with what reads it, for an artifact."""
    program = program_of(file)
    if isinstance(program, bytes) or not program.is_file():
        return program
    with program.open("rb") as start:
        if start.read(len(MAGIC)) != MAGIC:
            return program
    header = Artifact.open(program).header
    sizes = ",".join(f"{symbol['name']}=1" for symbol in header["symbols"])
    dims = f" --dims {sizes}" if sizes else ""
    tool, name = "python -m shlo_disc", shlex.quote(file)
    call = _in_python(command, sizes) if names_of_torch(header) else f"`{tool} {command} program.mlir{dims}`"
    raise ProgramError(
        f"the program {file!r} is a compiled artifact: {command} needs the program that it was compiled from, as in "
        f"{call}. Of {file}, `{tool} bench {name} --trust{dims}` measures calls, "
        f"`{tool} disasm {name}` prints the machine code, and `{tool} inspect {name}` its sizes, constants and sections"
    )


def _in_python(command: str, sizes: str) -> str:
    """The call of Python that does for a program of PyTorch what a command does for a file of its text."""
    values = sizes.replace(",", ", ")
    calls = {"explain": f"explain({values})", "report": f"report(dims=dict({values}))" if sizes else "report()"}
    return f"`run = shlo_disc.compile(exported)` and `run.{calls.get(command, f'{command}(...)')}` in Python"


def check_files(files: Sequence[str]) -> None:
    """Raises OptionError where standard input is named more than once."""
    if files.count(STDIN) > 1:
        raise OptionError("standard input is read once: name one of the files")


def opened(file: str, *, trust: bool = False) -> Artifact | Path | bytes:
    """A FILE that may be an artifact: that, or a program. Raises ArtifactError for a damaged one, and OSError."""
    program = program_of(file)
    if isinstance(program, bytes):
        return Artifact.deserialize(program, trust=trust) if program.startswith(MAGIC) else program
    with reading(program), program.open("rb") as start:
        is_artifact = start.read(len(MAGIC)) == MAGIC
    return Artifact.open(program, trust=trust) if is_artifact else program


def at_level(artifact: Artifact, arguments: argparse.Namespace) -> Artifact:
    """The code of an artifact for the level --cpu; without --cpu, the artifact. Raises ArtifactError, OptionError."""
    if isinstance(arguments.cpu, tuple):
        raise OptionError("for a compiled artifact, --cpu names one level of processors")
    return artifact if arguments.cpu is None else artifact.level(arguments.cpu, to_run=False)


def built(program: Path | bytes, arguments: argparse.Namespace) -> Executable:
    """A program compiled as the command line says."""
    from shlo_disc.api.compile import compile as build

    return build(program, target=arguments.target, options=options_of(arguments))


def runnable(file: str, arguments: argparse.Namespace) -> Artifact:
    """A FILE's artifact: itself where it is one, with --trust, or else the program compiled. Raises ArtifactError."""
    found = opened(file, trust=arguments.trust)
    artifact = at_level(found, arguments) if isinstance(found, Artifact) else built(found, arguments).artifact
    if not artifact.trusted:
        raise ArtifactError("the artifact holds native code from outside: pass --trust if you know who made it")
    return artifact


def add_trust(command: argparse.ArgumentParser) -> None:
    """--trust, which `runnable` reads."""
    command.add_argument("--trust", action="store_true", help="permit the native code of an artifact to run")


# ---- results ------------------------------------------------------------------------------------------------------


def show(arguments: argparse.Namespace, document: Any, lines: str | Iterable[str]) -> None:
    """Print a result: the JSON document where --json says so, else the lines."""
    if arguments.json:
        put(json.dumps(_finite(document), indent=2))
    else:
        put(lines if isinstance(lines, str) else "\n".join(lines))


def put(text: str, *, end: str = "\n") -> None:
    """Print a result, or a part of it.

    Where the reader of a pipe has left, as `| head` does, it is dropped, as is all that follows: what the command does
    besides, such as writing a file, and its exit status are as ever.
    """
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        _drop(sys.stdout)


def _drop(stream: TextIO) -> None:
    """Have what is written to a stream, and what it has kept so far, go nowhere."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def _finite(value: Any) -> Any:
    """A document whose numbers are JSON's: null for infinities and what is no number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def error_document(error: Exception) -> dict[str, Any]:
    """The document that --json prints of an error: its class, its code, "" where it has none, and its text."""
    return {"error": {"kind": type(error).__name__, "code": error_code(error), "message": error_text(error)}}


def error_code(error: Exception) -> str:
    """The code that `python -m shlo_disc why` explains; "" for errors of the system."""
    return error.code if isinstance(error, DiscError) else ""


def error_text(error: Exception) -> str:
    """An error in words. That of a file begins with its name."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return error.message if isinstance(error, DiscError) else str(error)


def say(text: str, *, end: str = "\n") -> None:
    """Tell on standard error what is going on, or nobody where that cannot be written."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except OSError:
        _drop(sys.stderr)


def add_progress(command: argparse.ArgumentParser) -> None:
    """--progress, which `progress` reads."""
    command.add_argument("--progress", action="store_true", help="report progress on stderr, terminal or not")


def wants_progress(arguments: argparse.Namespace) -> bool:
    """Tells whether somebody looks at standard error while a command works."""
    return bool(arguments.progress) or is_terminal(sys.stderr)


def stage_progress(arguments: argparse.Namespace) -> Watch | None:
    """For `progress.watching`: a line on standard error for each stage, with its time when it has ended."""

    def watch(stage: str, seconds: float | None) -> None:
        say(f"{stage:<10}" if seconds is None else f"{seconds:8.2f} s\n", end="")

    return watch if wants_progress(arguments) else None


def read_arrays(path: str) -> list[Any]:
    """The arrays of a .npz file, in its order. Raises OptionError where it is none, and OSError."""
    import numpy as np

    try:
        with reading(path, "numpy.savez writes such files"), np.load(path, allow_pickle=False) as archive:
            return [archive[name] for name in archive.files]
    except (AttributeError, EOFError, ValueError) as error:
        raise OptionError(f"{path}: not an archive of arrays: {error}") from None
