# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc export FILE --triton FOLDER`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shlo_disc.errors import OptionError
from shlo_disc.lowering.progress import watching
from shlo_disc.runtime import Artifact
from shlo_disc.runtime.triton_repository import write_model
from shlo_disc.tools.commands.common import (
    add_command,
    add_isolate,
    add_program_or_artifact,
    add_progress,
    add_trust,
    built,
    opened,
    show,
    stage_progress,
)


def add_export(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "export", _export, "write a model for Triton Inference Server")
    add_program_or_artifact(command)
    command.add_argument(
        "--triton", metavar="FOLDER", required=True, help="the model's folder to write, in a model repository"
    )
    command.add_argument(
        "--max-batch-size", type=int, default=0, metavar="N", help="join requests to batches of at most N rows"
    )
    command.add_argument(
        "--weights", metavar="FILE", help="arrays to bind to the first arguments: .npz, or their elements in order"
    )
    add_trust(command)
    add_progress(command)
    add_isolate(command)


def _export(arguments: argparse.Namespace) -> None:
    if arguments.max_batch_size < 0:
        raise OptionError(f"--max-batch-size is {arguments.max_batch_size}, and must not be negative")
    found = opened(arguments.file, trust=arguments.trust)
    if not isinstance(found, Artifact):
        with watching(stage_progress(arguments)):
            found = built(found, arguments).artifact
    folder = Path(arguments.triton)
    files = write_model(found, folder, max_batch_size=arguments.max_batch_size, weights=arguments.weights)
    document = {"folder": str(folder), "files": [str(file) for file in files], "trusted": found.trusted}
    lines = [str(file) for file in files]
    if not found.trusted:
        lines.append("the server runs it with --backend-config=shlo_disc,trust=true, or export it with --trust")
    show(arguments, document, lines)
