# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc report FILE -o report.html`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def add_report(
    commands: Any,
    pairs: Callable[[str], dict[str, int]],
    add_common: Callable[[Any], None],
    build: Callable[[argparse.Namespace], Any],
) -> None:
    """Add the command. `pairs` reads b=2,s=16; `add_common` adds what all commands take, and `build` compiles by it."""
    command = commands.add_parser("report", help="write one HTML page of all that a compile did")
    command.set_defaults(command=lambda options: _report(options, build))
    command.add_argument("file", metavar="FILE")
    command.add_argument(
        "--dims",
        type=pairs,
        action="append",
        default=[],
        metavar="b=2,s=16",
        help="sizes at which the arena is drawn and the kernels are measured; may be given often",
    )
    command.add_argument("-o", "--output", metavar="FILE.html", required=True, help="write the page there")
    command.add_argument(
        "--trace", metavar="FILE.json", help="write a trace of the compile, and of a call at each of the sizes, as well"
    )
    add_common(command)


def _report(options: argparse.Namespace, build: Callable[[argparse.Namespace], Any]) -> None:
    executable = build(options)
    written: Path = executable.report(options.output, options.dims)
    print(f"{written}: {written.stat().st_size} bytes; open it in a browser")
    if options.trace:
        written = executable.trace(options.trace, options.dims)
        print(f"{written}: {written.stat().st_size} bytes; open it at https://ui.perfetto.dev")
