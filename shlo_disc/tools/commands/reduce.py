# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc reduce FILE`: find a small program that fails like FILE.

    reduce big.mlir -o small.mlir                      any failure
    reduce big.mlir --dims b=2,s=16 --check wrong      results that differ from the plain program's at these sizes
    reduce big.mlir --test './fails.sh'                a command that exits with 0 if a program fails

A failure is an internal error of the compiler (error), a result that differs from that of the program without fusion
and reuse of buffers (wrong), or a process that ends by a signal or after --time-limit (crash). A smaller program fails
alike if the error's type and message, or the signal, are the same. Each program is tried in a separate process.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shlo_disc.errors import OptionError
from shlo_disc.tools.commands.common import (
    add_command,
    add_compile_options,
    add_dims,
    add_file,
    add_json,
    options_of,
    program_of,
    say,
    show,
)

if TYPE_CHECKING:
    from shlo_disc.tools.reduce.search import Reduced


def add_reduce(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "reduce", _reduce, "shrink a failing program to a small one", __doc__)
    add_file(command)
    add_dims(command, "a shape", often=True)
    command.add_argument("--check", choices=("wrong", "error", "crash"), help="the only failure that counts")
    command.add_argument("--test", metavar="CMD", help="gets a file as last argument; exits with 0 if it still fails")
    command.add_argument("--seed", type=int, default=0, help="seed of the arguments")
    command.add_argument("--seconds", type=float, metavar="S", help="time limit of the search; keeps the best")
    command.add_argument(
        "--time-limit", type=float, default=60.0, metavar="S", help="time limit of a program (default: 60)"
    )
    command.add_argument("-o", "--output", metavar="FILE", help="the file to write, instead of standard output")
    add_json(command)
    add_compile_options(command)


def _reduce(arguments: argparse.Namespace) -> None:
    from shlo_disc.tools.reduce.failing import Command, CompilerFailure, Failing
    from shlo_disc.tools.reduce.search import reduce

    if arguments.test is not None and arguments.check is not None:
        raise OptionError("--test and --check are two ways to say what a failure is; use one")
    if arguments.time_limit <= 0 or (arguments.seconds is not None and arguments.seconds <= 0):
        raise OptionError("--seconds and --time-limit must be positive")
    failing: Failing
    if arguments.test is not None:
        failing = Command(shlex.split(arguments.test), arguments.time_limit)
    else:
        failing = CompilerFailure(
            options_of(arguments),
            target=arguments.target,
            dims=arguments.dims,
            kind=arguments.check,
            seed=arguments.seed,
            limit=arguments.time_limit,
        )

    sizes = [size for dims in arguments.dims for size in dims.values()]
    found = reduce(program_of(arguments.file), failing, sizes=sizes, seconds=arguments.seconds, say=say)
    _write(found, arguments)


def _write(found: Reduced, arguments: argparse.Namespace) -> None:
    text = f"// {found.failure}\n{found.text}"
    if arguments.output:
        Path(arguments.output).write_text(text)
    if arguments.json or not arguments.output:
        show(arguments, _json(found, arguments.file, arguments.output, text), text.removesuffix("\n"))


def _json(found: Reduced, file: str, output: str | None, text: str) -> dict[str, Any]:
    failure = found.failure
    return {
        "file": file,
        "output": output,
        "failure": {"kind": failure.kind, "text": failure.text, "dims": dict(failure.dims)},
        "ops": found.ops,
        "ops_before": found.ops_before,
        "trials": found.trials,
        "seconds": round(found.seconds, 3),
        "complete": found.is_complete,
        "program": text,
    }
