# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc report FILE -o report.html`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shlo_disc.tools.commands.common import (
    add_command,
    add_compile_options,
    add_dims,
    add_file,
    add_json,
    built,
    show,
    source_of,
)


def add_report(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "report", _report, "write one HTML page about a whole compile")
    add_file(command)
    add_dims(command, "sizes at which the arena is drawn and the kernels are measured", often=True)
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE.html",
        help="write the page there; else a browser shows a temporary one",
    )
    command.add_argument(
        "--trace", metavar="FILE.json", help="also write a trace of the compile and of a call at each of the sizes"
    )
    add_json(command)
    add_compile_options(command)


def _report(arguments: argparse.Namespace) -> None:
    executable = built(source_of(arguments.file, "report"), arguments)
    written = {"page": executable.report(arguments.output, arguments.dims)}
    if arguments.trace:
        written["trace"] = executable.trace(arguments.trace, arguments.dims)
    show(
        arguments,
        {name: {"file": str(path), "bytes": path.stat().st_size} for name, path in written.items()},
        [_line(name, path) for name, path in written.items()],
    )


def _line(name: str, path: Path) -> str:
    where = {"page": "in a browser", "trace": "at https://ui.perfetto.dev"}[name]
    return f"{path}: {path.stat().st_size} bytes; open it {where}"
