# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc bisect FILE`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shlo_disc.options import Options


def add_bisect(
    commands: Any,
    pairs: Callable[[str], dict[str, int]],
    add_common: Callable[[Any], None],
    options_of: Callable[[argparse.Namespace], Options],
) -> None:
    """Add the command. `pairs` reads b=2,s=16; the other two add and read what all commands take."""
    command = commands.add_parser("bisect", help="find the decision with which a program's results become wrong")
    command.set_defaults(command=lambda options: _bisect(options, options_of(options)))
    command.add_argument("file", metavar="FILE")
    command.add_argument(
        "--dims", type=pairs, action="append", default=[], metavar="b=2,s=16", help="a shape; may be given often"
    )
    command.add_argument("--seed", type=int, default=0, help="seed of the arguments")
    add_common(command)


def _bisect(arguments: argparse.Namespace, options: Options) -> int:
    from shlo_disc.bisect.search import bisect, likely_dims

    program = Path(arguments.file)
    dims = arguments.dims or likely_dims(program, options)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    found = bisect(program, dims, options, seed=arguments.seed, say=say)
    print("no difference" if found is None else found)
    return 0 if found is None else 1
