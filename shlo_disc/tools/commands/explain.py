# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc explain FILE --dims b=2,s=16`, or `--decisions`."""

from __future__ import annotations

import argparse
from typing import Any

from shlo_disc.tools.commands.common import (
    add_command,
    add_compile_options,
    add_dims,
    add_file,
    add_isolate,
    add_json,
    built,
    show,
    source_of,
)


def add_explain(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "explain", _explain, "list the kernels of a call with their times")
    add_file(command)
    add_dims(command, "the values of the symbols")
    command.add_argument(
        "--decisions", action="store_true", help="list what was fused, and what that saves, instead of times"
    )
    add_json(command)
    add_compile_options(command)
    add_isolate(command)


def _explain(arguments: argparse.Namespace) -> None:
    executable = built(source_of(arguments.file, "explain"), arguments)
    if arguments.decisions:
        report = executable.fusion_report()
        show(arguments, report.to_json(), str(report))
        return
    explanation = executable.explain(**arguments.dims)
    show(arguments, explanation.to_json(), str(explanation))
