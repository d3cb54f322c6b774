# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the programs of a bundle on this machine's GPU, then times them beside what else is installed here.

The programs that tell most come first, and what is known is printed and written as it comes: when the time is up, or
the command is ended, FOLDER/gpu.json and FOLDER/gpu.html have what there is. The exit status is 0 when all calls that
were made gave the right results, 1 when one did not, 2 when nothing can run here.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu import report
from benchmarks.gpu.backends import BACKENDS, OURS
from benchmarks.gpu.bundle import Bundle, Program
from benchmarks.gpu.process import Process
from benchmarks.tables import duration

Result = dict[str, Any]

FAMILIES = ("cases", "micro", "plain", "loops", "solvers", "models", "ops")
"""In the order in which they are checked."""
TIMED_FIRST = ("micro-softmax", "micro-layernorm", "micro-gelu_bias", "plain-column_sums", "plain-transpose",
               "micro-rmsnorm_rope", "micro-cross_entropy", "plain-whole")  # fmt: skip
CHECK_PATIENCE, START_PATIENCE, TIME_PATIENCE = 60.0, 150.0, 60.0
"""Seconds after which a process that does not answer is ended: JAX and PyTorch take their time to start."""
PART_OF_TIME = 0.6
"""The part of all seconds that checks may take when times are to be taken as well."""


