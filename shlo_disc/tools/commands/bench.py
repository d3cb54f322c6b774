# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc bench FILE... --dims b=2,s=16`: measure the time of calls.

    bench model.jax --dims b=1,s=16 --dims b=8,s=128
    bench before.disc after.disc --trust --dims b=8,s=128 --rounds 100

Calls alternate between the files, and the ratio compares each file with the first one. `first` is the first call at a
shape, without loading. GFLOP/s and GB/s are the arithmetic of a call, and the bytes of its arguments and results,
divided by the median.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from shlo_disc.tools.commands.common import (
    add_command,
    add_compile_options,
    add_dims,
    add_json,
    add_trust,
    check_files,
    runnable,
    show,
)
from shlo_disc.tools.commands.tables import Row, aligned

if TYPE_CHECKING:
    from shlo_disc.report.timing import Timing

_HEADINGS = ("file", "first us", "median us", "p10 us", "p90 us", "ratio", "GFLOP/s", "GB/s")


def add_bench(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "bench", _bench, "time calls, and compare programs or artifacts", __doc__)
    command.add_argument("files", metavar="FILE", nargs="+", help="a program (- for standard input) or an artifact")
    add_dims(command, "a shape", often=True)
    command.add_argument("--rounds", type=int, default=30, metavar="N", help="warm calls of each file (default: 30)")
    command.add_argument("--seed", type=int, default=0, help="seed of the synthetic arguments")
    add_trust(command)
    add_json(command)
    add_compile_options(command)


def _bench(arguments: argparse.Namespace) -> None:
    from shlo_disc.report.synthetic import load_flat
    from shlo_disc.report.timing import time_programs
    from shlo_disc.runtime.clients import client_for

    check_files(arguments.files)
    artifacts = [runnable(file, arguments) for file in arguments.files]
    loads = [partial(load_flat, client_for(artifact, arguments.threads), artifact) for artifact in artifacts]
    shapes = [(dims, time_programs(loads, dims, arguments.rounds, arguments.seed)) for dims in arguments.dims or [{}]]
    show(arguments, _document(arguments.files, shapes), _lines(arguments.files, shapes))


Shapes = Sequence[tuple[Mapping[str, int], "Sequence[Timing]"]]


def _document(files: Sequence[str], shapes: Shapes) -> dict[str, Any]:
    rows = [
        {
            "dims": dict(dims),
            "files": [{"file": file, **timing.to_json()} for file, timing in zip(files, timings, strict=True)],
        }
        for dims, timings in shapes
    ]
    return {"shapes": rows}


def _lines(files: Sequence[str], shapes: Shapes) -> Iterator[str]:
    for dims, timings in shapes:
        yield ", ".join(f"{name}={value}" for name, value in dims.items()) or "the only shape"
        yield from aligned([_HEADINGS, *(_row(f, t) for f, t in zip(files, timings, strict=True))], left={0})


def _row(file: str, timing: Timing) -> Row:
    seconds = (timing.first_seconds, timing.median_seconds, timing.p10_seconds, timing.p90_seconds)
    rates = (timing.flops_per_second, timing.bytes_per_second)
    return (
        file,
        *(f"{value * 1e6:.1f}" for value in seconds),
        f"{timing.ratio:.3f}",
        *("-" if rate is None else f"{rate / 1e9:.2f}" for rate in rates),
    )
