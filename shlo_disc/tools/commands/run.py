# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc run FILE --dims b=2,s=16`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from shlo_disc.tools.commands.common import (
    add_command,
    add_compile_options,
    add_dims,
    add_file,
    add_isolate,
    add_json,
    add_trust,
    read_arrays,
    runnable,
    show,
)


def add_run(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "run", _run, "call a program once")
    add_file(command, artifacts=True)
    add_dims(command, "sizes of synthetic arguments")
    command.add_argument("--seed", type=int, default=0, help="seed of synthetic arguments")
    command.add_argument("--inputs", metavar="FILE.npz", help="arguments, in the order of the archive")
    command.add_argument("--outputs", metavar="FILE.npz", help="write the results there")
    add_trust(command)
    add_json(command)
    add_compile_options(command)
    add_isolate(command)


def _run(arguments: argparse.Namespace) -> None:
    import numpy as np

    from shlo_disc.report.synthetic import check_dims, load_flat, synthetic_arguments
    from shlo_disc.runtime.clients import client_for

    artifact = runnable(arguments.file, arguments)
    check_dims(arguments.dims, artifact.header)
    executable = load_flat(client_for(artifact, arguments.threads), artifact)
    if arguments.inputs:
        arrays = read_arrays(arguments.inputs)
    else:
        arrays = synthetic_arguments(artifact.header, arguments.dims, arguments.seed)
    start = time.perf_counter()
    results = executable(*arrays)
    seconds = time.perf_counter() - start
    rows = [_row(row["path"], array) for row, array in zip(artifact.header["results"], results, strict=True)]
    lines = [f"{row['path']}: {row['dtype']}{row['shape']} {_summary(row['mean_magnitude'])}" for row in rows]
    if not arguments.inputs and any(row["mean_magnitude"] != row["mean_magnitude"] for row in rows):
        lines.append(_on_nan([row["dtype"] for row in artifact.header["arguments"]]))
    show(arguments, {"results": rows, "first_call_seconds": seconds}, [*lines, f"first call    {seconds:.6f} s"])
    if arguments.outputs:
        np.savez(arguments.outputs, *results)


def _on_nan(dtypes: Sequence[str]) -> str:
    """A line about results that are no numbers, of synthetic arguments."""
    integers = ", which are 0 or 1 where they are integers, such as lengths" if any("i" in d for d in dtypes) else ""
    return f"nan           of synthetic arguments{integers}: give others by --inputs FILE.npz"


def _row(path: str, array: Any) -> dict[str, Any]:
    """A result, with the mean of its magnitudes (None without elements), by which two runs are compared."""
    import numpy as np

    mean = float(np.abs(array.astype(np.float64)).mean()) if array.size else None
    return {"path": path, "dtype": str(array.dtype), "shape": list(array.shape), "mean_magnitude": mean}


def _summary(mean: float | None) -> str:
    return "empty" if mean is None else f"mean magnitude {mean:.6g}"
