# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc tune FILE --dims b=2,s=16 -o OUT`."""

from __future__ import annotations

import argparse
from typing import Any

from shlo_disc.lowering.progress import watching
from shlo_disc.tools.commands.common import (
    add_command,
    add_compile_options,
    add_dims,
    add_file,
    add_json,
    add_progress,
    options_of,
    program_of,
    say,
    show,
    stage_progress,
    wants_progress,
)


def add_tune(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "tune", _tune, "measure the forms of each kernel, and choose the fastest")
    add_file(command)
    add_dims(command, "a shape", often=True, required=True)
    command.add_argument("--rounds", type=int, default=15, help="calls of each candidate at each shape")
    command.add_argument("-o", "--output", metavar="FILE", required=True, help="write the schedule there")
    add_progress(command)
    add_json(command)
    add_compile_options(command)


def _tune(arguments: argparse.Namespace) -> None:
    from shlo_disc.tools.tune import tune

    program, options = program_of(arguments.file), options_of(arguments)
    tell = say if wants_progress(arguments) else _nothing
    with watching(stage_progress(arguments)):
        found = tune(program, arguments.dims, options=options, rounds=arguments.rounds, say=tell)
    found.schedule.save(arguments.output)
    show(arguments, {"file": arguments.output, **found.to_json()}, str(found))


def _nothing(_: str) -> None:
    """Nobody looks."""