class Run:
    """One run: its result as data, which is written after each step."""

    def __init__(self, bundle: Bundle, options: argparse.Namespace):
        self.bundle, self.options = bundle, options
        self.start = time.monotonic()
        self.processes = {name: self._process(name) for name in options.backends}
        self.result: Result = {
            "python": platform.python_version(),
            "facts": {},
            "absent": {},
            "checks": [],
            "refused": [vars(row) for row in bundle.refused()],
            "works": {},
            "left_out": [],
        }

    def _process(self, name: str) -> Process:
        return Process(name, self.bundle.path, self.options.output / f"{name}.log")

    def left(self) -> float:
        """Seconds until the end."""
        return self.options.seconds - (time.monotonic() - self.start)

    def write(self) -> None:
        """Write what is known."""
        self.options.output.mkdir(parents=True, exist_ok=True)
        (self.options.output / "gpu.json").write_text(json.dumps(self.result, indent=1) + "\n")
        (self.options.output / "gpu.html").write_text(report.page(self.result))

    def end(self) -> None:
        """End all processes."""
        for process in self.processes.values():
            process.end()

    # ---- checks -----------------------------------------------------------------------------------------------------

    def check(self, programs: Sequence[Program], end: float) -> None:
        """Check programs until `end` seconds are left; one line a family, and one for what is wrong."""
        for family in sorted({p.family for p in programs}, key=FAMILIES.index):
            members = [p for p in programs if p.family == family and p.calls]
            for program in members:
                if self.left() < max(end, 1.0):
                    self.result["left_out"].append(f"check of {program.name}")
                    continue
                answer = self.processes[OURS].ask("check", min(CHECK_PATIENCE, self.left()), program=program.name)
                row = {"name": program.name, "family": family, "title": program.title, **answer}
                self.result["checks"].append(row)
                for line in report.wrong_lines([row])[:2]:
                    print(f"  WRONG {line}", flush=True)
            print(report.family_line(self.result, family, len(members)), flush=True)
            self.write()

    # ---- times ------------------------------------------------------------------------------------------------------

    def time_ours(self, programs: Sequence[Program]) -> None:
        """Times of ours alone, with the GPU's copies as the measure."""
        for program in programs:
            work = self._work(program)
            for index, seconds in self._measured(program, OURS):
                size = self.bundle.bytes_moved(program, index)
                copied = self.processes[OURS].ask("copy", TIME_PATIENCE, size=size // 2, seconds=self.options.budget)
                work["copy_seconds"][str(index)] = copied.get("stream")
                parts = [f"shlo_disc {duration(seconds)}", report.share_text(work, index)]
                print(_line(work, index, parts), flush=True)
            self.write()

    def time_all(self, programs: Sequence[Program]) -> None:
        """The others beside ours, which is timed again, so that all have the GPU as it is then."""
        for program in programs:
            work = self._work(program)
            for name in self.options.backends:
                if name not in self.result["absent"]:
                    for _ in self._measured(program, name):
                        pass
            for index in range(len(work["shapes"])):
                print(_line(work, index, report.against(work, index)), flush=True)
            self.write()

    def _measured(self, program: Program, name: str) -> Any:
        """Add a backend's times at each shape of a program; yields the shapes' numbers and the seconds."""
        if self.left() < 1:
            self.result["left_out"].append(f"times of {program.name}, {BACKENDS[name].title}")
            return
        empty: Result = {"first": {}, "latency": {}, "stream": {}, "sample": {}}
        row = self._work(program)["backends"].setdefault(name, empty)
        process = self.processes[name]
        started = process.ask("start", min(START_PATIENCE, self.left()), program=program.name)
        row |= {"start": started["seconds"]} if "seconds" in started else started
        for index in range(len(self._work(program)["shapes"])):
            if "refused" in row or self.left() < 1:
                return
            first = process.ask("first", min(START_PATIENCE, self.left()), index=index)
            taken = first if "refused" in first else process.ask("time", TIME_PATIENCE, seconds=self.options.budget)
            if "refused" in taken:
                row["refused"] = taken["refused"]
                return
            row["first"][str(index)], row["sample"][str(index)] = first["seconds"], first["sample"]
            row["latency"][str(index)], row["stream"][str(index)] = taken["latency"], taken["stream"]
            yield index, taken["stream"]

    def _work(self, program: Program) -> Result:
        """A program's times so far."""
        works: dict[str, Result] = self.result["works"]
        timing = program.timing
        if program.name not in works and timing is not None:
            works[program.name] = {
                "title": program.title,
                "symbols": timing.symbols,
                "shapes": timing.shapes,
                "bytes": [self.bundle.bytes_moved(program, index) for index in range(len(timing.shapes))],
                "launches": program.launches,
                "compile_seconds": program.compile_seconds,
                "copy_seconds": {},
                "backends": {},
            }
        return works[program.name]


def _line(work: Result, index: int, parts: Iterable[str]) -> str:
    shape = ", ".join(map(str, work["shapes"][index]))
    return f"  {work['title']} ({shape}): {'; '.join(part for part in parts if part)}"


def main(arguments: Sequence[str], folder: Path) -> int:
    """Check and time the bundle in `folder`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    return measure(parser.parse_args(arguments), Bundle(folder))


def measure(options: argparse.Namespace, bundle: Bundle) -> int:
    """The run that the options ask for; the exit status."""
    options.backends = [OURS, *(name for name in options.backends if name != OURS)]
    run = Run(bundle, options)
    try:
        return _run(run)
    finally:
        run.end()


def _run(run: Run) -> int:
    facts = run.processes[OURS].ask("facts", START_PATIENCE)
    if "refused" in facts:
        print(f"nothing can run here: {facts['refused']}", flush=True)
        return 2
    run.result["facts"][OURS] = facts["facts"]
    programs = [p for p in run.bundle.programs() if not run.options.programs or p.name in run.options.programs]
    print(report.header(run.result, programs), flush=True)
    wants_times = run.options.only != "checks"
    if run.options.only != "times":
        run.check(programs, run.options.seconds * (1 - PART_OF_TIME) if wants_times else 0.0)
    if wants_times:
        _time(run, [p for p in programs if p.timing])
    run.write()
    print(report.text(run.result))
    print(f"written: {run.options.output / 'gpu.json'}, {run.options.output / 'gpu.html'}", flush=True)
    return 1 if report.wrong_lines(run.result["checks"]) else 0


def _time(run: Run, programs: list[Program]) -> None:
    known = {name: number for number, name in enumerate(TIMED_FIRST)}
    programs.sort(key=lambda p: (known.get(p.name, len(known)), FAMILIES.index(p.family), p.name))
    print("times of shlo_disc, and the share of them that a copy of as many bytes takes:", flush=True)
    run.time_ours(programs)
    for name in run.options.backends[1:]:
        facts = run.processes[name].ask("facts", min(START_PATIENCE, max(run.left(), 1.0)))
        run.result["absent" if "refused" in facts else "facts"][name] = facts.get("refused") or facts["facts"]
    for name, why in run.result["absent"].items():
        print(f"{BACKENDS[name].title} is not measured: {why}", flush=True)
    if len(run.result["absent"]) < len(run.options.backends) - 1:
        run.time_all(programs)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of a run."""
    add, names = parser.add_argument, list(BACKENDS)
    add("--seconds", type=float, default=520.0, help="the run ends after about as long (520)")
    add("--budget", type=float, default=0.15, help="seconds of warm calls a backend and shape (0.15)")
    add("--only", choices=("checks", "times"), help="leave the others out")
    add("--programs", nargs="*", metavar="NAME", help="these programs only")
    add("--backends", nargs="*", default=names, choices=names, metavar="WHO", help=", ".join(names))
    add("--output", type=Path, default=Path("gpu-report"), metavar="FOLDER", help="where files go")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path.cwd()))
