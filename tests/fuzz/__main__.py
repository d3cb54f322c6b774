# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.fuzz --seed N --count M --jobs J`: examine the programs of the seeds N to N+M-1."""

from __future__ import annotations

import argparse
import collections
import sys
import time
from multiprocessing import connection
from pathlib import Path

from tests.fuzz.case import case_of, program_of
from tests.fuzz.families import OPS
from tests.fuzz.kept import describe
from tests.fuzz.program import Program
from tests.fuzz.shrink import shrink
from tests.fuzz.worker import Finding, Report, Worker


def main() -> int:
    """Exit status 1 when anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no program after so long")
    parser.add_argument("--ops", nargs="*", default=[], choices=list(OPS), metavar="OP", help="ops to favour")
    parser.add_argument("--plugin", action="store_true", help="through the PJRT plugin, the sizes one after another")
    parser.add_argument("--show", action="store_true", help="print the program of --seed and leave")
    parser.add_argument("--out", type=Path, default=Path("fuzz_out"), help="where failing programs are written")
    options = parser.parse_args()
    if options.show:
        print(describe(program_of(options.seed, options.ops), options.seed))
        return 0
    summary = run(options)
    print(summary.text())
    return 1 if summary.findings else 0


class Summary:
    """Counts over a run."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.programs = self.calls = self.interpreted = 0
        self.findings: dict[int, Finding] = {}
        self.ops: collections.Counter[str] = collections.Counter()
        self.seconds: collections.Counter[str] = collections.Counter()
        self.plugin: collections.Counter[str] = collections.Counter()

    def add(self, seed: int, report: Report) -> None:
        """Count one report."""
        self.programs += 1
        self.calls += report.calls
        self.interpreted += report.interpreted
        self.ops.update(report.ops)
        self.seconds.update(report.seconds)
        self.plugin.update(report.programs)
        if report.finding is not None:
            self.findings[seed] = report.finding

    def line(self) -> str:
        """The progress so far."""
        rate = self.programs / max(time.monotonic() - self.start, 1e-3)
        return f"{self.programs} programs, {self.calls} calls, {rate:.1f} programs/s, {len(self.findings)} findings"

    def text(self) -> str:
        """The end of a run."""
        spent = ", ".join(f"{k} {v:.1f} s" for k, v in self.seconds.most_common() if k)
        ops = ", ".join(f"{k} {n}" for k, n in self.ops.most_common())
        kinds = collections.Counter(f.kind for f in self.findings.values())
        found = [f"  seed {s}: {f.kind}: {f.text[:300]}" for s, f in sorted(self.findings.items())]
        served = [f"programs of the plugin: {dict(self.plugin)}"] if self.plugin else []
        lines = [self.line(), *served, f"calls also interpreted: {self.interpreted}", f"time: {spent}", f"ops: {ops}"]
        return "\n".join([*lines, f"findings: {dict(kinds)}", *found])


def run(options: argparse.Namespace) -> Summary:
    """Examine the programs of the seeds, shrink those that fail, write them down."""
    summary, seeds = Summary(), iter(range(options.seed, options.seed + options.count))
    workers: dict[Worker, int] = {}
    idle = [Worker(options.plugin) for _ in range(options.jobs)]
    shrinker, shown = Worker(options.plugin), time.monotonic()
    while True:
        while (
            idle
            and time.monotonic() - summary.start < 60 * options.minutes
            and (number := next(seeds, None)) is not None
        ):
            worker = idle.pop()
            worker.send((number, options.ops))
            workers[worker] = number
        if not workers:
            break
        connection.wait([w.connection for w in workers], timeout=1.0)
        for worker in list(workers):
            if (report := worker.take()) is not None:
                number = workers.pop(worker)
                idle.append(worker)
                summary.add(number, report)
                if report.finding is not None:
                    print(f"seed {number}: {report.finding.kind}: {report.finding.text[:300]}", flush=True)
                    keep(program_of(number, options.ops), number, report.finding, shrinker, options.out)
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(summary.line(), file=sys.stderr, flush=True)
    for worker in (*idle, shrinker):
        worker.close()
    return summary


def keep(program: Program, seed: int, finding: Finding, worker: Worker, out: Path) -> None:
    """Shrink a failing program and write it down."""

    def fails(program: Program) -> bool:
        return finding.same_kind(worker.examine(case_of(program, seed)).finding)

    small = shrink(program, fails)
    found = worker.examine(case_of(small, seed)).finding or finding
    out.mkdir(parents=True, exist_ok=True)
    note = "".join(f"// {line}\n" for line in found.text[:2000].splitlines())
    (out / f"{seed}.mlir").write_text(f"// {found.kind}\n{note}{describe(small, seed)}")


if __name__ == "__main__":
    if "--near" in sys.argv:
        from tests.fuzz.near.run import run as run_near

        sys.exit(run_near(sys.argv[1:]))
    if "--sizes" in sys.argv:
        from tests.fuzz.sizes.run import run as run_sizes

        sys.exit(run_sizes(sys.argv[1:]))
    sys.exit(main())
