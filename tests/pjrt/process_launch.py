# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes of a job, started one by one, which find each other through JAX's coordinator."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def free_port() -> int:
    """A port that nobody has at the moment."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def outcomes_apart(
    folder: Path, processes: int, env: Mapping[str, str], command: Sequence[str], seconds: float
) -> list[dict[str, str] | None]:
    """The outcomes that each process writes to the folder, in this many seconds; None for one that is lost."""
    started = []
    for number in range(processes):
        output = (folder / f"output.{number}").open("w")
        own = {**env, "PROCESS": f"{number} of {processes}"}
        started.append(subprocess.Popen(command, env=own, stdout=output, stderr=subprocess.STDOUT))
    try:
        for process in started:
            process.wait(timeout=seconds)
    finally:
        for process in started:
            process.kill()
    places = [folder / f"outcomes.{number}" for number in range(processes)]
    return [json.loads(place.read_text()) if place.exists() else None for place in places]
