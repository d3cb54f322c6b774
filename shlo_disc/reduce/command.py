# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc reduce FILE`: a small program that fails as FILE does.

    reduce big.mlir -o small.mlir                      whatever the failure is
    reduce big.mlir --dims b=2,s=16 --check wrong      results that differ from the plain program's at these sizes
    reduce big.mlir --test './fails.sh'                a command says which programs fail: by the exit status 0

A failure is an internal error of the compiler (error), another result than that of the program without fusion and reuse
of buffers (wrong), or the end of the process by a signal or after --time-limit (crash). A smaller program fails alike
where that is the same: the error's type and words, or the signal. Each is tried in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shlo_disc.errors import OptionError
from shlo_disc.options import Options

if TYPE_CHECKING:
    from shlo_disc.reduce.search import Reduced


def add_reduce(
    commands: Any,
    pairs: Callable[[str], dict[str, int]],
    add_common: Callable[[Any], None],
    options_of: Callable[[argparse.Namespace], Options],
) -> None:
    """Add the command. `pairs` reads b=2,s=16; the other two add and read what all commands take."""
    command = commands.add_parser(
        "reduce",
        help="shrink a program that fails to a small one that fails alike",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(command=lambda options: _reduce(options, options_of(options)))
    command.add_argument("file", metavar="FILE")
    command.add_argument(
        "--dims", type=pairs, action="append", default=[], metavar="b=2,s=16", help="a shape; may be given often"
    )
    command.add_argument("--check", choices=("wrong", "error", "crash"), help="the only failure that counts")
    command.add_argument("--test", metavar="CMD", help="gets a file as its last argument; exits with 0 where it fails")
    command.add_argument("--seed", type=int, default=0, help="seed of the arguments")
    command.add_argument("--seconds", type=float, metavar="S", help="for the whole search; the best so far is written")
    command.add_argument("--time-limit", type=float, default=60.0, metavar="S", help="for one program (default: 60)")
    command.add_argument("-o", "--output", metavar="FILE", help="write the program there, not to standard output")
    command.add_argument("--json", action="store_true", help="print what was found as JSON")
    add_common(command)


def _reduce(arguments: argparse.Namespace, options: Options) -> None:
    from shlo_disc.reduce.failing import Command, CompilerFailure, Failing
    from shlo_disc.reduce.search import reduce

    if arguments.test is not None and arguments.check is not None:
        raise OptionError("--test and --check are two ways to say what a failure is; use one")
    if arguments.time_limit <= 0 or (arguments.seconds is not None and arguments.seconds <= 0):
        raise OptionError("--seconds and --time-limit must be positive")
    failing: Failing
    if arguments.test is not None:
        failing = Command(shlex.split(arguments.test), arguments.time_limit)
    else:
        failing = CompilerFailure(
            options, target=arguments.target, dims=arguments.dims, kind=arguments.check, seed=arguments.seed,
            limit=arguments.time_limit,
        )  # fmt: skip

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    sizes = [size for dims in arguments.dims for size in dims.values()]
    found = reduce(Path(arguments.file), failing, sizes=sizes, seconds=arguments.seconds, say=say)
    _write(found, arguments)


def _write(found: Reduced, arguments: argparse.Namespace) -> None:
    text = f"// {found.failure}\n{found.text}"
    if arguments.output:
        Path(arguments.output).write_text(text)
    if arguments.json:
        print(json.dumps(_json(found, arguments.file, arguments.output, text), indent=2))
    elif not arguments.output:
        sys.stdout.write(text)


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
