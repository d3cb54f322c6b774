# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc replay FOLDER`."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shlo_disc.tools.commands.common import add_command, add_dims, add_json, show


def add_replay(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "replay", _replay, "compile, run and compare the programs of SHLO_DISC_RECORD")
    command.add_argument("folder", metavar="FOLDER", help="the folder that SHLO_DISC_RECORD named")
    add_dims(command, "sizes of symbols (default: 4)")
    command.add_argument("--seed", type=int, default=0, help="seed of the arguments")
    add_json(command)


def _replay(arguments: argparse.Namespace) -> int:
    """1 where a program fails or is wrong."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from shlo_disc.tools.replay import replay

    rows = list(replay(Path(arguments.folder), arguments.dims, arguments.seed))
    width = max(len(row.name) for row in rows)
    lines = [f"{row.name:<{width}}  {row.outcome}  {row.how}  {row.note}".rstrip() for row in rows]
    right = sum(row.outcome == "right" for row in rows)
    show(arguments, {"programs": [asdict(row) for row in rows]}, [*lines, f"{right} of {len(rows)} are right"])
    return int(right < len(rows))
