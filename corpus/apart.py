# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries in processes of their own. A client takes seconds to import: these are forked from one that has done so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpus.registry import find_entry

ROOT = Path(__file__).resolve().parents[1]
_MOST_NOTE = 200


def run_apart(
    module: str, mark: str, client: str, names: Sequence[str], seconds: float, environment: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run a module that calls `each_apart`; the names of the entries, as they end, and what they have said.

    An entry that has failed says {"error": "crash", "timeout" or "error", "note": why}. Where a client cannot be
    imported, all its entries fail.
    """
    command = [sys.executable, "-m", module, str(seconds), client, *names]
    without = {"SHLO_DISC_CODE_CACHE_DIR": ""}  # each entry's seconds are those of a first compile
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **without, **environment},
        errors="replace",
    )
    ended = set()
    with process:
        for line in process.stdout or ():
            if line.startswith(mark):
                name, found = json.loads(line.removeprefix(mark))
                ended.add(name)
                yield name, found
    for name in names:
        if name not in ended:
            yield name, {"error": "error", "note": f"the process of {client} ended with {process.returncode}"}


def each_apart(module: str, mark: str, run: Callable[[str, str], dict[str, Any]]) -> None:
    """Import a client, and run each of its entries in a process that is forked; prints what comes of it.

    The command line of the module has the seconds that an entry may take, the client, and the names of entries. Where
    the client starts JAX's platforms when it is imported, its process cannot be forked, and the entries are started one
    by one: the seconds are 0 then, and the entry runs in the process itself.
    """
    seconds, client, names = float(sys.argv[1]), sys.argv[2], sys.argv[3:]
    for name in names:
        find_entry(client, name)
    for name in names:
        if seconds == 0:
            found = _caught(client, name, run)
        elif _has_platforms():
            found = _started(module, mark, client, name, seconds)
        else:
            found = _forked(client, name, seconds, run)
        print(mark + json.dumps([name, found]), flush=True)


def _has_platforms() -> bool:
    from jax._src import xla_bridge

    return bool(xla_bridge.backends_are_initialized())


def _started(module: str, mark: str, client: str, name: str, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", module, "0", client, name]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=seconds, errors="replace")
    except subprocess.TimeoutExpired:
        return _timeout(seconds)
    lines = [line for line in done.stdout.splitlines() if line.startswith(mark)]
    if not lines:
        return _ended(done.returncode)
    found: dict[str, Any] = json.loads(lines[-1].removeprefix(mark))[1]
    return found


def _timeout(seconds: float) -> dict[str, Any]:
    return {"error": "timeout", "note": f"more than {seconds:g} s"}


def _ended(code: int) -> dict[str, Any]:
    return {"error": "crash" if code < 0 else "error", "note": f"exit status {code}"}


def _caught(client: str, name: str, run: Callable[[str, str], dict[str, Any]]) -> dict[str, Any]:
    try:
        return run(client, name)
    except Exception as error:  # whatever it is, it is the outcome
        return {"error": "error", "note": f"{type(error).__name__}: {' '.join(str(error).split())}"[:_MOST_NOTE]}


def _forked(client: str, name: str, seconds: float, run: Callable[[str, str], dict[str, Any]]) -> dict[str, Any]:
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_and_leave(client, name, writing, run)
    os.close(writing)
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)
            return _timeout(seconds)
        time.sleep(0.05)
    with os.fdopen(reading) as said:
        text = said.read()
    if text:
        found: dict[str, Any] = json.loads(text)
        return found
    return _ended(os.waitstatus_to_exitcode(status))


def _run_and_leave(client: str, name: str, writing: int, run: Callable[[str, str], dict[str, Any]]) -> None:
    """Run an entry in the child, and end that. What it says fits a pipe."""
    os.dup2(2, 1)  # what clients print is none of the outcome
    os.write(writing, json.dumps(_caught(client, name, run)).encode()[:60_000])
    sys.stderr.flush()
    os._exit(0)


__all__ = ["ROOT", "each_apart", "run_apart"]
