# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m shlo_disc check FILE.mlir...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shlo_disc.errors import OptionError, ProgramError
from shlo_disc.lowering.progress import is_terminal
from shlo_disc.tools.commands.common import add_command, add_json, put, say, show

if TYPE_CHECKING:
    from shlo_disc.tools.check.modules import Case
    from shlo_disc.tools.check.runner import Result


def add_check(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "check", _check, "run self-checking modules")
    command.add_argument("files", metavar="FILE", nargs="+", help="a file, or a directory of .mlir files")
    command.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="worker processes (default: 1)")
    command.add_argument("--time-limit", type=float, default=60.0, metavar="S", help="seconds per case (default: 60)")
    command.add_argument("--opt-level", type=int, help="LLVM's optimisation level, 0 to 3")
    command.add_argument("--symbolic", action="store_true", help="turn the sizes of inputs into symbols")
    command.add_argument("--match", default="", metavar="TEXT", help="only cases with TEXT in FILE:FUNCTION")
    add_json(command)


def _check(options: argparse.Namespace) -> int:
    """1 when a case fails."""
    from shlo_disc.tools.check.report import as_json, summary
    from shlo_disc.tools.check.runner import run_cases

    if options.jobs < 1 or options.time_limit <= 0:
        raise OptionError("--jobs and --time-limit must be positive")
    cases = [case for case in _cases(options.files) if options.match in f"{case.file}:{case.name}"]
    results = run_cases(
        cases,
        {"threads": 1, "opt_level": options.opt_level, "symbolic": options.symbolic},
        jobs=options.jobs,
        limit=options.time_limit,
        done=_progress(len(cases), say if options.json else put),
    )
    results.sort(key=lambda r: (r.file, r.case))
    show(options, as_json(results), summary(results))
    return int(any(result.failed for result in results))


def _cases(paths: Sequence[str]) -> Iterator[Case]:
    from shlo_disc.tools.check.modules import cases_of

    for path in paths:
        files = sorted(Path(path).rglob("*.mlir")) if Path(path).is_dir() else [Path(path)]
        if not files:
            raise OptionError(f"{path}: no .mlir file in this directory")
        for file in files:
            try:
                yield from cases_of(str(file), file.read_text())
            except UnicodeDecodeError:
                raise ProgramError(f"{file}: the file is not text") from None


def _progress(total: int, tell: Callable[[str], None]) -> Callable[[Result], None]:
    """Print each failure as it comes, and on a terminal a line that counts."""
    count = failures = 0
    live = is_terminal(sys.stderr)

    def done(result: Result) -> None:
        nonlocal count, failures
        count += 1
        if result.failed:
            failures += 1
            why = "; ".join(result.reasons)
            tell(f"FAIL {result.file}:{result.case}: {result.status}: {why}")
        if live:
            end = "\n" if count == total else "\r"
            say(f"{count} of {total}, {failures} failed", end=end)

    return done
