# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc tune FILE --dims b=2,s=16 -o OUT`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from shlo_disc.errors import OptionError
from shlo_disc.options import Options
from shlo_disc.tools.commands.common import (
    add_command,
    add_compile_options,
    add_file,
    add_json,
    add_progress,
    options_of,
    program_of,
    say,
    show,
    wants_progress,
)

if TYPE_CHECKING:
    from shlo_disc.tools.tune import WeightedShape
    from shlo_disc.tools.tune.measure import Measurer

_LOCAL = "local"


def add_tune(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "tune", _tune, "search the forms of each kernel by measuring, for the fastest")
    add_file(command)
    dims = "a shape, and how often calls have it; may be given often"
    command.add_argument("--dims", type=_shape, action="append", default=[], metavar="b=2,s=16:0.7", help=dims)
    command.add_argument("--shapes", metavar="FILE", help="a JSON file of shapes and their weights")
    command.add_argument("--budget", type=float, default=60.0, metavar="S", help="seconds of the search (default: 60)")
    command.add_argument("--no-records", action="store_true", help="neither read nor write what is recorded of kernels")
    cluster = "measure on the machines of a Ray cluster; without an address, on one that is started here"
    command.add_argument("--ray", nargs="?", const=_LOCAL, metavar="ADDRESS", help=cluster)
    command.add_argument("-o", "--output", metavar="FILE", required=True, help="write the schedule there")
    add_progress(command)
    add_json(command)
    add_compile_options(command)


def _shape(text: str) -> WeightedShape:
    from shlo_disc.tools.tune import parse_shape

    try:
        return parse_shape(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form b=2,s=16 or b=2,s=16:0.7") from None


def _tune(arguments: argparse.Namespace) -> None:
    from shlo_disc.tools.tune import load_shapes, tune

    program, options = program_of(arguments.file), options_of(arguments)
    shapes = [*arguments.dims, *(load_shapes(arguments.shapes) if arguments.shapes else [])]
    if not shapes:
        raise OptionError("tune needs the shapes of calls: --dims b=8,s=64:0.7, which may be given often, or --shapes")
    tell = say if wants_progress(arguments) else _nothing
    measurer, keep = _measurer(arguments.ray, options), not arguments.no_records
    found = tune(program, shapes, options=options, budget=arguments.budget, measurer=measurer, keep=keep, say=tell)
    found.schedule.save(arguments.output)
    show(arguments, {"file": arguments.output, **found.to_json()}, str(found))


def _measurer(address: str | None, options: Options) -> Measurer | None:
    if address is None:
        return None
    from shlo_disc.tools.tune.spread import RayMeasurer

    return RayMeasurer(address, options)


def _nothing(_: str) -> None:
    """Nobody looks."""
