# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc watch train.py ...`."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from shlo_disc.driver.ledger.document import FunctionRow, document
from shlo_disc.driver.ledger.page import lines, page
from shlo_disc.driver.ledger.watching import WATCH_VARIABLE, read_folder
from shlo_disc.tools.commands.common import add_command, say

_DESCRIPTION = """\
Run a Python program with the plugin, but otherwise unchanged, and print one line per function at its end: calls,
shapes, compiled programs, the seconds of the compiles, and why there is more than one. The exit status is that of the
program, and 2 if there is no such script.

Put the options of this command before the name of the script; everything after it is passed to the script."""


def add_watch(commands: Any) -> None:
    """Add the command."""
    command = add_command(
        commands, "watch", _watch, "run a script, and report the programs of its functions", _DESCRIPTION
    )
    command.add_argument("--page", metavar="FILE.html", help="also write the lines and all programs as a page")
    command.add_argument("--all", action="store_true", help="add a line for each op and function internal to JAX")
    command.add_argument("--json", action="store_true", help="print one JSON document instead of the lines")
    command.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as `python -m` does")
    command.add_argument("arguments", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="a script and its arguments")


def _watch(arguments: argparse.Namespace) -> int:
    """The exit status of the script, as a shell has it; 2 where there is none."""
    script = [*(["-m", arguments.module] if arguments.module else []), *arguments.arguments]
    if not script:
        say("shlo_disc watch: name a script, or a module by -m")
        return 2
    if not script[0].startswith("-") and not Path(script[0]).exists():
        say(f"shlo_disc watch: there is no script {script[0]!r}; options go before its name, a module is -m NAME")
        return 2
    with tempfile.TemporaryDirectory(prefix="shlo_disc-watch-") as folder:
        status = _run([sys.executable, *script], folder)
        rows = read_folder(Path(folder))
    if rows or not status or arguments.json or arguments.page:  # a script that failed before has said why
        _tell(rows, arguments, shlex.join(script))
    return status


def _run(command: list[str], folder: str) -> int:
    """Run a process with the plugin; Ctrl-C is for that alone, and SIGTERM ends it, too."""
    asked = os.environ.get("JAX_PLATFORMS", "")
    platforms = asked if "shlo_disc" in asked else "shlo_disc,cpu"
    environment = {**os.environ, "JAX_PLATFORMS": platforms, WATCH_VARIABLE: folder}
    with subprocess.Popen(command, env=environment) as process:  # noqa: S603 - what the user asks for
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        before_term = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        try:
            code = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
            signal.signal(signal.SIGTERM, before_term)
    return 128 - code if code < 0 else code


def _tell(rows: list[FunctionRow], arguments: argparse.Namespace, script: str) -> None:
    """The lines go to standard error: standard output is the script's, unless JSON was asked for."""
    if arguments.page:
        Path(arguments.page).write_text(page(rows, script), encoding="utf-8")
    if arguments.json:
        print(json.dumps(document(rows), indent=2))
        return
    if not rows:
        say(
            "no program came to the plugin: does the script use JAX, on the platform shlo_disc? For torch.compile, run "
            "the script with the environment variable TORCH_LOGS=shlo_disc,recompiles, which logs each compiled graph"
        )
        return
    say("\n".join(lines(rows, own=arguments.all)))
