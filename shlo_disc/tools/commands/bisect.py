# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc bisect FILE`."""

from __future__ import annotations

import argparse
from typing import Any

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


def add_bisect(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "bisect", _bisect, "find the compiler's decision that makes the results wrong")
    add_file(command)
    add_dims(command, "a shape", often=True)
    command.add_argument("--seed", type=int, default=0, help="seed of the arguments")
    add_json(command)
    add_compile_options(command)


def _bisect(arguments: argparse.Namespace) -> int:
    """1 where the results become wrong."""
    from shlo_disc.tools.bisect.search import bisect, likely_dims

    program, options = program_of(arguments.file), options_of(arguments)
    dims = arguments.dims or likely_dims(program, options)
    found = bisect(program, dims, options, seed=arguments.seed, say=say)
    difference = None if found is None else found.to_json()
    show(arguments, {"difference": difference}, "no difference" if found is None else str(found))
    return int(found is not None)
