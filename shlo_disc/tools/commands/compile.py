# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc compile FILE -o OUT`."""

from __future__ import annotations

import argparse
import os
from typing import Any

from shlo_disc.lowering.progress import watching
from shlo_disc.runtime.weight_files import check_ending
from shlo_disc.tools.commands.common import (
    add_command,
    add_compile_options,
    add_file,
    add_isolate,
    add_json,
    add_progress,
    built,
    program_of,
    show,
    stage_progress,
)


def add_compile(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "compile", _compile, "write a compiled artifact")
    add_file(command)
    command.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write")
    command.add_argument("--prepack", action="store_true", help="store constant weights in the kernels' layout")
    add_progress(command)
    add_json(command)
    add_compile_options(command)
    add_isolate(command)


def _compile(arguments: argparse.Namespace) -> None:
    check_ending(arguments.output, ".disc")  # before a compile, which may take minutes
    with watching(stage_progress(arguments)):
        executable = built(program_of(arguments.file), arguments)
    executable.save(arguments.output, prepack=arguments.prepack)
    size, signature = os.path.getsize(arguments.output), str(executable.signature)
    document = {
        "file": arguments.output,
        "bytes": size,
        "signature": signature,
        "target": executable.target,
        "timings": executable.timings,
    }
    show(arguments, document, f"{arguments.output}: {size} bytes, {signature}")
